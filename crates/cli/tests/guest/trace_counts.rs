//! `nearmiss trace --counts`: the misses of a whole trace, without a run.

use crate::guest_slots::for_a_guest;
use nearmiss_record::counts::{ByKind, CountsRecord, SCHEMA};
use nearmiss_record::model::ModelRecord;
use std::path::Path;
use std::process::{Command, Output};

fn nearmiss(place: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nearmiss")).current_dir(place).args(args).output().expect("nearmiss runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const COMMON: [&str; 7] = ["trace", "--only", "user", "--memory", "1GiB", "--timeout", "5m"];

/// Returns the record of a trace that ends well, and its output.
fn traced<T: serde::de::DeserializeOwned>(place: &Path, options: &[&str], command: &[&str]) -> (T, Output) {
    let output = nearmiss(place, &[&COMMON, options, &["--json", "record.json", "--"], command].concat());
    assert!(output.status.success(), "{options:?}: {}: {}", output.status, text(&output.stderr));
    let bytes = std::fs::read(place.join("record.json")).expect("a record");
    (serde_json::from_slice(&bytes).expect("a record of its schema"), output)
}

#[test]
fn counts_are_those_of_a_whole_trace_and_leave_no_run() {
    counts_agree("pentium-pro-4way-512k", false);
}

/// The tap runs its first level of instructions.
#[test]
fn counts_are_those_of_a_whole_trace_where_the_tap_runs_a_level() {
    counts_agree("xeon-sapphire-rapids", true);
}

fn counts_agree(machine: &str, in_the_tap: bool) {
    let Some(_guest) = for_a_guest() else { return };
    let place = tempfile::tempdir().expect("a temporary directory");
    let here = place.path();
    let words: String = (0..20_000u64).map(|n| format!("{:016x}\n", n.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    std::fs::write(here.join("words"), words).expect("written");
    let sort = ["sort", "-S", "8M", "--parallel=1", "words"];
    let (counts, output): (CountsRecord, _) = traced(here, &["-m", machine, "--counts", "--deterministic"], &sort);
    assert_eq!(counts.filter.first_level.is_some(), in_the_tap, "{:?}", counts.filter);
    assert!(!here.join("nearmiss-runs").exists(), "a run was kept");
    let mut left: Vec<_> = std::fs::read_dir(here).expect("files").flatten().map(|file| file.file_name()).collect();
    left.sort();
    assert_eq!(left, ["record.json", "words"], "no temporary file stays");
    assert_eq!(text(&output.stdout).lines().count(), 20_000, "standard output is the command's");
    let stderr = text(&output.stderr);
    let on = format!("modelled on {machine}, one CPU");
    for part in [&on, "CACHE", "L1d    loads", "L2     fetches"] {
        assert!(stderr.contains(part), "no `{part}`: {stderr}");
    }
    assert!(!stderr.contains("capacity") && !stderr.contains("conflict"), "classes are not distinguished: {stderr}");
    assert_eq!((counts.schema.as_str(), counts.exit_status, &counts.cut), (SCHEMA, Some(0), &None));

    // The shim of heap objects would move what it allocates.
    let whole = ["-m", machine, "--deterministic", "--no-heap", "--no-trace", "--cpus", "1", "--quiet"];
    let (model, _): (ModelRecord, _) = traced(here, &whole, &sort);
    let near = |what: &str, a: u64, b: u64, limit: u64| assert!(a.abs_diff(b) <= limit, "{what}: {a} and {b}");
    let totals = &model.totals;
    near("instructions", counts.instructions, totals.instructions, totals.instructions / 200);
    near("loads", counts.caches[0].references.loads, totals.loads, totals.loads / 200);
    near("stores", counts.caches[0].references.stores, totals.stores, totals.stores / 200);
    for (level, tally) in totals.levels.iter().enumerate() {
        let caches = counts.caches.iter().filter(|cache| usize::from(cache.level) == level + 1);
        let misses = caches.fold(ByKind::default(), |sum, cache| ByKind {
            loads: sum.loads + cache.misses.loads,
            stores: sum.stores + cache.misses.stores,
            fetches: sum.fetches + cache.misses.fetches,
        });
        let exact = ByKind::from(tally);
        for (kind, a, b) in [
            ("loads", misses.loads, exact.loads),
            ("stores", misses.stores, exact.stores),
            ("fetches", misses.fetches, exact.fetches),
        ] {
            near(&format!("{kind} that miss level {}", level + 1), a, b, (b / 1000).max(1000));
        }
    }
}

#[test]
fn a_run_that_is_cut_is_marked_and_still_counts() {
    let Some(_guest) = for_a_guest() else { return };
    let place = tempfile::tempdir().expect("a temporary directory");
    let args = ["trace", "--counts", "-m", "pentium-pro-4way-512k", "--memory", "1GiB", "--timeout", "1s", "--json"];
    let output = nearmiss(place.path(), &[&args[..], &["counts.json", "--", "sleep", "300"]].concat());
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{stderr}");
    assert!(stderr.contains("counted is what was until then") && stderr.contains("L1d    loads"), "{stderr}");
    assert!(stderr.contains("the guest's own init too"), "of the whole machine: {stderr}");
    let bytes = std::fs::read(place.path().join("counts.json")).expect("a record");
    let counts: CountsRecord = serde_json::from_slice(&bytes).expect("a record of counts");
    assert!(counts.cut.is_some() && counts.exit_status.is_none() && counts.instructions > 0);
}

#[test]
fn options_without_a_count_are_refused_before_anything_runs() {
    let place = tempfile::tempdir().expect("a temporary directory");
    for option in [["--cpus", "2"], ["--order", "modelled"], ["--max-trace", "1GiB"], ["--runs", "x"], ["-o", "x"]] {
        let output = nearmiss(place.path(), &[&["trace", "--counts"], &option[..], &["--", "true"]].concat());
        let stderr = text(&output.stderr);
        // A wrapper's status 2 would be its command's.
        assert_eq!(output.status.code(), Some(125), "{option:?}: {stderr}");
        assert!(stderr.contains(option[0]), "{stderr}");
    }
}
