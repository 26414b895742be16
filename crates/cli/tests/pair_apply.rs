//! `apply pair` at the command line: it engages in a command and in a process that runs, gives back what it changed, and
//! refuses in one sentence, with status 125, what it cannot do here.
#![allow(clippy::unwrap_used)]

use nearmiss_remedy::pair::apply::{KEPT_PAIRS, KEPT_PAIRS_SCHEMA, KeptPair, KeptPairs, KeptTask};
use nearmiss_workload::CpuSet;
use std::path::Path;
use std::process::{Command, Stdio};

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
fn a_command_keeps_its_status_and_what_was_done_is_said() {
    if !has_two_cpus() {
        return;
    }
    let record = tempfile::NamedTempFile::new().unwrap();
    let options = ["--json", record.path().to_str().unwrap()];
    let (status, said) =
        apply(&[], &options, &["--", "sh", "-c", "(sleep 0.2) & (sleep 0.2) & (sleep 0.2) & wait; exit 7"]);
    if said.contains("listen for the tasks") {
        eprintln!("skipped: {said}");
        return;
    }
    assert_eq!(status, 7, "{said}");
    assert!(said.contains("pair (measured): engaged with affinity"), "{said}");
    let record: serde_json::Value = serde_json::from_slice(&std::fs::read(record.path()).unwrap()).unwrap();
    assert_eq!((record["schema"].as_str(), record["known"].as_u64()), (Some("nearmiss/pair-applied/1"), Some(4)));
}

#[test]
fn what_cannot_be_done_here_is_refused_in_a_sentence() {
    let no_cpus = apply(&["taskset", "-c", "0"], &[], &["--", "true"]);
    assert_eq!(no_cpus.0, 125, "{}", no_cpus.1);
    assert!(no_cpus.1.contains("needs two CPUs"), "{}", no_cpus.1);
    if !has_two_cpus() {
        return;
    }
    let no_process = apply(&[], &["-p", "4194304"], &[]);
    assert!(no_process.0 == 125 && no_process.1.contains("no such process"), "{no_process:?}");
    if std::fs::metadata("/sys/kernel/sched_ext").is_err() {
        let (status, said) = apply(&[], &["--with", "sched-ext"], &["--", "true"]);
        assert!(status == 125 && said.contains("has no sched_ext"), "{status} {said}");
    }
    let siblings = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list");
    if siblings.is_ok_and(|list| list.trim() == "0") {
        let (status, said) = apply(&[], &["--domain", "smt"], &["--", "true"]);
        assert!(status == 125 && said.contains("share a domain of level smt"), "{status} {said}");
    }
}

#[test]
fn other_remedies_say_that_they_take_no_process() {
    let mut nearmiss = Command::new(env!("CARGO_BIN_EXE_nearmiss"));
    let output = nearmiss.args(["apply", "color", "-p", "1"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(125) && said.contains("give its command after --"), "{said}");
}
