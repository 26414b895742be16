//! `nearmiss doctor` tries what it claims, as the user who runs it, and names an emulator that fails at times.

#![allow(clippy::unwrap_used)]

use crate::guest_slots::for_a_guest;
use crate::login;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

const NEARMISS: &str = env!("CARGO_BIN_EXE_nearmiss");

fn row(output: &Output, name: &str) -> Option<Value> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    record["rows"].as_array().unwrap().iter().find(|row| row["name"] == name).cloned()
}

/// Returns the trial's finding, if a guest can run here.
fn tried(output: &Output) -> String {
    let row = row(output, "a trace of `true`").expect("nothing that a guest needs is missing");
    assert_eq!(row["state"], "works", "{row}");
    row["found"].as_str().unwrap().to_owned()
}

#[test]
fn doctor_traces_true_unless_it_is_to_be_quick() {
    let Some(_guest) = for_a_guest() else { return };
    let found = tried(&Command::new(NEARMISS).args(["doctor", "--json"]).output().unwrap());
    assert!(found.starts_with("in ") && found.ends_with(" s to boot (measured)"), "{found}");
    let quick = Command::new(NEARMISS).args(["doctor", "--quick", "--json"]).output().unwrap();
    assert_eq!(row(&quick, "a trace of `true`"), None);
}

#[test]
fn a_login_user_is_shown_a_guest_of_his_own() {
    let Some(_guest) = for_a_guest() else { return };
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can become another user");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    login::prepare(place.path());
    let doctor = login::nearmiss(place.path(), &["--groups=65534,29,100"]).args(["doctor", "--json"]).output().unwrap();
    if row(&doctor, "privilege").unwrap()["state"] == "missing" {
        println!("skipped: no user namespaces here");
        return;
    }
    assert!(tried(&doctor).ends_with("(measured)"));
}

#[test]
fn an_emulator_that_was_never_tested_is_named() {
    let Some(_guest) = for_a_guest() else { return };
    let place = tempfile::tempdir().unwrap();
    let fake = place.path().join("qemu-system-x86_64");
    fs::write(&fake, "#!/bin/sh\n[ \"$1\" = --version ] && echo QEMU emulator version 9.2.0\n").unwrap();
    fs::set_permissions(&fake, PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", place.path().display(), std::env::var("PATH").unwrap());
    let doctor = Command::new(NEARMISS).args(["doctor", "--quick", "--json"]).env("PATH", path).output().unwrap();
    let emulator = row(&doctor, "emulator").unwrap();
    assert_eq!(emulator["state"], "limited");
    assert!(emulator["todo"].as_str().unwrap().contains("NEARMISS_QEMU"), "{emulator}");

    let printed = trace_under(&fake, place.path());
    assert!(printed.starts_with("nearmiss: QEMU 9.2 was never tested with nearmiss"), "{printed}");
}

fn trace_under(qemu: &Path, place: &Path) -> String {
    let options = ["trace", "-m", "zen3-milan", "--memory", "512MiB", "--cpus", "1", "--qemu"];
    let output =
        Command::new(NEARMISS).args(options).arg(qemu).args(["--", "true"]).current_dir(place).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    String::from_utf8(output.stderr).unwrap()
}
