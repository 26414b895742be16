//! Ctrl-C and SIGTERM end every verb at once, with the status that a shell expects, and nothing is left.

#![allow(clippy::unwrap_used)]

use crate::guest_slots::for_a_guest;
use crate::subjects::subject;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The promise is half a second; a machine that runs other tests beside may take longer to look.
const AT_ONCE: Duration = Duration::from_secs(3);

fn start(directory: &Path, arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nearmiss"));
    command.args(arguments).current_dir(directory).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    // Tests also run in the background of a shell, where interrupts are ignored and stay so over exec.
    // SAFETY: between fork and exec only one system call is made.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            Ok(())
        })
    };
    let child = command.spawn().unwrap();
    listens(child.id());
    child
}

/// Waits until a process has a handler for SIGINT, or has ended: before, the signal's default action ends it.
fn listens(pid: u32) {
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(20) {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).map(str::trim);
        // A process that has ended has no such line, or none that is caught.
        if caught
            .is_none_or(|caught| u64::from_str_radix(caught, 16).is_ok_and(|set| set >> (libc::SIGINT - 1) & 1 == 1))
            || status.contains("State:\tZ")
        {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Sends a signal after a time; returns the process's status and its messages. It must end at once.
fn ended_by(mut child: Child, signal: &str, after: Duration) -> Option<(ExitStatus, String)> {
    std::thread::sleep(after);
    if child.try_wait().unwrap().is_some() {
        return None;
    }
    let sent = Instant::now();
    assert!(Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status().unwrap().success());
    while child.try_wait().unwrap().is_none() {
        assert!(sent.elapsed() < AT_ONCE, "not ended {AT_ONCE:?} after SIG{signal}");
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    Some((output.status, String::from_utf8_lossy(&output.stderr).into_owned()))
}

fn kept_runs(directory: &Path) -> usize {
    std::fs::read_dir(directory.join("nearmiss-runs")).map_or(0, Iterator::count)
}

#[test]
fn a_guest_that_boots_ends_at_every_instant_and_leaves_no_run() {
    let Some(_guest) = for_a_guest() else { return };
    let directory = tempfile::tempdir().unwrap();
    for (after_ms, signal, code) in [(30, "INT", 130), (150, "TERM", 143), (500, "INT", 130), (1200, "INT", 130)] {
        let child = start(directory.path(), &["trace", "--no-saved-boot", "-m", "zen3-milan", "--", "sleep", "60"]);
        let (status, stderr) = ended_by(child, signal, Duration::from_millis(after_ms)).unwrap();
        assert_eq!(status.code(), Some(code), "after {after_ms} ms: {stderr}");
        assert!(
            stderr.starts_with("nearmiss: interrupted") && stderr.lines().count() == 1,
            "after {after_ms} ms: {stderr}"
        );
        assert_eq!(kept_runs(directory.path()), 0, "after {after_ms} ms");
    }
}

fn interrupt(child: &Child) {
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
}

/// The next line of messages that has this text.
fn line_with(messages: &mut BufReader<ChildStderr>, text: &str) -> String {
    let mut lines = messages.by_ref().lines().map(Result::unwrap);
    lines.find(|line| line.contains(text)).unwrap_or_else(|| panic!("no line with {text:?}"))
}

/// Diagnoses a command that never ends, and would be recorded again for its finding. A later part than the first is
/// recorded or awaited.
fn recorded_for_its_diagnosis(directory: &Path) -> (Child, BufReader<ChildStderr>) {
    let begin = ["diagnose", "-m", "zen3-milan", "--memory", "1GiB", "--cpus", "1", "--"];
    let program = subject("aligned-tasks");
    let command = [&program, "--objects", "64", "--visits", "100000000000"];
    let mut child = start(directory, &[&begin[..], &command].concat());
    let mut messages = BufReader::new(child.stderr.take().unwrap());
    // After two seconds in the guest; the next line is ten seconds away.
    line_with(&mut messages, " of at most ");
    std::thread::sleep(Duration::from_secs(3));
    (child, messages)
}

#[test]
fn an_interrupted_command_is_recorded_no_second_time() {
    let Some(_guest) = for_a_guest() else { return };
    let directory = tempfile::tempdir().unwrap();
    let (mut child, mut messages) = recorded_for_its_diagnosis(directory.path());
    interrupt(&child);
    line_with(&mut messages, "what was recorded until then is diagnosed");
    let mut more = String::new();
    messages.read_to_string(&mut more).unwrap();
    assert!(child.wait().unwrap().success() && !more.contains("recording again"), "{more}");
    assert_eq!(kept_runs(directory.path()), 1);
}

#[test]
fn a_second_interrupt_drops_the_recording() {
    let Some(_guest) = for_a_guest() else { return };
    let directory = tempfile::tempdir().unwrap();
    let (mut child, mut messages) = recorded_for_its_diagnosis(directory.path());
    interrupt(&child);
    line_with(&mut messages, "again to drop the recording");
    interrupt(&child);
    let sent = Instant::now();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(sent.elapsed() < AT_ONCE, "{:?}", sent.elapsed());
    assert_eq!(kept_runs(directory.path()), 0);
}

#[test]
fn comparisons_end() {
    let directory = tempfile::tempdir().unwrap();
    let verify: &[&str] = &["verify", "commands", "sleep 30", "sleep 31"];
    for (verb, signal, code) in [(verify, "INT", 130), (verify, "TERM", 143)] {
        let ended = ended_by(start(directory.path(), verb), signal, Duration::from_millis(700));
        let (status, stderr) = ended.unwrap();
        assert_eq!((status.code(), stderr.lines().count()), (Some(code), 1), "{verb:?}: {stderr}");
        assert!(stderr.contains("interrupted"), "{verb:?}: {stderr}");
    }
    assert_eq!(kept_runs(directory.path()), 0);
}

#[test]
fn replays_end_and_leave_the_run_as_it_was() {
    let Some(_guest) = for_a_guest() else { return };
    let directory = tempfile::tempdir().unwrap();
    let words = (0..30_000u64).map(|n| format!("{}\n", n.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect::<String>();
    std::fs::write(directory.path().join("words"), words).unwrap();
    let trace = start(
        directory.path(),
        &["trace", "-q", "--one-line-filter", "-m", "zen3-milan", "--memory", "1GiB", "--", "sort", "words"],
    );
    assert!(trace.wait_with_output().unwrap().status.success());
    let run = std::fs::read_dir(directory.path().join("nearmiss-runs")).unwrap().next().unwrap().unwrap().path();
    let files = || {
        let names = std::fs::read_dir(&run).unwrap().map(|file| file.unwrap().file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    };
    let before = files();
    let report: &[&str] = &["report", "-m", "zen4-genoa"];
    for verb in [report, &["diagnose", "--all"], &["rehearse", "color", "--all"]] {
        for after_ms in [20, 200, 600] {
            let Some((status, stderr)) =
                ended_by(start(directory.path(), verb), "INT", Duration::from_millis(after_ms))
            else {
                continue;
            };
            assert_eq!(status.code(), Some(130), "{verb:?} after {after_ms} ms: {stderr}");
            assert_eq!(files(), before, "{verb:?} after {after_ms} ms");
        }
    }
}
