//! Programs that timers interrupt all the time get on in the guest: a runtime in Go, and the same in C.

use crate::guest_slots::for_a_guest;
use nearmiss_record::model::ModelRecord;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Build of one of `tests/timers`.
struct Build {
    compiler: &'static str,
    words: &'static [&'static str],
    source: &'static str,
}

const IN_C: Build = Build { compiler: "cc", words: &["-O1", "-pthread", "-o"], source: "preempted.c" };
const IN_GO: Build = Build { compiler: "go", words: &["build", "-o"], source: "shared_map.go" };

/// `None`, and one line with the reason, where there is no such compiler.
fn built(build: &Build, place: &Path) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guest/timers").join(build.source);
    let program = place.join("program");
    let built = Command::new(build.compiler).args(build.words).arg(&program).arg(source).env("GOCACHE", place).status();
    match built {
        Ok(status) => assert!(status.success(), "{}: {status}", build.source),
        Err(why) => {
            eprintln!("skipped: {}: {why}", build.compiler);
            return None;
        }
    }
    Some(program)
}

/// Each of four threads adds this often.
const EACH: &str = "50000";
const SUM: &str = "200000\n";

/// The program ends by itself with the right sum, and the timer leaves it nearly all of the CPUs' time.
fn gets_on(build: &Build) {
    let Some(_guest) = for_a_guest() else { return };
    let place = tempfile::tempdir().expect("a temporary directory");
    let Some(program) = built(build, place.path()) else { return };
    let model = place.path().join("model.json");
    let output = Command::new(env!("CARGO_BIN_EXE_nearmiss"))
        .current_dir(place.path())
        .args([
            "trace",
            "--no-trace",
            "--no-curve",
            "-m",
            "xeon-mp-4way-l3",
            "--memory",
            "1GiB",
            "--cpus",
            "2",
            "--timeout",
            "5m",
        ])
        .args([Path::new("--json"), &model, Path::new("--"), &program, Path::new(EACH)])
        .output()
        .expect("nearmiss runs");
    let report = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{report}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), SUM);
    let words: Vec<&str> = report.split_whitespace().collect();
    assert!(words.join(" ").contains("(time by instructions: timers leave programs their time)"), "{report}");
    let record: ModelRecord = serde_json::from_slice(&std::fs::read(&model).expect("a record")).expect("a model");
    let (ticks, command) = (record.ticks.cycles, record.totals.cycles);
    // By the host's clock: 31% to 43% of all.
    assert!(ticks * 20 < command, "{ticks} cycles of ticks beside {command} of the command");
}

#[test]
fn a_program_with_timers_and_signals_gets_on() {
    gets_on(&IN_C);
}

#[test]
fn a_program_in_go_gets_on() {
    gets_on(&IN_GO);
}
