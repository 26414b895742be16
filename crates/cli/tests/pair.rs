//! Which threads share a cache well, from a trace in a guest to the groups that are proposed.
#![allow(clippy::unwrap_used)]

mod guest;
mod subjects;

use guest::can_trace;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use subjects::subject;

/// The rehearsal of the subject in this shape: 8 threads, thread n of group n modulo 2, on a machine of two cores of two
/// hardware threads.
fn rehearsed(place: &Path, shape: &[&str]) -> Value {
    let program = subject("groups");
    let nearmiss = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_nearmiss")).current_dir(place).args(words).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    let trace = ["trace", "-q", "--no-curve", "--only", "user", "-m", "xeon-ht-2x2", "--cpus", "4", "--"];
    nearmiss(&[&trace[..], &[&program, "--reads", "100000"], shape].concat());
    let rehearsals: Value = serde_json::from_slice(&nearmiss(&["rehearse", "pair", "--json"])).unwrap();
    rehearsals["tables"][0].clone()
}

fn tid(name: &Value) -> u64 {
    name["text"].as_str().unwrap().rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn two_groups_of_threads_are_found_and_threads_of_their_own_are_left_alone() {
    if !can_trace() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let groups = rehearsed(place.path(), &[]);
    let tasks: Vec<u64> = groups["more"][0]["rows"].as_array().unwrap().iter().map(|row| tid(&row[0])).collect();
    let group = |task: u64| tasks.iter().position(|tid| *tid == task).unwrap() % 2;
    let pairs = groups["more"][1]["rows"].as_array().unwrap();
    let same: Vec<bool> = pairs.iter().map(|row| group(tid(&row[0])) == group(tid(&row[1]))).collect();
    assert_eq!(same, [vec![true; 12], vec![false; 16]].concat());
    let proposed = |first: usize| (0..4).map(|n| tasks[first + 2 * n].to_string()).collect::<Vec<_>>().join(" ");
    assert_eq!(groups["subject"], format!("tasks {} | {}", proposed(0), proposed(1)));
    let own = rehearsed(place.path(), &["--own"]);
    assert_eq!(own["subject"], "8 tasks, and no grouping is proposed");
}
