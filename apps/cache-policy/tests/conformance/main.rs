//! One test for each sentence of the RFCs that binds a cache, named by its section. `docs/reference/caching.md` lists
//! the sections, and what no test here can show because it is the accelerator's.

#![allow(clippy::unwrap_used, reason = "these functions are the tests' own")]

mod kit;
mod rfc5861;
mod rfc9110_conditions;
mod rfc9110_ranges;
mod rfc9111_fields;
mod rfc9111_reuse;
mod rfc9111_storing;
mod rfc9111_validation;
mod rfc9211;
mod rfc9213;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Returns the sections that the table of `docs/reference/caching.md` lists as passing, as the names of tests begin.
fn sections_listed_as_passing() -> BTreeSet<String> {
    let docs = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/caching.md")).unwrap();
    let rows = docs.lines().filter_map(|line| line.strip_prefix("| "));
    let cells = rows.filter_map(|row| row.split(" | ").collect::<Vec<_>>().try_into().ok());
    let passing = cells.filter(|[_, _, here]: &[&str; 3]| here.starts_with("passes"));
    passing.map(|[section, ..]| format!("rfc{}", section.replace([' ', '.'], "_"))).collect()
}

fn tests() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance");
    let files = fs::read_dir(folder).unwrap().map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap());
    let lines: Vec<String> = files.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    let named = lines.iter().filter_map(|line| line.strip_prefix("fn rfc")?.split_once("()"));
    named.map(|(name, _)| format!("rfc{name}")).collect()
}

#[test]
fn the_table_and_the_tests_name_the_same_sections() {
    let (sections, tests) = (sections_listed_as_passing(), tests());
    assert!(sections.len() > 35 && tests.len() > 135, "{} {}", sections.len(), tests.len());
    let begins = |test: &str, section: &str| {
        test.strip_prefix(section).is_some_and(|rest| rest.starts_with('_') || rest.is_empty())
    };
    let untested: Vec<_> = sections.iter().filter(|section| !tests.iter().any(|test| begins(test, section))).collect();
    let unlisted: Vec<_> = tests.iter().filter(|test| !sections.iter().any(|section| begins(test, section))).collect();
    assert!(untested.is_empty() && unlisted.is_empty(), "no test: {untested:?}; not in the table: {unlisted:?}");
}
