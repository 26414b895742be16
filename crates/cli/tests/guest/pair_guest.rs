//! The scheduler of `apply pair --with sched-ext` in a guest with a kernel that has sched_ext, 2 cores of 2 hardware
//! threads: it loads, runs a program of two groups to its end with the right pairs beside each other, and is gone
//! afterwards, also when its loader is killed.
#![allow(clippy::unwrap_used)]

use crate::guest_slots::for_a_guest;
use crate::together::same_group;
use nearmiss_remedies::pair::apply::{KEPT_PAIRS, KEPT_PAIRS_SCHEMA, KeptPair, KeptPairs, KeptTask};
use nearmiss_tap::guest::KernelImage;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Eight threads that compute, of which the even ones are one group and the odd ones the other: 0 is the first process.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec / 1e9; }
static double end;
static void *work(void *given) { while (now() < end) for (volatile int n = 0; n < 100000; n++) { } return given; }
int main(int argc, char **argv) {
    pthread_t threads[7];
    end = now() + atof(argv[1]);
    for (int n = 0; n < 7; n++) pthread_create(&threads[n], NULL, work, NULL);
    work(NULL);
    for (int n = 0; n < 7; n++) pthread_join(threads[n], NULL);
}
"#;

fn program(place: &Path) -> PathBuf {
    let (source, program) = (place.join("groups.c"), place.join("groups"));
    std::fs::write(&source, PROGRAM).unwrap();
    let compiled = Command::new("cc").args(["-O1", "-pthread", "-o"]).arg(&program).arg(&source).status().unwrap();
    assert!(compiled.success());
    program
}

/// Input of the scheduler: likes share well; nothing for a blind one.
fn keep_table(run: &Path, is_blind: bool) {
    std::fs::create_dir_all(run).unwrap();
    let task = |order| KeptTask { order, name: format!("thread {order}"), weight: 1.0 };
    let all = (0..8).flat_map(|a| (0..8).filter(move |b| *b != a).map(move |b| (a, b)));
    let pair = |(task, beside): (usize, usize)| KeptPair {
        task,
        beside,
        of_alone: vec![if task % 2 == beside % 2 { 1.0 } else { 1.8 }; 3],
    };
    let pairs = if is_blind { Vec::new() } else { all.map(pair).collect() };
    let kept = KeptPairs {
        schema: KEPT_PAIRS_SCHEMA.into(),
        shared: None,
        nothing_proposed: false,
        tasks: (0..8).map(task).collect(),
        pairs,
    };
    std::fs::write(run.join(KEPT_PAIRS), serde_json::to_vec(&kept).unwrap()).unwrap();
}

/// Returns the output of a script in a guest with sched_ext; none where there can be no such guest.
fn in_guest(script: &str) -> Option<String> {
    let newer = KernelImage::newest_from((6, 16));
    crate::scripted::in_guest(
        newer.ok_or("no kernel with sched_ext: run scripts/setup-newer-kernel.sh".to_owned()),
        script,
    )
}

#[test]
fn the_scheduler_puts_groups_together_and_leaves_nothing() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let program = program(place.path());
    keep_table(&place.path().join("table"), false);
    keep_table(&place.path().join("blind"), true);
    let nearmiss = env!("CARGO_BIN_EXE_nearmiss");
    let (place, program) = (place.path().display(), program.display());
    let script = format!(
        "cat /sys/kernel/sched_ext/state
         for round in 1 2; do for table in table blind; do
             {nearmiss} apply pair --with sched-ext --domain smt --table {place}/$table --json /tmp/$table.json -- \
                 {program} 2 2>&1
             cat /tmp/$table.json; echo
             cat /sys/kernel/sched_ext/state
         done; done
         {nearmiss} apply pair --with sched-ext --domain smt --table {place}/table -- {program} 60 2>/dev/null &
         until [ \"$(cat /sys/kernel/sched_ext/state)\" = enabled ]; do sleep 0.05; done
         kill -9 $!; sleep 1; cat /sys/kernel/sched_ext/state"
    );
    let Some(_guest) = for_a_guest() else { return };
    let Some(printed) = in_guest(&script) else { return };
    let records: Vec<serde_json::Value> =
        printed.lines().filter(|line| line.starts_with('{')).map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(records.len(), 4, "{printed}");
    let states: Vec<&str> =
        printed.lines().filter(|line| matches!(*line, "enabled" | "disabled" | "disabling")).collect();
    assert_eq!(states, ["disabled"; 6], "{printed}");
    for record in &records {
        assert_eq!((record["tasks"].as_u64(), record["known"].as_u64()), (Some(8), Some(8)), "{printed}");
        let programs = record["scheduler"]["programs"].as_array().unwrap();
        assert!(
            programs.len() == 6 && programs.iter().all(|program| program["verified"].as_u64() > Some(0)),
            "{printed}"
        );
    }
    let [first, blind, second, again_blind] = [0, 1, 2, 3].map(|at| same_group(&records[at]));
    eprintln!("same group: {first:.2} and {second:.2} by the table, {blind:.2} and {again_blind:.2} blind");
    assert!(first >= 0.7 && second >= 0.7 && blind <= 0.6 && again_blind <= 0.6, "{printed}");
}
