//! Snapshots of running processes: who is refused, and that no process is harmed, whoever is killed.

#![allow(clippy::unwrap_used)]

use crate::running::{Running, with_criu};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const BUSY: [&str; 3] = ["/bin/dash", "-c", "while :; do :; done"];
/// Instants of a dump at which nearmiss is killed; `experiments/hostile` has more.
const KILLS: u32 = 12;

fn trace(place: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nearmiss")).current_dir(place).arg("trace").args(words).output().unwrap()
}

fn refusal(words: &[&str]) -> String {
    let place = tempfile::tempdir().unwrap();
    let output = trace(place.path(), words);
    assert_eq!(output.status.code(), Some(125));
    assert!(std::fs::read_dir(place.path()).unwrap().next().is_none(), "something is left");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    stderr
}

#[test]
fn who_is_not_there_and_who_is_an_ancestor_are_refused() {
    assert!(refusal(&["-p", "999999999"]).contains("there is no such process; `ps -e` lists them"));
    if with_criu() {
        let own = std::process::id().to_string();
        assert!(refusal(&["-p", &own]).contains("is an ancestor of this nearmiss"));
    }
}

#[test]
fn a_process_that_only_waits_is_reported_to_wait() {
    if !with_criu() {
        return;
    }
    let idle = Running::start(&["sleep", "600"]);
    let stderr = refusal(&["-p", &idle.pid()]);
    assert!(stderr.contains("of a CPU, measured) for a time to pass: give it work with --load LOAD"), "{stderr}");
}

#[test]
fn a_pause_that_would_be_longer_than_allowed_is_refused() {
    if !with_criu() {
        return;
    }
    let busy = Running::start(&BUSY);
    let stderr = refusal(&["-p", &busy.pid(), "--pause-at-most", "1ms"]);
    assert!(stderr.contains("(predicted: ") && stderr.contains("--pause-at-most allows 0.00 s"), "{stderr}");
}

/// Numbers of the CRIU at work on a process, and of the processes on which it tries the kernel.
fn dumping(pid: &str) -> Vec<i32> {
    let words_of = |entry: &std::fs::DirEntry| {
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).into_owned())
    };
    let target = format!("\0-t\0{pid}\0");
    // Its wrappers have its words as well.
    let is_criu = |line: &String| {
        line.contains("dump\0--leave-running\0")
            && line.contains(&target)
            && !["/bin/sh", "sh", "setsid", "nice"].contains(&line.split('\0').next().unwrap_or_default())
    };
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let found = processes.filter(|entry| words_of(entry).is_some_and(|line| is_criu(&line)));
    found.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn mappings(process: &Running) -> usize {
    std::fs::read_to_string(format!("/proc/{}/maps", process.pid())).unwrap().lines().count()
}

fn wait_until(what: &str, done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn killing_nearmiss_in_the_middle_of_a_snapshot_harms_nobody() {
    if !with_criu() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let busy = Running::start(&BUSY);
    std::thread::sleep(Duration::from_millis(200));
    let before = mappings(&busy);
    let mut caught = 0;
    for kill in 0..KILLS {
        let mut nearmiss = Command::new(env!("CARGO_BIN_EXE_nearmiss"));
        nearmiss.current_dir(place.path()).args(["trace", "-p", &busy.pid(), "--load", "sleep 9", "--quiet"]);
        let mut nearmiss = nearmiss.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_until("CRIU begins", || !dumping(&busy.pid()).is_empty());
        std::thread::sleep(Duration::from_millis(u64::from(kill) * 8));
        caught += u32::from(!dumping(&busy.pid()).is_empty());
        nearmiss.kill().unwrap();
        nearmiss.wait().unwrap();
        wait_until("CRIU ends by itself", || dumping(&busy.pid()).is_empty());
        assert_eq!(busy.harmed(), Vec::<String>::new(), "kill {kill}");
        assert_eq!(mappings(&busy), before, "kill {kill}");
    }
    assert!(caught > 0, "CRIU was always done");
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains("nearmiss/images"), "{mounts}");
    // Removed after CRIU's end, and there for a moment while the CRIU of another test is at work.
    wait_until("CRIU's unfinished file is removed", || !Path::new("/run/criu.kdat.tmp").exists());
}

/// The process may end with CRIU; CRIU's own processes must.
#[test]
fn a_killed_criu_is_reported_and_leaves_none_of_its_processes() {
    if !with_criu() {
        return;
    }
    let reported = (0..KILLS).any(|kill| {
        let place = tempfile::tempdir().unwrap();
        let busy = Running::start(&BUSY);
        std::thread::sleep(Duration::from_millis(100));
        let mut nearmiss = Command::new(env!("CARGO_BIN_EXE_nearmiss"));
        nearmiss.current_dir(place.path()).args(["trace", "-p", &busy.pid(), "--load", "sleep 1", "--quiet"]);
        let nearmiss = nearmiss.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        wait_until("CRIU begins", || !dumping(&busy.pid()).is_empty());
        std::thread::sleep(Duration::from_millis(u64::from(kill) * 4));
        for number in dumping(&busy.pid()) {
            // One that has ended meanwhile is gone.
            // SAFETY: a system call that passes no memory.
            unsafe { libc::kill(number, libc::SIGKILL) };
        }
        let output = nearmiss.wait_with_output().unwrap();
        assert!(dumping(&busy.pid()).is_empty(), "kill {kill}");
        String::from_utf8_lossy(&output.stderr).contains("CRIU was killed while it took a snapshot of process")
    });
    assert!(reported, "CRIU was always done");
}
