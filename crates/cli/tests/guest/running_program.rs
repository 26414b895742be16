//! `diagnose -p` and `trace -p`: a program that runs, found mid-run.

#![allow(clippy::unwrap_used)]

use crate::places::for_a_guest;
use crate::running::{Running, with_criu};
use crate::subjects::subject;
use serde_json::Value;
use std::process::{Command, Output};
use std::time::Duration;

fn nearmiss(place: &tempfile::TempDir, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nearmiss")).current_dir(place.path()).args(words).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn crowded_sets_are_found_mid_run_and_the_program_runs_on() {
    let Some(_guest) = for_a_guest().filter(|_| with_criu()) else { return };
    let place = tempfile::tempdir().unwrap();
    let program = Running::start(&[&subject("aligned-tasks"), "--objects", "64", "--visits", "100000000000"]);
    std::thread::sleep(Duration::from_secs(1));
    let pid = program.pid();
    let output =
        nearmiss(&place, &["diagnose", "-p", &pid, "--within", "30s", "--json", "-m", "zen3-milan", "--cpus", "1"]);
    assert!(output.status.success(), "{}", said(&output));
    let findings: Value = serde_json::from_slice(&output.stdout).unwrap();
    let finding = &findings["findings"][0];
    assert_eq!(finding["remedy"], "color", "{findings:#}");
    let symptom = finding["symptom"].as_str().unwrap();
    assert!(symptom.contains("`walk`") && symptom.contains("on 1 of 64 sets at a time"), "{symptom}");
    // A comparison of two runs of the command is not about this process.
    assert!(finding["verify"].is_null() && finding["apply"][2] == "color", "{finding:#}");
    let notes = findings["notes"].to_string();
    assert!(notes.contains("color act from the next start on"), "{notes}");
    let paused = format!("process {pid} (aligned-tasks) paused 0.");
    assert!(said(&output).contains(&paused), "{}", said(&output));
    assert_eq!(program.harmed(), Vec::<String>::new());
}

#[test]
fn a_program_writes_on_where_it_was() {
    let Some(_guest) = for_a_guest().filter(|_| with_criu()) else { return };
    let place = tempfile::tempdir().unwrap();
    // The file grows here after the snapshot; the guest's own goes on from the snapshot's last line.
    let script =
        "n=0; while :; do n=$((n+1)); i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done; echo $n >> numbers; done";
    let file = place.path().join("numbers");
    let script = script.replace("numbers", file.to_str().unwrap());
    let program = Running::start(&["/bin/dash", "-c", &script]);
    std::thread::sleep(Duration::from_millis(500));
    let words = ["trace", "-p", &program.pid(), "--within", "6s", "--keep", "kept", "--no-trace", "--quiet"];
    let output = nearmiss(&place, &words);
    assert!(output.status.success(), "{}", said(&output));
    let kept = std::fs::read_to_string(place.path().join("kept").join(file.strip_prefix("/").unwrap())).unwrap();
    let numbers: Vec<u64> = kept.lines().map(|line| line.parse().unwrap()).collect();
    assert!(numbers.len() > 100 && numbers.last() > Some(&100), "{} lines", numbers.len());
    assert_eq!(program.harmed(), Vec::<String>::new());
}
