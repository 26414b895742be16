//! Refusals of `apply pair`, each with status 125 and one sentence, and the command not begun. Stand-ins replace what
//! this machine lacks: files over the kernel's in a mount namespace, a library in place of the kernel, and guests.
#![allow(clippy::unwrap_used)]

use crate::guest_slots::for_a_guest;
use nearmiss_remedies::pair::apply::{KEPT_PAIRS, KEPT_PAIRS_SCHEMA, KeptPairs, KeptShared, KeptTask, SharedLevel};
use nearmiss_tap::guest::KernelImage;
use nearmiss_workload::CpuSet;
use std::path::Path;
use std::process::{Command, Stdio};

const NEARMISS: &str = env!("CARGO_BIN_EXE_nearmiss");

/// A table as a rehearsal leaves it; without pairs, which are not read before all else is in order.
fn keep_table(run: &Path, shared: Option<KeptShared>, nothing_proposed: bool) {
    let task = |order| KeptTask { order, name: format!("task {order}"), weight: 1.0 };
    let (schema, tasks) = (KEPT_PAIRS_SCHEMA.to_owned(), (0..4).map(task).collect());
    let kept = KeptPairs { schema, shared, nothing_proposed, tasks, pairs: Vec::new() };
    std::fs::write(run.join(KEPT_PAIRS), serde_json::to_vec(&kept).unwrap()).unwrap();
}

/// Returns the message of a script that applies `$1` to `$2`, which must not run. The table is in `$3`.
fn refused(script: &str, shared: Option<KeptShared>) -> String {
    refused_with(script, shared, false)
}

fn refused_with(script: &str, shared: Option<KeptShared>, nothing_proposed: bool) -> String {
    let place = tempfile::tempdir().unwrap();
    keep_table(place.path(), shared, nothing_proposed);
    let ran = place.path().join("ran");
    let touch = format!("touch {}", ran.display());
    let words = ["-c", script, "sh", NEARMISS, &touch, place.path().to_str().unwrap()];
    let output = Command::new("sh").args(words).stdin(Stdio::null()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(125), "{stderr}");
    assert!(!ran.exists() && output.stdout.is_empty(), "{stderr}");
    assert!(stderr.trim_end().lines().count() == 1 && stderr.starts_with("nearmiss: "), "{stderr}");
    stderr
}

fn can(what: &str, tried: &[&str]) -> bool {
    let can = Command::new(tried[0]).args(&tried[1..]).stderr(Stdio::null()).status().is_ok_and(|s| s.success());
    if !can {
        eprintln!("skipped: {what}");
    }
    can
}

fn has_two_cpus() -> bool {
    let has = CpuSet::allowed().unwrap().len() > 1;
    if !has {
        eprintln!("skipped: one CPU, which is refused before anything else");
    }
    has
}

#[test]
fn a_kernel_with_real_time_preemption() {
    if !can("no mount namespaces here", &["unshare", "-m", "true"]) {
        return;
    }
    let script = "echo '#1 SMP PREEMPT_RT Debian 6.12' >$3/version
                  export VERSION=$3/version
                  exec unshare -m sh -c 'mount --bind $VERSION /proc/sys/kernel/version && exec \"$@\"' sh \\
                      $1 apply pair --table $3 -- $2";
    assert!(refused(script, None).contains("pair refuses kernels with real-time preemption"));
}

#[test]
fn real_time_tasks() {
    if can("no real-time policy here", &["chrt", "-f", "1", "true"]) {
        let stderr = refused("exec chrt -f 1 $1 apply pair --table $3 -- $2", None);
        assert!(stderr.contains("pair refuses real-time tasks"), "{stderr}");
        // One of several tasks of a process that runs.
        let running = "(chrt -f 1 sleep 60 & echo $! >$3/pid; wait) >/dev/null 2>&1 &
                       until [ \"$(cat /proc/$(cat $3/pid)/comm)\" = sleep ]; do :; done 2>/dev/null
                       $1 apply pair --table $3 -p $!; status=$?; kill $(cat $3/pid); exit $status";
        assert!(refused(running, None).contains("pair refuses real-time tasks"));
    }
}

/// No kernel of ours has core scheduling, so a library stands in for one.
#[test]
fn a_core_scheduling_cookie() {
    let script = "cat >$3/cookie.c <<'C'
#include <stdarg.h>
#include <sys/prctl.h>
int prctl(int option, ...) {
    va_list given;
    va_start(given, option);
    unsigned long get = va_arg(given, unsigned long), task = va_arg(given, unsigned long), kind = va_arg(given, unsigned long);
    if (option == 62 && get == 0 && kind == 0) *va_arg(given, unsigned long *) = 7;
    va_end(given);
    return (int)(task * 0);
}
C
                  cc -shared -fPIC -o $3/cookie.so $3/cookie.c
                  LD_PRELOAD=$3/cookie.so exec $1 apply pair --table $3 -- $2";
    assert!(refused(script, None).contains("pair refuses tasks with a core-scheduling cookie"));
}

#[test]
fn cpus_that_share_nothing() {
    if !can("no mount namespaces here", &["unshare", "-m", "true"]) || !has_two_cpus() {
        return;
    }
    let script = "mkdir -p $3/system/cpu; for cpu in 0 1 2 3 4 5 6 7; do mkdir $3/system/cpu/cpu$cpu; done
                  export SYSTEM=$3/system
                  exec unshare -m sh -c 'mount --bind $SYSTEM /sys/devices/system && exec \"$@\"' sh \\
                      $1 apply pair --table $3 -- $2";
    assert!(refused(script, None).contains("share no domain that the kernel names"));
}

#[test]
fn one_cpu() {
    let stderr = refused("exec taskset -c 0 $1 apply pair --table $3 -- $2", None);
    assert!(stderr.contains("pair needs two CPUs at least; this process may use CPU 0 alone"), "{stderr}");
}

#[test]
fn a_table_of_a_machine_unlike_this_one() {
    let clusters = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cache/index2/shared_cpu_list");
    if clusters.is_ok_and(|cpus| cpus.trim() != "0") || !has_two_cpus() {
        eprintln!("skipped: CPUs share their second level here");
        return;
    }
    let shared = |level| Some(KeptShared { machine: "some-clusters".into(), level });
    let stderr = refused("exec $1 apply pair --table $3 -- $2", shared(SharedLevel::L2));
    assert!(stderr.contains("the table is of tasks that share level l2 on some-clusters"), "{stderr}");
    assert!(stderr.contains("give --domain "), "{stderr}");
}

#[test]
fn a_table_of_which_nothing_was_proposed() {
    let stderr = refused_with("exec $1 apply pair --table $3 -- $2", None, true);
    assert!(stderr.contains("its rehearsal proposed no grouping"), "{stderr}");
}

#[test]
fn a_number_without_a_process_to_place_is_refused() {
    let of = |which: &str| refused(&format!("exec $1 apply pair --table $3 -p {which}"), None);
    assert!(of("4194304").contains("process 4194304: there is no such process"));
    if std::fs::read_to_string("/proc/2/comm").is_ok_and(|name| name.trim() == "kthreadd") {
        assert!(of("2").contains("process 2: it runs no program; it is the kernel's own"));
    }
    assert!(refused("exec $1 apply pair --table $3 -p $$", None).contains("it is nearmiss itself"));
    let (sender, receiver) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        // SAFETY: returns a number.
        sender.send(unsafe { libc::gettid() }).unwrap();
        std::thread::park();
    });
    let (number, process) = (receiver.recv().unwrap(), std::process::id());
    let stderr = of(&number.to_string());
    assert!(
        stderr.contains(&format!("process {number}: it is a thread of process {process}; give that one")),
        "{stderr}"
    );
    thread.thread().unpark();
    thread.join().unwrap();
}

#[test]
fn kernels_without_sched_ext_and_with_another_scheduler() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    keep_table(place.path(), None, false);
    let apply = format!("{NEARMISS} apply pair --table {}", place.path().display());
    let without = format!("{apply} --with sched-ext -- echo ran 2>&1; echo status $?; {apply} -- echo ran 2>/dev/null");
    let Some(_guest) = for_a_guest() else { return };
    let without = crate::scripted::in_guest(KernelImage::newest().map_err(|e| e.to_string()), &without);
    if let Some(printed) = without {
        assert!(printed.starts_with("nearmiss: this kernel has no sched_ext"), "{printed}");
        assert!(printed.lines().skip(1).eq(["status 125", "ran"]), "affinity is there all the same: {printed}");
    }
    let another = format!(
        "{apply} --with sched-ext -- sleep 100 2>/dev/null &
         until [ \"$(cat /sys/kernel/sched_ext/state)\" = enabled ]; do sleep 0.05; done
         {apply} -- echo ran 2>&1; echo status $?; {apply} --with sched-ext -- echo ran 2>&1; echo status $?; kill $!"
    );
    let newer = KernelImage::newest_from((6, 16)).ok_or("no kernel with sched_ext: run scripts/setup-newer-kernel.sh");
    let Some(printed) = crate::scripted::in_guest(newer.map_err(str::to_owned), &another) else { return };
    let lines: Vec<&str> = printed.lines().collect();
    assert!(lines.len() == 4 && lines[1] == "status 125" && lines[3] == "status 125", "{printed}");
    for line in [lines[0], lines[2]] {
        assert!(line.starts_with("nearmiss: another scheduler is loaded (nearmiss_pair"), "{printed}");
    }
}
