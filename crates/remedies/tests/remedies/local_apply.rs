//! Every kind of new task is bound before it runs anything of the program's, whichever way the program was built; homes
//! reach what their rules name; and what can engage nowhere is refused.
#![allow(clippy::unwrap_used)]

use crate::probes::run_with;
use nearmiss_analysis::{Applied, Engagement, wrap};
use nearmiss_remedies::local::apply::{Args, Bind, HomeOf, Mapping, Report, Target, apply};
use nearmiss_workload::{CpuSet, Node, Workload};
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles a probe, under a name of its own for each way to build it.
fn probe(sources: &[&str], name: &str, flags: &[&str]) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("local-probes");
    std::fs::create_dir_all(&directory).unwrap();
    let output = directory.join(name);
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../native/preload/local");
    let mut command = Command::new("cc");
    command.args(["-O1", "-g", "-pthread", "-Wall", "-Wextra", "-o"]).arg(&output).args(flags);
    command.args(sources.iter().map(|source| from.join(source)));
    assert!(command.status().unwrap().success(), "{name}");
    output
}

fn bound(bind: Bind) -> Args {
    Args { bind: Some(bind), ..Args::default() }
}

/// Returns the command's output, and the report on it.
fn run(workload: Workload, args: &Args) -> (String, Report) {
    let (workload, mut around) = apply(workload, args).unwrap();
    let (text, pid, finished) = run_with(workload, |pid| around.started(pid).unwrap());
    assert!(finished.status.success(), "{text}{:?}", finished.status);
    (text, around.report(pid).unwrap())
}

/// The first two CPUs that we may use, or why there is nothing to test.
fn two_cpus() -> Option<[usize; 2]> {
    let allowed: Vec<usize> = CpuSet::allowed().unwrap().iter().take(2).collect();
    let two = allowed.try_into().ok();
    if two.is_none() {
        eprintln!("skipped: one CPU, between which no task can choose");
    }
    two
}

/// Each kind of task with its CPU, in the order in which they begin.
const TASKS: [(&str, usize); 7] =
    [("main", 0), ("thread", 1), ("c11", 0), ("forked", 1), ("spawned", 1), ("spawned", 0), ("spawned", 1)];

#[test]
fn every_kind_of_task_takes_its_turn() {
    let Some(cpus) = two_cpus() else { return };
    let probe = probe(&["tests/tasks.c"], "tasks", &[]);
    let (text, report) = run(Workload::new([probe]), &bound(Bind::Plan(cpus.to_vec())));
    let wanted = TASKS.map(|(task, at)| format!("{task} {} of 1\n", cpus[at]));
    assert_eq!(text, wanted.concat());
    // A program that a fork executes keeps the fork's CPU.
    assert_eq!((report.bound, report.programs, report.refused), (6, 4, 0));
    assert!(report.to_string().starts_with("local (measured): engaged, 6 tasks bound to CPUs "), "{report}");
}

#[test]
fn a_static_program_is_followed_and_reported() {
    let Some(cpus) = two_cpus() else { return };
    let probe = probe(&["tests/tasks.c"], "tasks-static", &["-static"]);
    let workload = Workload::new([probe.as_os_str(), "late".as_ref()]);
    let (workload, mut around) = apply(workload, &bound(Bind::Plan(cpus.to_vec()))).unwrap();
    let mut output = tempfile::tempfile().unwrap();
    let suspended = workload.stdout(output.try_clone().unwrap()).launch_suspended().unwrap();
    let pid = suspended.pid();
    if let Err(why) = around.started(pid) {
        eprintln!("skipped: {why}");
        return;
    }
    assert!(suspended.resume().unwrap().wait().unwrap().status.success());
    let report = around.report(pid).unwrap();
    let mut text = String::new();
    output.rewind().unwrap();
    output.read_to_string(&mut text).unwrap();
    // Each spawn is a task of its own here, and the fork's program the fork's.
    let wanted = TASKS.map(|(task, at)| format!("{task} {} of 1\n", cpus[at]));
    assert_eq!(text, wanted.concat());
    assert_eq!((report.bound, report.programs), (6, 0));
    assert!(report.to_string().contains("loads no library: its new tasks are bound as the kernel announces them"));
}

#[test]
fn a_static_program_that_a_dynamic_one_starts_is_followed_too() {
    let Some(cpus) = two_cpus() else { return };
    let statically = probe(&["tests/tasks.c"], "tasks-under-a-shell", &["-static"]);
    let script = format!("'{}' late; true", statically.display());
    let (text, report) = run(Workload::new(["sh", "-c", &script]), &bound(Bind::Plan(cpus.to_vec())));
    if report.out_of_reach.iter().any(|what| what.contains("not bound one by one")) {
        eprintln!("skipped: {report}");
        return;
    }
    // It begins as a fork of the shell, and takes one turn or two: when the follower looks, it may be itself already.
    let cpu_of = |line: &str| line.split(' ').nth(1).and_then(|cpu| cpu.parse::<usize>().ok());
    let names: Vec<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, TASKS.map(|(task, _)| task), "{text}");
    assert!(text.lines().all(|line| line.ends_with(" of 1")), "{text}");
    let [thread, c11] = [1, 2].map(|at| cpu_of(text.lines().nth(at).unwrap()).unwrap());
    assert!(thread != c11 && cpus.contains(&thread) && cpus.contains(&c11), "{text}");
    assert!(report.to_string().contains(" tasks of theirs bound as the kernel announced them"), "{report}");
}

#[test]
fn homes_reach_what_their_rules_name() {
    let probe = probe(&["tests/rules.c", "rules.c", "../kit/calls.c"], "rules", &[]);
    let output = Command::new(probe).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    if text.contains('?') {
        eprintln!("skipped: this kernel shows no memory policies");
        return;
    }
    assert_eq!(text, "4 rules\nnn..\nnnii\n.i..\n..\n..\n7 pages, 0 refused\n");
}

fn home_of_a_call() -> HomeOf {
    let mapping = Mapping::Call { module: "true".into(), address: 1, nth: None, bytes: (0, u64::MAX) };
    HomeOf { mapping, target: Target::Node(0) }
}

#[test]
fn options_that_need_a_library_refuse_programs_without_and_name_those_that_reach_them() {
    let probe = probe(&["tests/tasks.c"], "tasks-pools", &["-static"]);
    let pools = Args { pools: Some(String::new()), ..Args::default() };
    let error = apply(Workload::new([probe]), &pools).unwrap_err();
    assert_eq!(error.exit_code(), 125);
    assert!(error.to_string().contains("--bind and --home all=…, which reach it"), "{error}");
}

#[test]
fn a_go_program_is_bound() {
    let go = Path::new("/usr/local/go/bin/go");
    if !go.is_file() {
        eprintln!("skipped: no Go program on this machine");
        return;
    }
    let workload = Workload::new([go.as_os_str(), "env".as_ref(), "GOOS".as_ref()]);
    let (text, report) = run(workload, &bound(Bind::RoundRobin));
    assert_eq!((text.as_str(), report.programs), ("linux\n", 0));
    assert!(report.bound >= 1 && report.out_of_reach.len() == 1, "{report}");
}

#[test]
fn one_node_and_no_other_request_cannot_engage() {
    if Node::with_memory().unwrap().len() > 1 {
        eprintln!("skipped: this machine has several nodes");
        return;
    }
    let homes = Args { homes: vec![home_of_a_call()], ..Args::default() };
    let error = apply(Workload::new(["true"]), &homes).unwrap_err();
    assert_eq!(error.exit_code(), 125);
    assert!(error.to_string().starts_with("this machine's memory is one node"), "{error}");
    // With a binding there is something to do, and the report notes what cannot be done.
    let both = Args { bind: Some(Bind::Compact), ..homes };
    let (workload, around) = apply(Workload::new(["true"]), &both).unwrap();
    let wrapped = wrap(Applied { workload, engagement: Box::new(around) }).unwrap();
    assert_eq!(wrapped.exit_code(), 0);
    assert!(wrapped.engaged.unwrap().text.ends_with("No home was given: this machine's memory is one node."));
}

#[test]
fn pools_are_in_place_or_the_run_is_invalid() {
    let pools = Args { pools: Some(String::new()), ..Args::default() };
    match apply(Workload::new(["true"]), &pools) {
        Err(error) => eprintln!("skipped: {error}"),
        Ok(_) => {
            let (_, report) = run(Workload::new(["true"]), &pools);
            assert_eq!((report.pooled, report.programs), (1, 1));
            let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../native/preload/color/tests/own_malloc.c");
            let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("local-own-malloc");
            let built =
                Command::new("cc").args(["-rdynamic", "-pthread", "-o"]).arg(&program).arg(own).status().unwrap();
            assert!(built.success());
            let (workload, around) = apply(Workload::new([program]), &pools).unwrap();
            let wrapped = wrap(Applied { workload, engagement: Box::new(around) }).unwrap();
            assert_eq!(wrapped.exit_code(), 125);
        }
    }
}
