//! Every call of the poll family waits for what gathers, and keeps each of its promises; what was done is counted exactly.
#![allow(clippy::unwrap_used)]

use crate::probes;
use nearmiss_analysis::CannotEngage;
use nearmiss_pace::Aim;
use nearmiss_remedies::pace;
use nearmiss_remedies::pace::apply::{Awake, Options, Report, apply};
use nearmiss_workload::Workload;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

/// Calls of the poll family, by name and by number; those that take a signal mask; those of epoll.
const KINDS: u64 = 16;
const MASKED: u64 = 9;
const EPOLLS: u64 = 6;
/// Events of the two calls that make a thread's rate known.
const WARM: u64 = 8 + 6;

fn build(output: &str, flags: &[&str]) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pace-probes");
    std::fs::create_dir_all(&directory).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../native/preload/pace/tests/waits.c");
    let output = directory.join(output);
    let mut command = Command::new("cc");
    command.args(["-O1", "-g", "-pthread", "-Wall", "-Wextra", "-o"]).arg(&output).arg(source).args(flags);
    assert!(command.status().unwrap().success());
    output
}

fn waits() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build("waits", &[]))
}

/// Runs a scenario with 100 ms between the calls.
fn run(scenario: &str) -> Report {
    let options = Options { aim: Aim::Interval(Duration::from_millis(100)) };
    let (workload, paced) = apply(Workload::new([waits().as_os_str(), scenario.as_ref()]), &options).unwrap();
    let (text, pid, finished) = probes::run(workload);
    assert!(finished.status.success(), "{text}{:?}", finished.status);
    paced.report(pid).unwrap()
}

/// Two calls make a thread's rate known: its first, and one before which nothing is known of the rate.
fn warm(kinds: u64) -> Awake {
    Awake { first: kinds, sparse: kinds, ..Awake::default() }
}

fn held_to(scenario: &str, sleeps: u64, events: u64, awake: Awake) -> Report {
    let report = run(scenario);
    let expected = (sleeps, events, awake);
    assert_eq!((report.sleeps, report.events, report.awake.clone()), expected, "{scenario}");
    assert_eq!((report.programs, report.aim.as_str()), (1, "every 100ms"));
    report
}

#[test]
fn a_call_brings_what_gathered_in_the_interval() {
    let report = held_to("gather", KINDS, KINDS * (WARM + 2), warm(KINDS));
    assert_eq!(report.calls, 3 * KINDS);
    assert!(report.slept_ns >= KINDS * 95_000_000, "{report:?}");
}

#[test]
fn timeout_zero_and_what_is_left_over_are_never_delayed() {
    let events = |kinds| kinds * (WARM + 1);
    held_to("at-once", 0, events(KINDS), Awake { at_once: KINDS, ..warm(KINDS) });
    held_to("left-over", 0, events(KINDS), Awake { left_over: KINDS, ..warm(KINDS) });
    // Registered in a way that the library does not see.
    held_to("unseen", 0, events(EPOLLS), Awake { not_known: EPOLLS, ..warm(EPOLLS) });
}

#[test]
fn deadlines_are_kept_shorter_and_longer_than_the_interval() {
    for scenario in ["near-deadline", "far-deadline"] {
        held_to(scenario, KINDS, KINDS * WARM, warm(KINDS));
    }
}

#[test]
fn a_signal_ends_the_sleep_under_the_mask_of_the_call() {
    held_to("interrupted", KINDS, KINDS * WARM, warm(KINDS));
    held_to("unmasked", MASKED, MASKED * WARM, warm(MASKED));
    held_to("masked", MASKED, MASKED * (WARM + 2), warm(MASKED));
}

#[test]
fn nothing_sleeps_where_nothing_gathers() {
    // One descriptor cannot bring two events; epoll does not report how many a set has.
    let alone = KINDS - EPOLLS;
    held_to("alone", 0, alone * 3, Awake { sparse: 2 * alone, ..warm(alone) });
    // A sleep in vain keeps two calls awake.
    held_to("in-vain", 2 * KINDS, KINDS * (WARM + 4), Awake { sparse: 3 * KINDS, ..warm(KINDS) });
}

#[test]
fn programs_that_load_no_library_are_refused() {
    let program = build("waits-static", &["-static"]);
    let refused =
        apply(Workload::new([program]), &Options::default()).err().map(|error: CannotEngage| error.to_string());
    let expected =
        "statically linked and loads no library; link it dynamically, or sleep between the waits in the program";
    assert!(refused.as_ref().is_some_and(|why| why.ends_with(expected)), "{refused:?}");
    assert!(pace::apply::apply(Workload::new(["true"]), &Options { aim: Aim::Interval(Duration::ZERO) }).is_err());
}
