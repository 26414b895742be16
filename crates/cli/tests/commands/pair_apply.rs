//! `apply pair` at the command line: it engages in a command and in a process that runs, gives back what it changed, and
//! refuses in one sentence, with status 125, what it cannot do here.
#![allow(clippy::unwrap_used)]

use nearmiss_remedies::pair::apply::{KEPT_PAIRS, KEPT_PAIRS_SCHEMA, KeptPair, KeptPairs, KeptTask};
use nearmiss_workload::CpuSet;
use rustix::process::{Pid, Signal, kill_process};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The first four tasks of a command, each beside each.
fn keep_table(run: &Path) {
    let task = |order| KeptTask { order, name: format!("task {order}"), weight: 1.0 };
    let all = (0..4).flat_map(|a| (0..4).filter(move |b| *b != a).map(move |b| (a, b)));
    let pair = |(task, beside): (usize, usize)| KeptPair {
        task,
        beside,
        of_alone: vec![if task % 2 == beside % 2 { 1.0 } else { 2.0 }; 3],
    };
    let kept = KeptPairs {
        schema: KEPT_PAIRS_SCHEMA.into(),
        shared: None,
        nothing_proposed: false,
        tasks: (0..4).map(task).collect(),
        pairs: all.map(pair).collect(),
    };
    std::fs::write(run.join(KEPT_PAIRS), serde_json::to_vec(&kept).unwrap()).unwrap();
}

/// Status and standard error of `apply pair` with a table, behind another command if there is one.
fn apply(before: &[&str], options: &[&str], command: &[&str]) -> (i32, String) {
    let run = tempfile::tempdir().unwrap();
    keep_table(run.path());
    let line = [before, &[env!("CARGO_BIN_EXE_nearmiss"), "apply", "pair", "--table", run.path().to_str().unwrap()]];
    let line = [line.concat().as_slice(), options, command].concat();
    let output = Command::new(line[0]).args(&line[1..]).stdin(Stdio::null()).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn has_two_cpus() -> bool {
    let has = CpuSet::allowed().unwrap().len() > 1;
    if !has {
        eprintln!("skipped: one CPU, between which and itself there is nothing to choose");
    }
    has
}

#[test]
fn a_command_keeps_its_status_and_the_acts_are_reported() {
    if !has_two_cpus() {
        return;
    }
    let record = tempfile::NamedTempFile::new().unwrap();
    let options = ["--json", record.path().to_str().unwrap()];
    let (status, stderr) =
        apply(&[], &options, &["--", "sh", "-c", "(sleep 0.2) & (sleep 0.2) & (sleep 0.2) & wait; exit 7"]);
    if stderr.contains("listen for the tasks") {
        eprintln!("skipped: {stderr}");
        return;
    }
    assert_eq!(status, 7, "{stderr}");
    assert!(stderr.contains("pair (measured): engaged with affinity"), "{stderr}");
    let record: serde_json::Value = serde_json::from_slice(&std::fs::read(record.path()).unwrap()).unwrap();
    assert_eq!((record["schema"].as_str(), record["known"].as_u64()), (Some("nearmiss/pair-applied/1"), Some(4)));
}

#[test]
fn an_inability_of_this_machine_is_refused_in_a_sentence() {
    let no_cpus = apply(&["taskset", "-c", "0"], &[], &["--", "true"]);
    assert_eq!(no_cpus.0, 125, "{}", no_cpus.1);
    assert!(no_cpus.1.contains("needs two CPUs"), "{}", no_cpus.1);
    if !has_two_cpus() {
        return;
    }
    let no_process = apply(&[], &["-p", "4194304"], &[]);
    assert!(no_process.0 == 125 && no_process.1.contains("no such process"), "{no_process:?}");
    if std::fs::metadata("/sys/kernel/sched_ext").is_err() {
        let (status, stderr) = apply(&[], &["--with", "sched-ext"], &["--", "true"]);
        assert!(status == 125 && stderr.contains("has no sched_ext"), "{status} {stderr}");
    }
    let siblings = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list");
    if siblings.is_ok_and(|list| list.trim() == "0") {
        let (status, stderr) = apply(&[], &["--domain", "smt"], &["--", "true"]);
        assert!(status == 125 && stderr.contains("share a domain of level smt"), "{status} {stderr}");
    }
}

#[test]
fn other_remedies_refuse_a_process() {
    let mut nearmiss = Command::new(env!("CARGO_BIN_EXE_nearmiss"));
    let output = nearmiss.args(["apply", "color", "-p", "1"]).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(125) && stderr.contains("give its command after --"), "{stderr}");
}

/// `apply pair` on a process of four tasks that runs, until it has set their masks.
struct Attached {
    process: Child,
    nearmiss: Child,
    _run: tempfile::TempDir,
}

impl Attached {
    fn start() -> Self {
        let run = tempfile::tempdir().unwrap();
        keep_table(run.path());
        let process = Command::new("sh").args(["-c", "sleep 60 & sleep 60 & sleep 60 & wait"]).spawn().unwrap();
        while children(process.id()).iter().filter(|pid| name(**pid) == "sleep").count() < 3 {
            std::thread::sleep(Duration::from_millis(5));
        }
        let words = ["apply", "pair", "--domain", "node", "--table", run.path().to_str().unwrap(), "-p"];
        let mut nearmiss = Command::new(env!("CARGO_BIN_EXE_nearmiss"));
        nearmiss.args(words).arg(process.id().to_string()).stderr(Stdio::piped());
        // Tests also run in the background of a shell, where interrupts are ignored and stay so over exec.
        // SAFETY: between fork and exec only one system call is made.
        unsafe {
            nearmiss.pre_exec(|| {
                libc::signal(libc::SIGINT, libc::SIG_DFL);
                Ok(())
            })
        };
        let attached = Attached { process, nearmiss: nearmiss.spawn().unwrap(), _run: run };
        attached.wait_until(|masks| masks.iter().all(|mask| *mask != all_cpus()));
        attached
    }

    /// Returns the masks of the shell and its children.
    fn masks(&self) -> Vec<String> {
        let tasks = [vec![self.process.id() as i32], children(self.process.id())].concat();
        assert_eq!(tasks.len(), 4, "{tasks:?}");
        tasks.into_iter().map(|task| CpuSet::of_task(task).unwrap().to_string()).collect()
    }

    fn wait_until(&self, are_so: impl Fn(&[String]) -> bool) {
        let begun = Instant::now();
        while !are_so(&self.masks()) {
            assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", self.masks());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn send(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.nearmiss.id() as i32).unwrap(), signal).unwrap();
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        for child in children(self.process.id()) {
            kill_process(Pid::from_raw(child).unwrap(), Signal::KILL).unwrap();
        }
        let _ = self.nearmiss.kill();
        let _ = self.process.kill();
        self.nearmiss.wait().unwrap();
        self.process.wait().unwrap();
    }
}

fn all_cpus() -> String {
    CpuSet::allowed().unwrap().to_string()
}

fn name(pid: i32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}

fn children(pid: u32) -> Vec<i32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    children.split_whitespace().map(|child| child.parse().unwrap()).collect()
}

#[test]
fn a_process_that_runs_has_its_masks_back_however_nearmiss_ends() {
    if CpuSet::allowed().unwrap().len() != 2 {
        eprintln!("skipped: not two CPUs, of which each would be a place");
        return;
    }
    for (signal, status) in [(Signal::INT, Some(0)), (Signal::TERM, Some(0)), (Signal::KILL, None)] {
        let mut attached = Attached::start();
        attached.send(signal);
        assert_eq!(attached.nearmiss.wait().unwrap().code(), status, "{signal:?}");
        // A guardian needs a moment.
        attached.wait_until(|masks| masks.iter().all(|mask| *mask == all_cpus()));
        let mut stderr = String::new();
        attached.nearmiss.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        let is_reported =
            stderr.contains("4 tasks by a rehearsal known of 4, 4 masks set, 0 moves later, 4 masks given back");
        assert_eq!(is_reported, status.is_some(), "{signal:?}: {stderr}");
    }
}

#[test]
fn nearmiss_ends_with_the_process() {
    if CpuSet::allowed().unwrap().len() != 2 {
        eprintln!("skipped: not two CPUs, of which each would be a place");
        return;
    }
    let mut attached = Attached::start();
    let children = children(attached.process.id());
    attached.process.kill().unwrap();
    assert_eq!(attached.nearmiss.wait().unwrap().code(), Some(0));
    for child in children {
        assert_eq!(CpuSet::of_task(child).unwrap().to_string(), all_cpus(), "its parent ended first");
        kill_process(Pid::from_raw(child).unwrap(), Signal::KILL).unwrap();
    }
}
