//! Lines that move between CPUs are findings: who shares what, what would remedy it, and none where each has its own.
#![allow(clippy::unwrap_used)]

use crate::diagnosing::in_user_mode;
use crate::guest_slots::for_a_guest;
use crate::subjects::subject;
use serde_json::Value;
use std::process::Command;

/// Findings of the subject in this shape.
fn diagnosed(shape: &[&str]) -> Value {
    let place = tempfile::tempdir().unwrap();
    let program = subject("tenants");
    let begin = in_user_mode("zen3-milan", "2");
    // A loop that ends before the host gives the other CPU its slice runs alone, so both take many slices; a lock takes
    // more instructions a turn.
    let end = ["--times", if shape[0] == "--lock" { "100000" } else { "400000" }];
    let mut nearmiss = Command::new(env!("CARGO_BIN_EXE_nearmiss"));
    let output = nearmiss.current_dir(place.path()).args(begin).arg(&program).args(shape).args(end).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The one finding of this remedy, its gains in order.
fn finding(findings: &Value) -> &Value {
    let list = findings["findings"].as_array().unwrap();
    assert_eq!(list.len(), 1, "{findings:#}");
    assert_eq!(list[0]["remedy"], "apart");
    let [low, gain, high] = ["low", "gain", "high"].map(|name| list[0]["prediction"][name].as_f64().unwrap());
    // The recorded order, a quarter of a million references a slice, hides what the modelled one shows.
    assert!(low <= gain && gain <= high && low < 0.1 && gain > 0.3, "{low} {gain} {high}");
    assert!(list[0]["evidence"]["most_gain"].as_f64().unwrap() >= gain, "{findings:#}");
    &list[0]
}

fn text<'a>(finding: &'a Value, name: &str) -> &'a str {
    finding[name].as_str().unwrap()
}

#[test]
fn blocks_of_two_threads_on_one_line_are_moved_from_outside() {
    let Some(_guest) = for_a_guest() else { return };
    let findings = diagnosed(&["--blocks"]);
    let finding = finding(&findings);
    assert!(text(finding, "symptom").contains("1 line of malloc blocks from `tenants.c:"), "{finding:#}");
    assert!(text(finding, "symptom").ends_with("(false sharing)"), "{finding:#}");
    let words: Vec<&str> = finding["apply"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    assert_eq!(words[..5], ["nearmiss", "apply", "apart", "--sizes", "24-24"]);
}

#[test]
fn a_flag_beside_a_counter_is_moved_by_the_author() {
    let Some(_guest) = for_a_guest() else { return };
    let findings = diagnosed(&["--flag"]);
    let finding = finding(&findings);
    assert!(text(finding, "symptom").contains("1 line of `main::on_stack`"), "{finding:#}");
    let change = finding["reach"]["inside"]["change"].as_str().unwrap();
    assert!(
        change.starts_with("move the 8 bytes at offset 8 of `main::on_stack` away from the 8 bytes at offset 0"),
        "{change}"
    );
    assert!(finding["apply"].is_null());
}

#[test]
fn a_lock_alone_on_its_line_is_not_to_be_split() {
    let Some(_guest) = for_a_guest() else { return };
    let findings = diagnosed(&["--lock"]);
    let finding = finding(&findings);
    assert!(text(finding, "symptom").ends_with("(true sharing)"), "{finding:#}");
    assert_eq!(finding["prediction"]["of"], "the cycles at most");
    let change = finding["reach"]["inside"]["change"].as_str().unwrap();
    assert!(change.starts_with("hand the bytes over less often"), "{change}");
}

#[test]
fn objects_with_lines_of_their_own_are_no_finding() {
    let Some(_guest) = for_a_guest() else { return };
    for shape in ["--blocks", "--fields", "--counter"] {
        let findings = diagnosed(&[shape, "--padded"]);
        assert_eq!(findings["findings"].as_array().unwrap().len(), 0, "{shape}: {findings:#}");
    }
}
