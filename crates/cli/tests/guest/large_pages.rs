//! `nearmiss diagnose` on a program that would rather have large pages, from its start to its end.

#![allow(clippy::unwrap_used)]

use crate::cores::machine_with_cores;
use crate::diagnosing::in_user_mode;
use crate::guest_slots::for_a_guest;
use crate::subjects::subject;
use serde_json::Value;
use std::process::Command;

fn nearmiss(place: &std::path::Path, words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_nearmiss")).current_dir(place).args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn walks_of_a_program_that_ran_to_its_end_lead_to_a_finding_of_large_pages() {
    let Some(_guest) = for_a_guest() else { return };
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("cores.toml"), machine_with_cores()).unwrap();
    let program = subject("pointer-chase");
    let command = [program.as_str(), "--size", "16777216", "--steps", "100000"];
    let printed = nearmiss(place.path(), &[&in_user_mode("cores.toml", "1"), command.as_slice()].concat());
    let findings: Value = serde_json::from_str(&printed).unwrap();
    let mut found = findings["findings"].as_array().unwrap().iter();
    let finding = found.find(|finding| finding["remedy"] == "huge").unwrap_or_else(|| panic!("{findings:#}"));
    let lines = finding["evidence"]["lines"].to_string();
    // 16 MiB of the heap, of which the first and the last 2 MiB are not aligned.
    assert!(
        lines.contains("of the walks, to 14 MiB in 3,584 pages.") && lines.contains("7 pages of 2 MiB: 14 MiB"),
        "{lines}"
    );
    assert!(finding["prediction"]["gain"].as_f64().unwrap() > 0.2, "{}", finding["prediction"]);
}
