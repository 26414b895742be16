//! `nearmiss report` as a user types it: what it prints, where it writes, how it fails.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/fixtures").join(name)
}

fn report(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nearmiss")).arg("report").args(arguments).output().unwrap()
}

/// A copy of the fixture with one file replaced.
fn with_file(directory: &Path, name: &str, content: &str) -> String {
    for file in ["manifest.json", "model.json"] {
        std::fs::copy(fixture("run-queue").join(file), directory.join(file)).unwrap();
    }
    std::fs::write(directory.join(name), content).unwrap();
    directory.display().to_string()
}

/// Exit code 2, nothing on standard output, one line on standard error: that line, less the directory.
fn refusal(arguments: &[&str], directory: &Path) -> String {
    let output = report(arguments);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len(), text.lines().count()), (Some(2), 0, 1), "{text}");
    text.trim_end().replace(&directory.display().to_string(), "DIR")
}

#[test]
fn text_is_for_people_and_has_no_escapes_in_a_pipe() {
    let output = report(&[fixture("run-queue").to_str().unwrap()]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && output.stderr.is_empty());
    assert!(text.contains("coloring would spread them."), "{text}");
    assert!(!text.contains('\x1b'));
}

#[test]
fn json_is_one_object_and_nothing_else() {
    let output = report(&[fixture("run-queue").to_str().unwrap(), "--json"]);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["schema"], "nearmiss/report/1");
    assert_eq!(value["sentence"]["cause"], "set-conflict");
    assert_eq!(value["model"]["schema"], "nearmiss/model/2");
    assert_eq!(value["manifest"]["command"][0], "aligned-tasks");
    assert!(output.stderr.is_empty());
}

#[test]
fn findings_that_cannot_be_read_leave_a_page_without() {
    let directory = tempfile::tempdir().unwrap();
    let run = with_file(directory.path(), "findings.json", "{\"schema\":\"nearmiss/findings/1\"}\n");
    let output = report(&["--html", &run]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{stderr}");
    assert!(
        stderr.contains("findings.json") && stderr.ends_with(&format!("until `nearmiss diagnose {run}`\n")),
        "{stderr}"
    );
    let page = std::fs::read_to_string(directory.path().join("report.html")).unwrap();
    assert!(page.contains("id=\"functions\"") && !page.contains("id=\"findings\""));
}

#[test]
fn files_are_written_at_the_requested_paths() {
    let directory = tempfile::tempdir().unwrap();
    let run = fixture("healthy");
    for (flag, name, begin) in [
        ("--html=", "page.html", b"<!DOCTYPE html>".as_slice()),
        ("--callgrind=", "callgrind.out", b"# callgrind format"),
        ("--pprof=", "profile.pb.gz", &[0x1f, 0x8b]),
    ] {
        let file = directory.path().join(name);
        let output = report(&[run.to_str().unwrap(), &format!("{flag}{}", file.display())]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(std::fs::read(&file).unwrap().starts_with(begin), "{name}");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{}\n", file.display()));
    }
    let run = with_file(directory.path(), "note", "");
    assert!(report(&["--html", &run]).status.success());
    assert!(directory.path().join("report.html").is_file(), "--html takes no run for a file");
}

#[test]
fn bad_input_is_one_line_with_the_way_out() {
    let directory = tempfile::tempdir().unwrap();
    let d = directory.path();
    let run = d.display().to_string();
    let mut lines = vec![refusal(&[&run], d), refusal(&[&format!("{run}/none")], d)];
    with_file(d, "model.json", "{\"schema\": 7");
    lines.push(refusal(&[&run], d));
    with_file(d, "manifest.json", "[]");
    lines.push(refusal(&[&run, "--json"], d));
    let model = std::fs::read_to_string(fixture("run-queue").join("model.json")).unwrap();
    with_file(d, "model.json", &model.replace("nearmiss/model/2", "nearmiss/model/9"));
    lines.push(refusal(&[&run, "--html"], d));
    let manifest = std::fs::read_to_string(fixture("run-queue").join("manifest.json")).unwrap();
    with_file(d, "manifest.json", &manifest.replace("nearmiss/manifest/1", "nearmiss/manifest/9"));
    lines.push(refusal(&[&run], d));
    with_file(d, "model.json", &model.replace("\"bin_bytes\":32", "\"bin_bytes\":0"));
    lines.push(refusal(&[&run], d));
    std::fs::remove_file(d.join("model.json")).unwrap();
    lines.push(refusal(&[&run], d));
    lines.push(refusal(&[&run, "--validate"], d));
    std::fs::write(d.join("trace.nmt"), "not a trace").unwrap();
    lines.push(refusal(&[&run, "--validate"], d));
    assert!(!d.join("report.html").exists());
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let command = format!("{} report {} --json | true", env!("CARGO_BIN_EXE_nearmiss"), fixture("run-queue").display());
    let output = Command::new("bash").args(["-o", "pipefail", "-c", &command]).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn functions_are_found_by_a_part_of_their_name_or_near_ones_are_listed() {
    let directory = tempfile::tempdir().unwrap();
    let run = fixture("run-queue");
    let run = run.to_str().unwrap();
    for words in [[run, "--code", "schedule"], [run, "--function", "schedule"]] {
        let text = String::from_utf8(report(&words).stdout).unwrap();
        assert!(text.starts_with("schedule  [kernel]\nmodelled: ") && text.contains("kernel/sched.c"), "{text}");
    }
    let hottest = String::from_utf8(report(&[run, "--code"]).stdout).unwrap();
    assert_eq!(hottest.matches("the whole function").count(), 3, "{hottest}");
    let near = refusal(&[run, "--code", "shedule"], directory.path());
    assert!(near.ends_with("no function `shedule`; near it: `schedule`"), "{near}");
}

#[test]
fn stacks_are_written_for_flame_graph_tools() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("folded");
    assert!(report(&[fixture("run-queue").to_str().unwrap(), "--folded", file.to_str().unwrap()]).status.success());
    let text = std::fs::read_to_string(file).unwrap();
    let weight = |line: &str| line.rsplit_once(' ').and_then(|(_, n)| n.parse::<u64>().ok()).unwrap();
    assert!(text.lines().any(|line| line.starts_with("main;serve;schedule ")), "{text}");
    assert!(text.lines().map(weight).all(|cycles| cycles > 0));
}

#[test]
fn nothing_of_a_file_steers_the_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let run = with_file(directory.path(), "model.json", "{\"schema\": \"nearmiss/model/\\u001b[2J\"}");
    let model = std::fs::read_to_string(fixture("run-queue").join("model.json")).unwrap();
    let refused = [refusal(&[&run], directory.path()), {
        with_file(directory.path(), "model.json", &model.replacen("\"recorded\"", "\"\\u001b[2J\"", 1));
        refusal(&[&run], directory.path())
    }];
    for line in refused {
        assert!(!line.contains('\u{1b}'), "{line:?}");
    }
    let wrong = report(&["--top", "5\u{1b}[2J"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(!wrong.stderr.contains(&0x1b), "{:?}", String::from_utf8_lossy(&wrong.stderr));
}

#[test]
fn a_full_device_is_reported_once_and_by_the_status() {
    for arguments in [["--help"].as_slice(), &["report", "--help"], &["machine", "list"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_nearmiss")).args(arguments).stdout(full).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert_eq!(stderr.to_lowercase().matches("no space left").count(), 1, "{stderr}");
        assert!(!stderr.contains("os error"), "{stderr}");
    }
}
