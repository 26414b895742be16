//! The house rules of the documents: short first pages, links that lead somewhere, results as the kept outputs have them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn lines_of(page: &str) -> Vec<String> {
    fs::read_to_string(root().join(page)).expect("a page").lines().map(str::to_owned).collect()
}

/// A script ends well; one without Python is skipped.
fn passes(words: &[&str]) {
    match Command::new("python3").args(words).current_dir(root()).output() {
        Err(why) => println!("skipped: python3: {why}"),
        Ok(output) => assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stdout)),
    }
}

#[test]
fn the_first_pages_are_short() {
    assert!(lines_of("README.md").len() <= 120);
    assert!(lines_of("ARCHITECTURE.md").len() <= 150);
}

#[test]
fn the_readme_begins_with_the_problem_a_picture_and_the_installation() {
    let head = lines_of("README.md")[..40].join("\n");
    for part in ["docs/pictures/report.svg", "## Install", "make run", "make test", "Debian 12 or 13"] {
        assert!(head.contains(part), "{part}");
    }
}

#[test]
fn a_decision_has_a_context_and_consequences_on_one_page() {
    for entry in fs::read_dir(root().join("docs/design")).expect("decisions").flatten() {
        let text = fs::read_to_string(entry.path()).expect("a page");
        let is_decision = ["**Context.**", "**Decision.**", "**Consequences.**"].iter().all(|part| text.contains(part));
        let is_short = text.lines().count() <= 40;
        assert!(entry.file_name() == "README.md" || is_decision && is_short, "{}", entry.path().display());
    }
}

#[test]
fn every_link_leads_somewhere_and_the_summary_lists_every_page() {
    passes(&["scripts/links.py"]);
}

#[test]
fn the_results_are_those_of_the_kept_outputs() {
    passes(&["scripts/results.py", "--check"]);
}
