//! The road from a command to findings is built once: one crate makes models of runs, the command line uses only their
//! descriptions of machines, and one place reads arguments.

use crate::product::product;
use std::fs;
use std::path::{Path, PathBuf};

/// Crates that make models.
const MODELS: [&str; 2] = ["crates/machine/", "crates/analysis/"];
/// Files that read the arguments of a process: nearmiss, its conductor in a guest, and the programs that `usage` reads for.
const ENTRIES: [&str; 3] = ["crates/cli/src/lib.rs", "crates/cli/src/conductor.rs", "crates/usage/src/wrong_use.rs"];

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        if path.is_dir() && !["tests", "benches", "examples"].iter().any(|name| path.ends_with(name)) {
            sources(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") && !path.to_string_lossy().ends_with("tests.rs") {
            found.push(path);
        }
    }
}

/// Files of these folders that have product code like this.
fn files_with(folders: &[&str], is_like: impl Fn(&str) -> bool) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    folders.iter().for_each(|folder| sources(&root.join(folder), &mut files));
    let found = files.iter().filter(|file| is_like(&product(&fs::read_to_string(file).expect("a source file"))));
    let mut paths: Vec<String> =
        found.map(|file| file.strip_prefix(&root).expect("below the root").display().to_string()).collect();
    paths.sort();
    paths
}

/// Files with one of these words in their product code that are in none of the places.
fn elsewhere(words: &[&str], places: &[&str]) -> Vec<String> {
    let mut found = files_with(&["crates", "libs", "apps"], |code| words.iter().any(|word| code.contains(word)));
    found.retain(|path| !places.iter().any(|place| path.starts_with(place)));
    found
}

/// Whether code uses a part of `machine` other than its descriptions.
fn uses_more_than_descriptions(code: &str) -> bool {
    code.split("nearmiss_machine").skip(1).any(|behind| !behind.starts_with("::describe"))
}

#[test]
fn one_crate_makes_models_of_runs() {
    assert_eq!(elsewhere(&["Model::new("], &MODELS), Vec::<String>::new());
    assert!(!elsewhere(&["Model::new("], &[]).is_empty(), "a model elsewhere would be seen");
}

#[test]
fn the_command_line_uses_descriptions_of_machines_alone() {
    assert_eq!(files_with(&["crates/cli"], uses_more_than_descriptions), Vec::<String>::new());
    let uses = ["use nearmiss_machine::{describe, model};", "nearmiss_machine::model::Model::new()"];
    assert!(uses.into_iter().all(uses_more_than_descriptions), "another use would be seen");
    assert!(!uses_more_than_descriptions("use nearmiss_machine::describe::{self, preset};"));
}

#[test]
fn arguments_are_read_at_the_entry() {
    let words = ["parse_from(", "try_parse(", "get_matches_from", "get_matches("];
    assert_eq!(elsewhere(&words, &ENTRIES), Vec::<String>::new());
    assert!(!elsewhere(&words, &[]).is_empty(), "another reader would be seen");
}
