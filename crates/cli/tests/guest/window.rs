//! `nearmiss trace --from --for --until`: the content of the run, and the message when the window never opens.

use crate::guest_slots::for_a_guest;
use nearmiss_record::model::ModelRecord;
use std::path::Path;
use std::process::{Command, Output};

fn nearmiss(place: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nearmiss")).current_dir(place).args(args).output().expect("nearmiss runs")
}

const COMMON: [&str; 7] = ["trace", "-m", "pentium-pro-4way-512k", "--cpus", "1", "--memory", "1GiB"];

/// `native/tap/tests/window.c`, built in `place`: four sweeps of 16,384 stores and 65,536 instructions, exit status 7.
fn program(place: &Path) -> bool {
    let native = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../native");
    let built = Command::new("cc")
        .args(["-std=gnu11", "-O1", "-g", "-I"])
        .args([&native.join("include"), Path::new("-o"), &place.join("window"), &native.join("tap/tests/window.c")])
        .status();
    if !built.as_ref().is_ok_and(std::process::ExitStatus::success) {
        eprintln!("skipped: no C compiler");
    }
    built.is_ok_and(|status| status.success())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_run_between_two_marks_holds_their_stores_and_states_its_window() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let here = place.path();
    let Some(_guest) = for_a_guest() else { return };
    if !program(here) {
        return;
    }
    let window = [
        "--only",
        "user",
        "--from",
        "mark:1",
        "--until",
        "mark:2",
        "--json",
        "model.json",
        "--go-on",
        "--timeout",
        "5m",
        "--",
        "./window",
    ];
    let output = nearmiss(here, &[&COMMON[..], &window[..]].concat());
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "the command's own status: {err}");
    assert_eq!(text(&output.stdout).lines().count(), 4, "the command's own output");
    let model: ModelRecord =
        serde_json::from_slice(&std::fs::read(here.join("model.json")).expect("model.json")).expect("a model record");
    let stores = model.totals.stores;
    assert!((2 * 16384..2 * 16384 + 20).contains(&stores), "{stores} stores");
    let instructions = model.totals.instructions;
    assert!((8 * 16384..8 * 16384 + 1000).contains(&instructions), "{instructions} instructions");
    let work = model.functions.iter().find(|row| row.name.contains("work")).expect("the function is named");
    assert_eq!(work.tally.stores, 16384);
    let note = "the window opens at mark 1, until mark 2; nothing outside it was recorded";
    let run = std::fs::read_dir(here.join("nearmiss-runs")).expect("runs").flatten().next().expect("a run").path();
    let manifest = std::fs::read_to_string(run.join("manifest.json")).expect("the manifest");
    assert!(manifest.contains(note), "{manifest}");
}

#[test]
fn a_window_that_never_opens_is_a_failure_of_the_wrapper_and_leaves_no_run() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let here = place.path();
    let Some(_guest) = for_a_guest() else { return };
    if !program(here) {
        return;
    }
    let output = nearmiss(here, &[&COMMON[..], &["--from", "mark:3", "--timeout", "5m", "--", "./window"]].concat());
    assert_eq!(output.status.code(), Some(125));
    let err = text(&output.stderr);
    assert_eq!(err.trim_end(), "nearmiss: the window never opened: mark 3: it was never reached");
    assert_eq!(std::fs::read_dir(here.join("nearmiss-runs")).map_or(0, Iterator::count), 0);
}

#[test]
fn a_guest_that_ends_before_the_window_opens_is_named_as_the_cause() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root may power a guest off");
        return;
    }
    let place = tempfile::tempdir().expect("a temporary directory");
    let Some(_guest) = for_a_guest() else { return };
    if !program(place.path()) {
        return;
    }
    let off = "echo o > /proc/sysrq-trigger; sleep 20";
    let options = ["--from", "mark:3", "--timeout", "5m", "--", "sh", "-c", off];
    let output = nearmiss(place.path(), &[&COMMON[..], &options].concat());
    let err = text(&output.stderr);
    assert_eq!(err.trim_end(), "nearmiss: the window never opened: the command powered the guest off");
}

#[test]
fn a_point_or_length_that_cannot_be_is_refused_before_anything_runs() {
    let place = tempfile::tempdir().expect("a temporary directory");
    for (option, value, message) in [
        ("--from", "main", "write mark:N, time:DURATION or symbol:NAME[@MODULE]"),
        ("--from", "mark:4096", "write mark:N, with N from 0 to 4095"),
        ("--until", "2", "write mark:N, with N from 0 to 4095"),
        ("--for", "0insn", "write a whole number of instructions above 0"),
        ("--for", "5", "write a time such as 500ms"),
    ] {
        let output = nearmiss(place.path(), &["trace", option, value, "--", "true"]);
        assert_eq!(output.status.code(), Some(125), "{option} {value}");
        assert!(text(&output.stderr).contains(message), "{}", text(&output.stderr));
    }
}
