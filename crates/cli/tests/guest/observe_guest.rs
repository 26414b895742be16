//! `nearmiss observe` on a kernel that takes BPF programs on functions, as distributions' kernels do: the guest's.
//!
//! The guest's clock counts instructions, so what an instrument costs is known to the instruction.

#![allow(clippy::unwrap_used)]

use crate::guest_slots::for_a_guest;
use crate::subjects::subject;
use std::process::Command;

const CALLS: u64 = 5000;
/// With `--clock instructions`.
const NS_AN_INSTRUCTION: f64 = 2.0;

/// Returns the output of `poll-loop` and, if it is there, the observer in a guest: instructions a poll, a call of
/// another kind, text.
fn poll_loop(observer: &[&str]) -> (f64, f64, String) {
    let place = tempfile::tempdir().unwrap();
    let program = subject("poll-loop");
    let trace = ["trace", "-q", "--no-trace", "--only", "user", "--clock", "instructions", "--cpus", "1"];
    let output = Command::new(env!("CARGO_BIN_EXE_nearmiss"))
        .current_dir(place.path())
        .args(trace)
        .args(["-m", "zen3-milan", "--memory", "2GiB", "--"])
        .args(observer)
        .args([&program, "--calls", &CALLS.to_string()])
        .output()
        .unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout}{stderr}");
    let figure = |name: &str| {
        let found = stdout.split_whitespace().find_map(|word| word.strip_prefix(name)?.parse::<f64>().ok());
        found.unwrap_or_else(|| panic!("{name}: {stdout}{stderr}")) / NS_AN_INSTRUCTION
    };
    (figure("poll_ns="), figure("other_ns="), stderr.into_owned())
}

#[test]
fn a_poll_pays_for_itself_and_other_calls_pay_nothing() {
    let Some(_guest) = for_a_guest() else { return };
    let (poll, other, _) = poll_loop(&[]);
    let observer = [env!("CARGO_BIN_EXE_nearmiss"), "observe", "--polls", "--runs", "/tmp/runs", "--"];
    let (traced, beside, stderr) = poll_loop(&observer);
    assert!(stderr.contains("Polls: 5,000 calls") && stderr.contains("poll poll-loop"), "{stderr}");
    assert!(!stderr.contains("no BPF on functions"), "{stderr}");
    println!("instructions: a poll {poll:.0}, traced {traced:.0}; another call {other:.0}, beside them {beside:.0}");
    // A tick of the timer among the calls is some instructions a call; a syscall tracepoint would be a hundred and more.
    assert!((beside - other).abs() < 40.0, "{other} {beside}");
    assert!(traced - poll < 800.0, "{poll} {traced}");
}
