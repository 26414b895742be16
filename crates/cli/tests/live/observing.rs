//! Runs `nearmiss observe`, one at a time.

#![allow(clippy::unwrap_used, dead_code)]

use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard};

pub const NEARMISS: &str = env!("CARGO_BIN_EXE_nearmiss");

/// One observation at a time: they would see each other's programs in the kernel.
static ALONE: Mutex<()> = Mutex::new(());

pub fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Returns the guard of a test that needs BPF; `None`, and a line with the reason, where there is none.
pub fn with_bpf() -> Option<MutexGuard<'static, ()>> {
    let guard = alone();
    match nearmiss_observe::bpf::usable() {
        Ok(()) => Some(guard),
        Err(why) => {
            println!("skipped: {why}");
            None
        }
    }
}

pub struct Observed {
    pub record: Value,
    pub stdout: String,
    pub stderr: String,
    pub code: i32,
    _directory: tempfile::TempDir,
    pub run: PathBuf,
}

pub fn observe(arguments: &[&str]) -> Observed {
    let directory = tempfile::tempdir().unwrap();
    let json = directory.path().join("record.json");
    let runs = directory.path().join("runs");
    let out = Command::new(NEARMISS)
        .args(["observe", "--runs", runs.to_str().unwrap(), "--json", json.to_str().unwrap()])
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let record = std::fs::read(&json).unwrap_or_else(|_| panic!("no record: {}", text(&out.stderr)));
    Observed {
        record: serde_json::from_slice(&record).unwrap(),
        stdout: text(&out.stdout),
        stderr: text(&out.stderr),
        code: out.status.code().unwrap_or(-1),
        run: std::fs::read_dir(&runs).unwrap().next().unwrap().unwrap().path(),
        _directory: directory,
    }
}
