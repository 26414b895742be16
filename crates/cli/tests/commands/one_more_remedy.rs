//! A remedy more than there are: `examples/one-more-remedy.rs` defines it, and every verb takes it from there.
#![allow(clippy::unwrap_used)]

use nearmiss_record::observed::{self, Observed, Poll};
use nearmiss_record::run::{self, Manifest, RunDir};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// Cargo builds examples beside the tests.
fn program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.parent().unwrap().with_file_name("examples").join("one-more-remedy")
}

fn nearmiss(directory: &Path, words: &[&str]) -> Output {
    Command::new(program()).args(words).current_dir(directory).output().unwrap()
}

fn output_of(words: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let output = nearmiss(directory.path(), words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// An observed run of a server that polls in vain.
fn observed_run(parent: &Path) -> RunDir {
    let poll = Poll { call: "poll".into(), name: "server".into(), calls: 5000, events: 1000, ..Poll::default() };
    let run = RunDir::create(parent, "observed").unwrap();
    let observed = Observed { schema: observed::SCHEMA.into(), polls: vec![poll], ..Observed::default() };
    run.write_json(observed::FILE, &observed).unwrap();
    let manifest = Manifest { schema: run::SCHEMA.into(), command: vec!["./server".into()], ..Manifest::default() };
    run.write_json(run::MANIFEST, &manifest).unwrap();
    run
}

#[test]
fn it_is_in_every_help_page_and_completion() {
    for verb in ["apply", "verify", "rehearse"] {
        let help = output_of(&[verb, "--help"]);
        assert!(help.contains("\n  nap  ") && help.contains(&format!("\n  nearmiss {verb} nap ")), "{help}");
    }
    let help = output_of(&["apply", "nap", "--help"]);
    assert!(help.contains("--least <TIME>") && help.contains("--json <FILE>"), "{help}");
    assert!(output_of(&["verify", "nap", "--help"]).contains("--least <TIME>"));
    assert!(output_of(&["rehearse", "nap", "--help"]).contains("--naps <TIME,…>"));
    let page = output_of(&["generate", "man", "apply", "nap"]);
    assert!(page.contains("nearmiss 0.1.0"), "{page}");
    assert!(page.starts_with(".ie") && page.contains(r"\-\-least") && page.contains("naps of 200"), "{page}");
    for shell in ["bash", "zsh", "fish"] {
        let script = output_of(&["generate", "completions", shell]);
        assert!(script.contains("nap") && script.contains("least"), "{shell}");
    }
    let directory = tempfile::tempdir().unwrap();
    output_of(&["generate", "man", "--all", directory.path().to_str().unwrap()]);
    assert!(directory.path().join("nearmiss-verify-nap.1").is_file());
}

#[test]
fn doctor_has_its_row() {
    let report: Value = serde_json::from_str(&output_of(&["doctor", "--quick", "--json"])).unwrap();
    let rows = report["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["name"] == "nap (helper process)").unwrap();
    assert_eq!((&row["verb"], &row["state"]), (&"apply".into(), &"works".into()));
}

#[test]
fn it_finds_and_rehearses_on_an_observation() {
    let place = tempfile::tempdir().unwrap();
    let run = observed_run(&place.path().join(run::DEFAULT_PARENT));
    let output = nearmiss(place.path(), &["diagnose", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let findings: Value = serde_json::from_slice(&output.stdout).unwrap();
    let finding = &findings["findings"][0];
    assert_eq!(finding["remedy"], "nap");
    assert_eq!((&findings["known"], &finding["known"]), (&"measured".into(), &"measured".into()));
    let table = &finding["evidence"]["tables"][0];
    assert_eq!(table["rows"][0], serde_json::json!([{"nanos": 1_000_000}, {"count": 5000}]));
    let apply = ["nearmiss", "apply", "nap", "--least", "1ms", "--", "./server"];
    assert_eq!(finding["apply"], serde_json::json!(apply));
    let notes = findings["notes"].as_array().unwrap();
    let idle = |remedy| format!("{remedy} did not run: it needs a trace (nearmiss trace -- CMD).");
    assert_eq!(notes, &["apart", "color", "huge", "keep", "layout", "local", "pair"].map(idle));
    assert!(run.file(run::FINDINGS).is_file());

    let page = String::from_utf8(nearmiss(place.path(), &["diagnose"]).stdout).unwrap();
    let expected = "./server, observed on this machine

1. nap: predicted gain 25% of the CPU time (20% to 30%).
Measured   `server` polls in vain.
Calls      5000 calls of `server` bring 0.2 events each.
";
    assert!(page.starts_with(expected), "{page}");

    let table = String::from_utf8(nearmiss(place.path(), &["rehearse", "nap", "--naps", "2ms,100us"]).stdout).unwrap();
    let expected = "nap: polls of `server`
predicted on this machine: from the sums of the log

   nap   calls
100 µs  50,000
2.0 ms   2,500
";
    assert_eq!(table, expected);
}

#[test]
fn a_remedy_without_its_source_is_refused_by_name() {
    let place = tempfile::tempdir().unwrap();
    observed_run(&place.path().join(run::DEFAULT_PARENT));
    let output = nearmiss(place.path(), &["rehearse", "color", "nearmiss-runs/observed"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    let why = "nearmiss: nearmiss-runs/observed: nothing here can be looked at: color looks at a trace (nearmiss trace -- CMD)\n";
    assert_eq!(error, why);
}

#[test]
fn a_verdict_has_its_title() {
    let place = tempfile::tempdir().unwrap();
    let words = ["verify", "nap", "--least", "2ms", "--pairs", "8", "--time-limit", "1s", "--json", "--", "true"];
    let output = nearmiss(place.path(), &words);
    let verdict: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(verdict["remedy"], "nap, at least 2ms");
    assert!(verdict["engaged"].as_str().unwrap().starts_with("nap (measured): helper "), "{verdict}");
}

fn alive(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z"))
}

#[test]
fn its_helper_lives_beside_the_command_and_ends_with_it() {
    let place = tempfile::tempdir().unwrap();
    let output = nearmiss(place.path(), &["apply", "nap", "--least", "3ms", "--", "sh", "-c", "echo $NAP; exit 7"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(7), &b"3ms\n"[..]), "{error}");
    let helper = error.split_whitespace().nth(4).unwrap();
    assert!(error.starts_with("nearmiss: nap (measured): helper ") && !alive(helper), "{error}");
}

#[test]
fn its_helper_ends_when_nearmiss_is_killed() {
    let place = tempfile::tempdir().unwrap();
    let mut wrapper = Command::new(program())
        .args(["apply", "nap", "--", "sleep", "1000"])
        .current_dir(place.path())
        .spawn()
        .unwrap();
    let children = || {
        let tasks = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", wrapper.id())).unwrap_or_default();
        tasks.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let within = |limit: Duration, done: &dyn Fn() -> bool| {
        let begun = Instant::now();
        while !done() && begun.elapsed() < limit {
            std::thread::sleep(Duration::from_millis(5));
        }
        done()
    };
    // The command, the helper, and a guardian of each.
    assert!(within(Duration::from_secs(10), &|| children().len() == 4), "{:?}", children());
    let all = children();
    wrapper.kill().unwrap();
    wrapper.wait().unwrap();
    assert!(within(Duration::from_secs(5), &|| !all.iter().any(|pid| alive(pid))), "{all:?}");
}
