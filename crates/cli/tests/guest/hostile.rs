//! Killed at any instant nearmiss leaves nothing, and damaged files are read or refused: the commands of
//! `experiments/hostile`, with as many kills and mutants as a test may take.

#![allow(clippy::unwrap_used)]

use crate::guest_slots::for_a_guest;
use std::path::Path;
use std::process::Command;

/// Runs a script of `experiments/hostile` on the binary of this build; its output where it found something.
fn wrong(script: &str, arguments: &[&str]) -> Option<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/hostile").join(script);
    let binary = ["--nearmiss", env!("CARGO_BIN_EXE_nearmiss")];
    let out = Command::new("python3").arg(path).args(binary).args(arguments).output().unwrap();
    let printed = [out.stdout, out.stderr].concat();
    (!out.status.success()).then(|| String::from_utf8_lossy(&printed).into_owned())
}

#[test]
fn hostile_treatment_does_no_harm() {
    let Some(_guest) = for_a_guest() else { return };
    // One after the other: what a run of the second has open, the first would take for left.
    assert_eq!(wrong("kills.py", &["--kills", "4"]), None);
    assert_eq!(wrong("mutants.py", &["--mutants", "32"]), None);
}
