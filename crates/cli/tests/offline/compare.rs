//! `nearmiss report --compare` as a user types it, on kept runs: no guest is needed.

#![allow(clippy::unwrap_used)]

use nearmiss_record::comparison::{Figures, RunComparison};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/fixtures")
}

fn report(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nearmiss"));
    command.current_dir(fixtures()).arg("report").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn two_traces_as_text() {
    let output = report(&["--compare", "run-queue", "run-queue-colored", "--top", "2"]);
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
    insta::assert_snapshot!(text(&output.stdout));
}

#[test]
fn two_observations_as_text() {
    let output = report(&["--compare", "server-locked", "server-lock-free"]);
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
    insta::assert_snapshot!(text(&output.stdout));
}

#[test]
fn json_is_the_record_and_nothing_else() {
    let output = report(&["--json", "--compare", "run-queue-colored", "run-queue"]);
    let comparison: RunComparison = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(comparison.schema, "nearmiss/comparison/2");
    assert_eq!(
        (comparison.before[0].path.as_str(), comparison.after[0].path.as_str()),
        ("run-queue-colored", "run-queue")
    );
    let functions = comparison.tables.iter().find(|t| t.name == "functions").unwrap();
    assert_eq!(functions.rows[0].figures[0], Figures::new(60_900_000, 160_260_000));
    assert!(output.stderr.is_empty());
}

#[test]
fn the_page_is_written_at_the_requested_path() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("page.html");
    let html = format!("--html={}", file.display());
    let output = report(&["--compare", "server-locked", "server-lock-free", &html]);
    assert_eq!(text(&output.stdout), format!("{}\n", file.display()), "{}", text(&output.stderr));
    assert!(std::fs::read(&file).unwrap().starts_with(b"<!DOCTYPE html>"));
    for name in ["manifest.json", "model.json"] {
        std::fs::copy(fixtures().join("healthy").join(name), directory.path().join(name)).unwrap();
    }
    let output = report(&["--html", "--compare", "run-queue", directory.path().to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(directory.path().join("comparison.html").is_file(), "in the second run's directory by default");
}

#[test]
fn wrong_use_is_refused() {
    let messages: Vec<String> = [
        &["--compare", "run-queue", "server-locked"][..],
        &["--compare", "run-queue"],
        &["--compare", "run-queue", "healthy", "run-queue-colored"],
        &["--against", "run-queue"],
        &["--compare", "run-queue", "none"],
        &["--compare", "run-queue", "healthy", "--pprof", "file"],
        &["--compare", "run-queue", "healthy", "--function", "walk"],
        &["--compare", "run-queue", "healthy", "-m", "host"],
    ]
    .iter()
    .map(|arguments| {
        let output = report(arguments);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments:?}");
        format!("$ nearmiss report {}\n{}", arguments.join(" "), text(&output.stderr))
    })
    .collect();
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn the_same_run_twice_is_reported() {
    let output = report(&["--compare", "run-queue", "./run-queue/"]);
    assert!(output.status.success());
    assert!(text(&output.stdout).ends_with("Notes\n  A and B are the same run: nothing can differ.\n"));
}
