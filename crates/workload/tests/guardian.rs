//! Nothing is left of a command whose launcher is killed, and signals sent to a wrapper
//! reach its command. The launcher is this test program, started again.

#![allow(clippy::unwrap_used)]

use nearmiss_workload::{ForwardSignals, ProcessGroup, Workload};
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
    let script = "trap 'exit 9' TERM; sleep 100 & echo pids $$ $!; wait";
    let running = Workload::new(["sh", "-c", script])
        .group(group)
        .remove_if_killed(&file)
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
        .args(["--exact", "launcher", "--nocapture", "--test-threads=1"])
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

#[test]
fn killing_the_launcher_kills_the_command_removes_its_files_and_restores_settings() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let setting = file.with_extension("setting");
    std::fs::write(&setting, "changed for the command").unwrap();
    let (mut launcher, pids) = start("own", &file);
    launcher.kill().unwrap();
    launcher.wait().unwrap();
    assert!(all_gone(&pids), "{pids:?}");
    let start = Instant::now();
    let restored = || std::fs::read_to_string(&setting).unwrap() == "as before";
    while (file.exists() || !restored()) && start.elapsed() < Duration::from_secs(3) {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(!file.exists() && restored());
}

#[test]
fn a_signal_to_the_wrapper_reaches_its_command() {
    for group in ["own", "launcher"] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let (mut launcher, pids) = start(group, &file);
        // The launcher prints before it forwards; give it the time to get there.
        std::thread::sleep(Duration::from_millis(100));
        // SAFETY: a signal to our own child.
        unsafe { libc::kill(launcher.id() as i32, libc::SIGTERM) };
        assert_eq!(launcher.wait().unwrap().code(), Some(9), "{group}");
        assert!(file.exists(), "removed though the launcher ended in order");
        // The command's own background child lives on in the launcher's group: as ever.
        // SAFETY: the pid is of a process that this test started.
        unsafe { libc::kill(pids[1], libc::SIGKILL) };
    }
}
