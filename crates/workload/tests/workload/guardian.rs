//! Nothing is left of a command after its launcher is killed, and signals sent to a wrapper reach its command. The
//! launcher is this test program, started again.

#![allow(clippy::unwrap_used)]

use nearmiss_workload::{ForwardSignals, GuardedFiles, ProcessGroup, Workload};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Not a test of its own: what the tests below start as their launcher.
#[test]
fn launcher() {
    let Some(group) = std::env::var_os("NM_TEST_LAUNCHER") else {
        return;
    };
    let group = if group == "own" { ProcessGroup::Own } else { ProcessGroup::Launcher };
    let file = PathBuf::from(std::env::var_os("NM_TEST_FILE").unwrap());
    let parent = file.parent().unwrap();
    let _files = GuardedFiles::write(parent, "guarded-", &[("one", b"1"), ("two", b"2")]).unwrap();
    let script = "trap 'exit 9' TERM; sleep 100 & echo pids $$ $!; wait";
    let running = Workload::new(["sh", "-c", script])
        .group(group)
        .restore_if_killed(file.with_extension("setting"), "as before")
        .launch_suspended()
        .unwrap()
        .resume()
        .unwrap();
    let _forward = ForwardSignals::to(&running);
    let status = running.wait().unwrap().status;
    std::process::exit(status.wrapper_code().into());
}

fn start(group: &str, file: &Path) -> (Child, Vec<i32>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "guardian::launcher", "--nocapture", "--test-threads=1"])
        .env("NM_TEST_LAUNCHER", group)
        .env("NM_TEST_FILE", file)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let pids = lines
        .map(|line| line.unwrap())
        .find_map(|line| {
            let (_, pids) = line.split_once("pids ")?;
            Some(pids.split_whitespace().map(|pid| pid.parse().unwrap()).collect())
        })
        .unwrap();
    (child, pids)
}

fn all_gone(pids: &[i32]) -> bool {
    let start = Instant::now();
    let alive = |pid: &i32| std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|s| !s.contains(") Z"));
    while pids.iter().any(alive) {
        if start.elapsed() > Duration::from_secs(3) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

/// Directories of guarded files in `parent`.
fn guarded(parent: &Path) -> usize {
    let names = std::fs::read_dir(parent).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().starts_with("guarded-")).count()
}

fn soon(holds: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while !holds() && start.elapsed() < Duration::from_secs(3) {
        std::thread::sleep(Duration::from_millis(5));
    }
    holds()
}

#[test]
fn killing_the_launcher_kills_the_command_removes_its_files_and_restores_settings() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    let setting = file.with_extension("setting");
    std::fs::write(&setting, "changed for the command").unwrap();
    let (mut launcher, pids) = start("own", &file);
    assert_eq!(guarded(dir.path()), 1);
    launcher.kill().unwrap();
    launcher.wait().unwrap();
    assert!(all_gone(&pids), "{pids:?}");
    assert!(soon(|| guarded(dir.path()) == 0 && std::fs::read_to_string(&setting).unwrap() == "as before"));
}

/// Not a test of its own either: writes files again and again, until it is killed.
#[test]
fn writer() {
    let Some(parent) = std::env::var_os("NM_TEST_PARENT") else {
        return;
    };
    loop {
        let bytes = vec![7u8; 100_000];
        drop(GuardedFiles::write(Path::new(&parent), "guarded-", &[("one", &bytes), ("two", &bytes)]).unwrap());
    }
}

#[test]
fn no_instant_of_a_kill_leaves_files() {
    let dir = tempfile::tempdir().unwrap();
    for kill in 0..30u64 {
        let mut writer = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "guardian::writer", "--test-threads=1"])
            .env("NM_TEST_PARENT", dir.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_micros(3_000 + kill * kill * 97 % 23_000));
        writer.kill().unwrap();
        writer.wait().unwrap();
        assert!(soon(|| guarded(dir.path()) == 0), "kill {kill} left files");
    }
}

#[test]
fn files_are_readable_and_gone_when_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let files = GuardedFiles::write(dir.path(), "guarded-", &[("one", b"1"), ("two", b"2")]).unwrap();
    let read: Vec<Vec<u8>> = files.paths().iter().map(|path| std::fs::read(path).unwrap()).collect();
    assert_eq!(read, [b"1", b"2"]);
    drop(files);
    assert_eq!(guarded(dir.path()), 0);
    // A name that cannot be written leaves nothing of those that could.
    assert!(GuardedFiles::write(dir.path(), "guarded-", &[("one", b"1"), ("no/such", b"2")]).is_err());
    assert_eq!(guarded(dir.path()), 0);
}

#[test]
fn a_signal_to_the_wrapper_reaches_its_command() {
    for group in ["own", "launcher"] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        let (mut launcher, pids) = start(group, &file);
        // The launcher prints before it forwards; give it the time to get there.
        std::thread::sleep(Duration::from_millis(100));
        // SAFETY: a signal to our own child.
        unsafe { libc::kill(launcher.id() as i32, libc::SIGTERM) };
        assert_eq!(launcher.wait().unwrap().code(), Some(9), "{group}");
        // The command's own background child lives on in the launcher's group: as ever.
        // SAFETY: the pid is of a process that this test started.
        unsafe { libc::kill(pids[1], libc::SIGKILL) };
    }
}
