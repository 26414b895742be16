//! Runs that are not whole: killed while they were recorded, cut off before their model, edited, refused.

#![allow(clippy::unwrap_used)]

use crate::guest_slots::for_a_guest;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const MACHINE: &str = "pentium-pro-4way-512k";
const TRACE: [&str; 6] = ["trace", "-q", "-m", MACHINE, "--memory", "1GiB"];

fn nearmiss(place: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nearmiss")).current_dir(place).args(arguments).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).trim_end().to_owned()
}

fn runs(place: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(place.join("nearmiss-runs"))
        .map_or(Vec::new(), |all| all.map(|run| run.unwrap().path()).collect())
}

fn model(place: &Path, arguments: &[&str]) -> Value {
    let output = nearmiss(place, &[&["report", "--json"], arguments].concat());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    report["model"].clone()
}

#[test]
fn a_killed_trace_is_reported_as_cut_off_and_the_next_one_takes_it_away() {
    let Some(_guest) = for_a_guest() else { return };
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let mut killed = Command::new(env!("CARGO_BIN_EXE_nearmiss"))
        .current_dir(place)
        .args(TRACE)
        .args(["--", "sleep", "60"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let written = || runs(place).first().is_some_and(|run| std::fs::read_dir(run).unwrap().next().is_some());
    while !written() {
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing is recorded");
        std::thread::sleep(Duration::from_millis(20));
    }
    let recording = stderr(&nearmiss(place, &["report"]));
    assert!(recording.ends_with("this run is still being recorded; wait for its end"), "{recording}");
    killed.kill().unwrap();
    killed.wait().unwrap();

    let output = nearmiss(place, &["report"]);
    let line = stderr(&output);
    assert_eq!((output.status.code(), line.lines().count()), (Some(2), 1), "{line}");
    assert!(line.contains("this run was cut off at 20") && line.contains("nothing of it can be read"), "{line}");

    assert_eq!(nearmiss(place, &[&TRACE[..], &["--", "true"]].concat()).status.code(), Some(0));
    assert_eq!(runs(place).len(), 1, "what the killed process left is gone");
}

#[test]
fn a_run_without_its_model_and_one_that_was_edited_are_modelled_again() {
    let Some(_guest) = for_a_guest() else { return };
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    assert_eq!(nearmiss(place, &[&TRACE[..], &["--", "true"]].concat()).status.code(), Some(0));
    let run = runs(place).pop().unwrap();
    let whole = model(place, &[]);

    let file = run.join("model.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let loads = format!("\"loads\":{}", whole["totals"]["loads"]);
    std::fs::write(&file, text.replacen(&loads, "\"loads\":12345", 1)).unwrap();
    let refused = nearmiss(place, &["report"]);
    let line = stderr(&refused);
    assert_eq!((refused.status.code(), line.lines().count()), (Some(2), 1), "{line}");
    assert!(
        line.contains("edited after nearmiss wrote it") && line.contains("nearmiss report RUN -m MACHINE"),
        "{line}"
    );
    assert_eq!(model(place, &["-m", MACHINE]), whole, "the trace is believed");

    // State after an ending between the recording and the model.
    std::fs::remove_file(&file).unwrap();
    let named = run.to_str().unwrap();
    assert_eq!(model(place, &[named]), whole, "on the machine that it was recorded for");
    assert_eq!(model(place, &[]), whole, "the newest run, for there is no whole one");
    assert_eq!(model(place, &[named, "-m", MACHINE]), whole);
    std::fs::remove_file(run.join("symbols.json")).unwrap();
    let nameless = model(place, &[named, "-m", MACHINE]);
    // Instructions that the filter counted are split by their functions, which are no longer known; misses are not.
    assert_eq!(nameless["totals"]["levels"], whole["totals"]["levels"]);
    assert!(nameless["notes"].to_string().contains("cut off before its names were written"), "{}", nameless["notes"]);
    for arguments in [&["diagnose", "--json", named][..], &["diagnose", "--json"]] {
        let output = nearmiss(place, arguments);
        let findings: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
        assert!(findings["notes"].to_string().contains("cut off before its names were written"), "{findings}");
    }
}

#[test]
fn a_refused_trace_leaves_no_directory() {
    let Some(_guest) = for_a_guest() else { return };
    let place = tempfile::tempdir().unwrap();
    let output = nearmiss(place.path(), &[&TRACE[..], &["--runs", "a/b", "--from", "mark:7", "--", "true"]].concat());
    assert_eq!(output.status.code(), Some(125), "{}", stderr(&output));
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "{}", stderr(&output));
}

#[test]
fn a_standard_error_that_takes_nothing_does_not_change_the_status() {
    let ended = |verb: &[&str]| {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_nearmiss"));
        let command = command.args(verb).args(["--", "sh", "-c", "exit 5"]).current_dir(directory.path());
        command.stderr(full).status().unwrap().code()
    };
    assert_eq!(ended(&["apply", "color"]), Some(5));
    if let Some(_guest) = for_a_guest() {
        assert_eq!(ended(&["trace", "-m", "zen3-milan", "--memory", "1GiB", "--cpus", "1", "--only", "user"]), Some(5));
    }
}

#[test]
fn a_part_of_a_trace_is_not_replayed() {
    let Some(_guest) = for_a_guest() else { return };
    let directory = tempfile::tempdir().unwrap();
    let nearmiss = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nearmiss"));
        let out = command.args(arguments).current_dir(directory.path()).output().unwrap();
        (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    let small =
        ["trace", "-q", "-m", "zen3-milan", "--memory", "1GiB", "--cpus", "1", "--only", "user", "--max-trace", "1KiB"];
    assert_eq!(nearmiss(&[&small[..], &["--", "ls", "/usr/bin"]].concat()), (Some(0), String::new()));
    assert_eq!(nearmiss(&["report"]).0, Some(0), "the model saw all");
    for replay in [&["diagnose"][..], &["rehearse", "color"], &["report", "-m", "zen4-genoa"]] {
        let (code, stderr) = nearmiss(replay);
        assert!(code == Some(2) && stderr.contains(" records, and the replay of a part"), "{replay:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
}
