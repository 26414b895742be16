//! `nearmiss trace --warm`: the run's report of the run ahead, refusals, and that an interrupt ends everything.
#![allow(clippy::unwrap_used)]

use crate::guest_slots::for_a_guest;
use nearmiss_record::run::{Manifest, WarmRun};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

fn trace(place: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nearmiss"));
    let options = ["trace", "-m", "zen4-genoa", "--cpus", "1", "--memory", "1GiB", "--no-trace", "--no-curve"];
    command.args(options).args(words).current_dir(place).stdin(Stdio::null());
    command
}

fn runs(place: &Path) -> Vec<std::path::PathBuf> {
    std::fs::read_dir(place.join("nearmiss-runs"))
        .map(|runs| runs.flatten().map(|run| run.path()).collect())
        .unwrap_or_default()
}

/// The run ahead has one of the first process ids of its namespace.
#[test]
fn the_run_reports_how_the_run_ahead_ended() {
    let Some(_guest) = for_a_guest() else { return };
    let place = tempfile::tempdir().unwrap();
    let script = "test $$ -lt 20 && exit 3; exit 0";
    let done = trace(place.path(), &["--warm", "--", "sh", "-c", script]).output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let [run] = &runs(place.path())[..] else { panic!("one run is kept") };
    let manifest: Manifest = serde_json::from_slice(&std::fs::read(run.join("manifest.json")).unwrap()).unwrap();
    let warm = manifest.warm.unwrap();
    let time_ns = warm.run.as_ref().unwrap().time_ns;
    assert_eq!(warm.run, Some(WarmRun { time_ns, exit_status: Some(3), signal: None, cut: false }));
    assert!(warm.time_ns > time_ns && time_ns > 0, "{warm:?}");
    // The time for reading ahead may be over on a busy machine before the first file is open.
    assert!(warm.cut || (warm.files >= 3 && warm.bytes > 1 << 20), "{warm:?}");
    let note = "the run ahead exited with status 3, the recorded run exited with status 0";
    assert!(manifest.notes.iter().any(|kept| kept.starts_with(note)), "{:?}", manifest.notes);
    let page = String::from_utf8_lossy(&done.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains("to boot") && page.contains("to warm") && page.contains("in all"), "{page}");
}

#[test]
fn an_input_that_cannot_be_read_twice_is_refused_and_nothing_is_left() {
    let Some(_guest) = for_a_guest() else { return };
    let place = tempfile::tempdir().unwrap();
    let mut refused = trace(place.path(), &["--warm", "--", "cat"]);
    let done = refused.stdin(File::open("/dev/zero").unwrap()).output().unwrap();
    assert_eq!(done.status.code(), Some(125));
    let text = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(text.contains("neither a file nor a pipe") && text.lines().count() == 1, "{text}");
    assert!(runs(place.path()).is_empty());
}

#[test]
fn an_interrupt_ends_the_run_ahead_and_everything() {
    let Some(_guest) = for_a_guest() else { return };
    let place = tempfile::tempdir().unwrap();
    let words = ["--warm", "--warm-limit", "10m", "--", "sh", "-c", "test $$ -lt 20 && sleep 600"];
    let child = trace(place.path(), &words).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(15));
    // A test in the background of a shell would ignore an interrupt.
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(143), "{done:?}");
    assert!(runs(place.path()).is_empty());
}
