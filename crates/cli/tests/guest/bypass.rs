//! Copies past the caches from end to end: found in a trace, rehearsed as a recording with real non-temporal stores has
//! it, and applied.
#![allow(clippy::unwrap_used)]

use crate::guest_slots::for_a_guest;
use crate::subjects::subject;
use nearmiss_analysis::Traced;
use nearmiss_machine::model::{Model, ModelOptions, ModelTotals};
use nearmiss_machine::observer::NullObserver;
use nearmiss_record::machine::Placement;
use nearmiss_record::policy::{Order, Policy};
use nearmiss_record::run::RunDir;
use nearmiss_record::trace::{TraceError, TraceReader, each_chunk};
use nearmiss_remedies::bypass::copies::past_the_caches;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

/// A second level of 512 KiB and a third of 32 MiB.
const MACHINE: &str = "zen3-milan";
const LINE: u64 = 64;

fn nearmiss(place: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nearmiss")).current_dir(place).args(words).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn nonsense_is_refused_in_one_line() {
    let place = tempfile::tempdir().unwrap();
    let refused = |words: &[&str], status: i32, what: &str| {
        let output = nearmiss(place.path(), &[words, &["--", "true"]].concat());
        let stderr = stderr(&output);
        assert_eq!(output.status.code(), Some(status), "{words:?}: {stderr}");
        assert!(stderr.lines().count() == 1 && stderr.contains(what), "{words:?}: {stderr}");
    };
    let apply = ["apply", "bypass"];
    refused(&apply, 125, "--copies [--site SITE]");
    refused(&[&apply[..], &["--copies", "--min", "64"]].concat(), 125, "no whole line");
    refused(&[&apply[..], &["--copies", "--every-copy", "--min", "4k"]].concat(), 125, "and ignores all else");
    // A wrapper's status 2 would be its command's.
    for (verb, status) in [("apply", 125), ("verify", 2)] {
        let refused = |words: &[&str], what: &str| refused(&[&[verb, "bypass"], words].concat(), status, what);
        refused(&["--files", "--min", "64k"], "cannot be used with");
        refused(&["--only", "*.tar"], "were not provided: --files");
        refused(&["--copies", "--every-copy", "--site", "keep"], "cannot be used with");
        refused(&["--copies", "--site", "keep", "--site", "keep"], "named twice");
    }
    let output = nearmiss(place.path(), &["apply", "bypass", "--copies", "--site", "tar+0xq", "--", "true"]);
    assert!(!output.status.success() && stderr(&output).contains("is no call site"), "{}", stderr(&output));
}

#[test]
fn without_a_site_apply_changes_nothing_and_reports_it() {
    let place = tempfile::tempdir().unwrap();
    let program = subject("stream-copy");
    let command = [program.as_str(), "--calls", "--copy", "64K", "--rounds", "2", "--table", "4K"];
    let output = nearmiss(place.path(), &[&["apply", "bypass", "--copies", "--"], &command[..]].concat());
    let plain = stderr(&output);
    assert!(output.status.success() && plain.contains("changed nothing, because no --site was named"), "{plain}");
    let words = ["apply", "bypass", "--copies", "--site", "keep_records", "--json", "done.json", "--"];
    let output = nearmiss(place.path(), &[&words, &command[..]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&std::fs::read(place.path().join("done.json")).unwrap()).unwrap();
    let site = report.pointer("/done/sites/0").or(report.pointer("/sites/0")).unwrap_or_else(|| panic!("{report}"));
    assert_eq!((site["calls"].as_u64(), site["bytes"].as_u64()), (Some(2 * 16), Some(2 << 16)), "{report}");
}

/// Diagnoses the subject with these words; its findings.
fn findings(place: &Path, words: &[&str]) -> Value {
    let program = subject("stream-copy");
    let begin = [
        "diagnose", "--within", "0", "--all", "--json", "-m", MACHINE, "--memory", "1GiB", "--cpus", "1", "--only",
        "user", "--", &program, "--calls",
    ];
    let output = nearmiss(place, &[&begin, words].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn bypass_finding(findings: &Value) -> &Value {
    let list = findings["findings"].as_array().unwrap();
    list.iter().find(|finding| finding["remedy"] == "bypass").unwrap_or_else(|| panic!("{findings}"))
}

/// Text of the lines of evidence.
fn evidence(finding: &Value) -> String {
    let lines = finding["evidence"]["lines"].as_array().unwrap();
    lines.iter().filter_map(|line| line["text"].as_str()).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_copy_that_pollutes_is_chosen_and_the_one_that_is_read_is_not() {
    let Some(_guest) = for_a_guest() else { return };
    let place = tempfile::tempdir().unwrap();
    let found = findings(place.path(), &["--copy", "2M", "--read", "256K", "--table", "256K", "--rounds", "8"]);
    let finding = bypass_finding(&found);
    assert!(finding["prediction"]["gain"].as_f64().unwrap() > 0.01, "{finding}");
    let apply: Vec<&str> = finding["apply"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(apply[..6], ["nearmiss", "apply", "bypass", "--copies", "--site", "keep_records"]);
    assert!(!apply.contains(&"read_records"), "{apply:?}");
    assert!(
        evidence(finding).contains("of the lines that it writes are read while a cache still has them"),
        "{finding}"
    );
    // The rehearsal of one that is read at once is a loss.
    let table = nearmiss(place.path(), &["rehearse", "bypass", "--sites", "read_records,keep_records", "--json"]);
    assert!(table.status.success(), "{}", stderr(&table));
    let table: Value = serde_json::from_slice(&table.stdout).unwrap();
    let rows = table["tables"][0]["table"]["rows"].as_array().unwrap();
    let gain = |name: &str| {
        let row = rows.iter().find(|row| row[0]["text"] == name).unwrap_or_else(|| panic!("{name}: {table}"));
        row.as_array().unwrap().iter().find_map(|cell| cell["share"].as_f64()).unwrap()
    };
    assert!(gain("read_records") < 0.0 && gain("keep_records") > 0.015, "{table}");
    // A name that nothing in the run has is refused by name.
    let unknown = nearmiss(place.path(), &["rehearse", "bypass", "--sites", "nobody"]);
    assert!(unknown.status.code() == Some(2) && stderr(&unknown).contains("--sites nobody"), "{}", stderr(&unknown));
}

#[test]
fn copies_that_fit_the_caches_are_advised_against() {
    let Some(_guest) = for_a_guest() else { return };
    let place = tempfile::tempdir().unwrap();
    let found = findings(place.path(), &["--copy", "128K", "--table", "64K", "--rounds", "20"]);
    let list = found["findings"].as_array().unwrap();
    let bypass = list.iter().filter(|finding| finding["remedy"] == "bypass");
    for finding in bypass {
        assert!(finding["prediction"]["gain"].as_f64().unwrap() < 0.02, "{finding}");
        assert!(evidence(finding).contains("fit the caches together"), "{finding}");
    }
}

/// Traces the subject's inline copy; its run.
fn traced(place: &Path, past: bool) -> RunDir {
    let program = subject("stream-copy");
    let mut words = vec!["trace", "-q", "-m", MACHINE, "--memory", "1GiB", "--cpus", "1", "--only", "user"];
    // A host beside which others run preempts the command now and then, which costs it lines.
    words.extend(["--deterministic", "--no-curve", "--carry", "stores"]);
    words.extend(["--", &program, "--copy", "2M", "--table", "256K", "--rounds", "6"]);
    words.extend(past.then_some("--non-temporal"));
    let output = nearmiss(place, &words);
    assert!(output.status.success(), "{}", stderr(&output));
    let runs = std::fs::read_dir(place.join("nearmiss-runs")).unwrap().flatten();
    RunDir::open(&runs.max_by_key(std::fs::DirEntry::file_name).unwrap().path()).unwrap()
}

/// A run under a policy, with pages in the order of first touch: two guests place them differently, which the physical
/// index of the outer levels would show.
fn replayed(case: &Traced, policy: &Policy) -> ModelTotals {
    let mut machine = case.machine().clone();
    machine.memory.placement = Placement::Sequential;
    let mut trace = TraceReader::open(&case.run.file(nearmiss_record::run::TRACE)).unwrap();
    let options = ModelOptions::of(&trace.header().clone(), Order::Recorded);
    let mut model = Model::new(&machine, policy, &options, NullObserver).unwrap();
    each_chunk(&mut trace, |head, records| {
        model.chunk(head, records).unwrap();
        Ok::<_, TraceError>(())
    })
    .unwrap();
    model.finish().unwrap().0
}

#[test]
fn a_rehearsal_misses_as_a_recording_with_real_non_temporal_stores_does() {
    let Some(_guest) = for_a_guest() else { return };
    let place = tempfile::tempdir().unwrap();
    let open = |past| Traced::open(&traced(place.path(), past), None, None, &|_, _| ()).unwrap();
    let (plain, real) = (open(false), open(true));
    let policy = past_the_caches(&plain, &["copy".parse().unwrap()]).unwrap();
    let rehearsed = replayed(&plain, &policy).sum();
    let recorded = replayed(&real, &Policy::default()).sum();
    let lines = 6 * (2 << 20) / LINE;
    assert_eq!((rehearsed.bus.nt_full, rehearsed.bus.nt_partial), (lines, 0));
    assert_eq!((recorded.bus.nt_full, recorded.bus.nt_partial), (lines, 0));
    for (level, (rehearsed, recorded)) in rehearsed.levels.iter().zip(&recorded.levels).enumerate() {
        let (rehearsed, recorded) = (rehearsed.misses(), recorded.misses());
        let apart = rehearsed.abs_diff(recorded) as f64 / recorded as f64;
        assert!(apart < 0.05, "level {}: {rehearsed} rehearsed, {recorded} recorded", level + 1);
    }
    let as_it_was = replayed(&plain, &Policy::default()).sum().levels[1].misses();
    assert!(rehearsed.levels[1].misses() * 2 < as_it_was, "{as_it_was} misses as it was");
}
