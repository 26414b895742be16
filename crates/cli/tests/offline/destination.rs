//! A verb's destination is checked before its command runs: a command that takes long is not run for nothing.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn nearmiss(place: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nearmiss")).current_dir(place).args(words).output().unwrap()
}

/// Wrappers end with 125, since 2 may be their command's status.
const WRAPPERS: [&str; 3] = ["trace", "observe", "apply"];

/// Every verb that runs a command for long, with a destination that takes no file.
const CASES: &[&[&str]] = &[
    &["trace", "--runs", "file/runs"],
    &["trace", "--runs", "/proc/runs"],
    &["trace", "--json", "/proc/model.json"],
    &["trace", "--counts", "--json", "file/counts.json"],
    &["observe", "--clock", "--runs", "file/runs"],
    &["observe", "--clock", "--runs", "/proc/runs"],
    &["observe", "--clock", "--json", "/proc/observed.json"],
    &["observe", "--clock", "--json", "directory"],
    &["apply", "apart", "--json", "/proc/applied.json"],
    &["apply", "bypass", "--copies", "--json", "missing/applied.json"],
    &["diagnose", "--runs", "file/runs"],
    &["diagnose", "--live", "--runs", "/proc/runs"],
    &["verify", "apart", "--runs", "file/runs"],
    &["verify", "apart", "--runs", "/proc/runs"],
    &["verify", "apart", "--in-guests", "xeon-mp-4way-l3", "--runs", "file/runs"],
];

#[test]
fn a_destination_that_takes_no_file_is_refused_before_the_command_runs() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("file"), "mine").unwrap();
    fs::create_dir(place.path().join("directory")).unwrap();
    for words in CASES {
        let output = nearmiss(place.path(), &[*words, &["--", "touch", "ran"]].concat());
        let stderr = String::from_utf8(output.stderr).unwrap();
        let status = if WRAPPERS.contains(&words[0]) { 125 } else { 2 };
        assert_eq!(output.status.code(), Some(status), "{words:?}: {stderr}");
        let wrong = words.last().unwrap();
        assert!(stderr.lines().count() == 1 && stderr.contains(wrong), "{words:?}: {stderr}");
        assert!(!place.path().join("ran").exists(), "{words:?}");
    }
    let mut names: Vec<_> = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["directory", "file"]);
}

#[test]
fn a_comparison_in_guests_that_cannot_begin_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    for (words, why) in [
        (&["--in-guests", "no-such-machine"][..], "no-such-machine: no such machine; presets: "),
        (&["--in-guests", "xeon-mp-4way-l3", "--require-gain", "5%"], "cannot be used with"),
        (&["--in-guests", "xeon-mp-4way-l3", "--prepare", "touch ran"], "cannot be used with"),
    ] {
        let output = nearmiss(place.path(), &[&["verify", "apart"], words, &["--", "touch", "ran"]].concat());
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), stderr.lines().count()), (Some(2), 1), "{stderr}");
        assert!(stderr.contains(why), "{stderr}");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0, "{words:?}");
    }
}
