//! Reads of another node's memory, from a trace to a recording under the remedy, in guests of two nodes.
#![allow(clippy::unwrap_used)]

use crate::diagnosing::in_user_mode;
use crate::guest_slots::for_a_guest;
use crate::subjects::subject;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

const MACHINE: &str = "pentium3-xeon-numa-2x2";
const SMALL: [&str; 4] = ["--part", "1M", "--rounds", "5"];

fn nearmiss(place: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nearmiss")).current_dir(place).args(words).output().unwrap()
}

/// Findings of the remedy on the subject in this shape.
fn found(place: &Path, shape: &[&str]) -> Vec<Value> {
    let program = subject("wrong-homes");
    let output = nearmiss(place, &[&in_user_mode(MACHINE, "4")[..], &[&program], &SMALL[..], shape].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let findings: Value = serde_json::from_slice(&output.stdout).unwrap();
    let list = findings["findings"].as_array().unwrap();
    list.iter().filter(|finding| finding["remedy"] == "local").cloned().collect()
}

/// Remote reads of the subject's tasks, and all of their bus reads.
fn recorded(place: &Path, words: &[&str]) -> (u64, u64) {
    let file = place.join("model.json");
    let file = file.to_str().unwrap();
    let begin = ["trace", "-q", "--no-trace", "--no-curve", "--only", "user", "--json", file];
    let machine = ["-m", MACHINE, "--memory", "1GiB", "--cpus", "4", "--"];
    let output = nearmiss(place, &[&begin[..], &machine, words].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let model: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let tasks = model["tasks"].as_array().unwrap().iter().filter(|task| task["comm"] == "wrong-homes");
    let count = |task: &Value, kind: &str| task["user"]["bus"][kind].as_u64().unwrap();
    let kinds = ["read_remote", "read_local_none", "read_local_shared", "read_local_modified"];
    tasks.fold((0, 0), |(remote, all), task| {
        (remote + count(task, kinds[0]), all + kinds.map(|kind| count(task, kind)).iter().sum::<u64>())
    })
}

#[test]
fn wrong_homes_are_refused_with_the_reason_and_a_recording_under_apply_has_none() {
    let Some(_guest) = for_a_guest() else { return };
    let place = tempfile::tempdir().unwrap();
    let findings = found(place.path(), &[]);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    let finding = &findings[0];
    assert!(finding["cause"].as_str().unwrap().contains("touched it first"), "{finding:#}");
    assert!(finding["symptom"].as_str().unwrap().contains("`wrong-homes.c:"), "{finding:#}");
    let gain = finding["prediction"]["gain"].as_f64().unwrap();
    assert!(gain > 0.05, "{gain}");
    let apply: Vec<&str> = finding["apply"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    // The second half of the table, with its readers on node 1.
    let home = apply[4].strip_prefix("wrong-homes+0x").unwrap();
    assert!(apply[3] == "--home" && home.ends_with(":2097152-4194304=1"), "{apply:?}");

    let own = env!("CARGO_BIN_EXE_nearmiss");
    let (remote, all) = recorded(place.path(), &[&[own], &apply[1..]].concat());
    // The rest is the first thread's writing, which now goes to the other node: half of the lines, once.
    assert!(remote < all / 4, "{remote} of {all}");
}

#[test]
fn homes_of_each_thread_s_own_are_no_finding() {
    if let Some(_guest) = for_a_guest() {
        let place = tempfile::tempdir().unwrap();
        let findings = found(place.path(), &["--own"]);
        assert!(findings.is_empty(), "{findings:#?}");
    }
}

#[test]
fn a_remedy_that_cannot_engage_prints_one_line_and_ends_with_125() {
    let place = tempfile::tempdir().unwrap();
    let status_and_stderr = |words: &[&str]| {
        let output = nearmiss(place.path(), words);
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, text) = status_and_stderr(&["apply", "local", "--", "true"]);
    assert_eq!((code, text.lines().count()), (Some(125), 1), "{text}");
    assert!(text.contains("nothing is requested: give --bind, --home or --pools"), "{text}");
    let (code, text) = status_and_stderr(&["apply", "local", "--bind", "4096", "--", "true"]);
    assert_eq!((code, text.lines().count()), (Some(125), 1), "{text}");
    assert_eq!(status_and_stderr(&["apply", "local", "--home", "nowhere", "--", "true"]).0, Some(125));
    assert_eq!(status_and_stderr(&["apply", "local", "--bind", "compact", "--", "sh", "-c", "exit 7"]).0, Some(7));
}

#[test]
fn nothing_is_left_when_nearmiss_is_killed() {
    let place = tempfile::tempdir().unwrap();
    let mut nearmiss = Command::new(env!("CARGO_BIN_EXE_nearmiss"));
    let script = format!("echo $$ > {}/pid; sleep 60", place.path().display());
    nearmiss.env("TMPDIR", place.path()).args(["apply", "local", "--bind", "compact", "--", "sh", "-c", &script]);
    let mut running = nearmiss.spawn().unwrap();
    let file = place.path().join("pid");
    let written = || std::fs::read_to_string(&file).ok().filter(|text| text.ends_with('\n'));
    until("the command writes its number", || written().is_some());
    let pid = written().unwrap();
    running.kill().unwrap();
    running.wait().unwrap();
    until("the command has ended", || !Path::new("/proc").join(pid.trim()).join("exe").exists());
    let left = || {
        let entries = std::fs::read_dir(place.path()).unwrap().flatten();
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("nearmiss-")).count()
    };
    until("the libraries are gone", || left() == 0);
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..3000 {
        if holds() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("{what}: not within half a minute");
}
