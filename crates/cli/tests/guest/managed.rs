//! Objects that a language's runtime gives out have the names of the user's own lines.
#![allow(clippy::unwrap_used)]

use crate::diagnosing::in_user_mode;
use crate::guest_slots::for_a_guest;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = include_str!("counters.go");

/// Builds the program; prints a line with the reason and returns `None` if there is no Go.
fn counters(directory: &Path) -> Option<PathBuf> {
    let (source, program) = (directory.join("counters.go"), directory.join("counters"));
    std::fs::write(&source, SOURCE).unwrap();
    let mut go = Command::new("go");
    go.current_dir(directory).args(["build", "-o"]).arg(&program).arg(&source);
    match go.output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(program)
        }
        Err(error) => {
            eprintln!("skipped: go does not run here: {error}");
            None
        }
    }
}

/// Findings of the program with these arguments.
fn diagnosed(program: &Path, arguments: &[&str]) -> Value {
    let place = tempfile::tempdir().unwrap();
    let mut nearmiss = Command::new(env!("CARGO_BIN_EXE_nearmiss"));
    nearmiss.current_dir(place.path()).args(in_user_mode("zen3-milan", "2")).arg(program).args(arguments);
    let output = nearmiss.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// `counters.go:22`, the first line of the source with this text.
fn line(text: &str) -> String {
    let number = SOURCE.lines().position(|line| line.contains(text)).unwrap() + 1;
    format!("counters.go:{number} main.")
}

#[test]
fn an_object_of_go_has_the_line_that_allocates_it() {
    let directory = tempfile::tempdir().unwrap();
    let Some(_guest) = for_a_guest() else { return };
    let Some(program) = counters(directory.path()) else { return };
    let findings = diagnosed(&program, &[]);
    let list = findings["findings"].as_array().unwrap();
    assert_eq!(list.len(), 1, "{findings:#}");
    let symptom = list[0]["symptom"].as_str().unwrap();
    assert!(symptom.contains(&format!("1 line of `{}", line("new(near)"))), "{symptom}");
    assert!(symptom.ends_with("(false sharing)"), "{symptom}");
    // The line that adds, not that of the function of `sync/atomic` that is inlined there.
    let text = list[0].to_string();
    assert!(text.contains("written by thread") && text.contains(&line("counter.Add")), "{findings:#}");
    assert!(!text.contains("type.go"), "{findings:#}");
    let change = list[0]["reach"]["inside"]["change"].as_str().unwrap();
    assert!(change.contains("Go: _ [64]byte"), "{change}");
}

#[test]
fn an_object_of_go_with_a_line_between_is_no_finding() {
    let directory = tempfile::tempdir().unwrap();
    let Some(_guest) = for_a_guest() else { return };
    let Some(program) = counters(directory.path()) else { return };
    let findings = diagnosed(&program, &["--apart"]);
    assert_eq!(findings["findings"].as_array().unwrap().len(), 0, "{findings:#}");
}
