//! `nearmiss trace` under a filter like that of a container: it names in one line what it lacks, and the calls that
//! `docs/containers.md` lists are enough.
#![allow(clippy::unwrap_used)]

use crate::guest_slots::for_a_guest;
use crate::login;
use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

/// Calls that a trace needs and that a container of Docker's may not make.
const FOR_A_TRACE: [i64; 5] =
    [libc::SYS_unshare, libc::SYS_mount, libc::SYS_open_tree, libc::SYS_move_mount, libc::SYS_mount_setattr];

/// Further calls that Docker's default profile refuses to a container without capabilities.
const REFUSED: [i64; 12] = [
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_setns,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_keyctl,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// Flags of `clone` that request a namespace.
const NAMESPACES: u32 = 0x7e02_0000;

fn instruction(code: u32, k: u32, on_true: u8, on_false: u8) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: on_true, jf: on_false, k }
}

/// A program that returns an error for these calls, and for `clone` with a namespace. Only this machine's calls are made.
fn filter(refused: &[i64]) -> Vec<libc::sock_filter> {
    let load = |offset| instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset, 0, 0);
    let equals =
        |call: i64, otherwise| instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, call as u32, 0, otherwise);
    let answer = |action| instruction(libc::BPF_RET | libc::BPF_K, action, 0, 0);
    let error = |errno: i32| answer(libc::SECCOMP_RET_ERRNO | errno as u32);
    let mut program = vec![load(0)];
    for call in refused {
        program.extend([equals(*call, 1), error(libc::EPERM)]);
    }
    program.extend([equals(libc::SYS_clone3, 1), error(libc::ENOSYS)]);
    let has_namespace = instruction(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, NAMESPACES, 0, 1);
    program.extend([equals(libc::SYS_clone, 3), load(16), has_namespace, error(libc::EPERM)]);
    program.push(answer(libc::SECCOMP_RET_ALLOW));
    program
}

/// Runs nearmiss as a user without capabilities, who cannot get any, under a filter.
fn contained(refused: &[i64], words: &[&str]) -> Output {
    let place = tempfile::tempdir().unwrap();
    login::prepare(place.path());
    let options = ["--clear-groups", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"];
    let mut command = login::nearmiss(place.path(), &options);
    command.args(words);
    under(&mut command, filter(refused)).output().unwrap()
}

fn under(command: &mut Command, mut filter: Vec<libc::sock_filter>) -> &mut Command {
    let install = move || {
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
        // SAFETY: the program lives until the call returns, and its length is its own.
        let installed = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
        if installed == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: between fork and exec only one system call is made.
    unsafe { command.pre_exec(install) }
}

fn can_contain() -> bool {
    let can = rustix::process::geteuid().is_root() && cfg!(target_arch = "x86_64");
    if !can {
        println!("skipped: only root can become another user, and the filter is of x86-64");
    }
    can
}

const TRACE: [&str; 14] = [
    "trace",
    "--no-trace",
    "--no-curve",
    "-m",
    "zen3-milan",
    "--cpus",
    "1",
    "--memory",
    "1GiB",
    "--timeout",
    "5m",
    "--",
    "sh",
    "-c",
];

fn trace(refused: &[i64]) -> (Option<i32>, String) {
    let output = contained(refused, &[&TRACE[..], &["exit 3"]].concat());
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_trace_in_a_container_names_the_filter_in_one_line() {
    let Some(_guest) = for_a_guest() else { return };
    if !can_contain() {
        return;
    }
    let expected = "nearmiss: the guest ended before the command began: error cannot make namespaces, which a seccomp \
                    filter forbids, as containers have one: start the container with --cap-add SYS_ADMIN or with a \
                    profile that allows what docs/containers.md lists, or trace on the host: Operation not permitted\n";
    let refused = [&FOR_A_TRACE[..], &REFUSED].concat();
    assert_eq!(trace(&refused), (Some(125), expected.to_owned()));
    let doctor = contained(&refused, &["doctor", "--quick", "--json"]);
    let record: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let row = record["rows"].as_array().unwrap().iter().find(|row| row["name"] == "privilege").unwrap();
    assert_eq!(row["state"], "missing", "{row}");
    assert!(row["found"].as_str().unwrap().contains("seccomp filter"), "{row}");
}

#[test]
fn the_calls_that_the_page_lists_are_enough_for_a_trace() {
    let Some(_guest) = for_a_guest() else { return };
    if !can_contain() {
        return;
    }
    let (status, stderr) = trace(&REFUSED);
    if stderr.contains("kernel.unprivileged_userns_clone") {
        println!("skipped: no user namespaces here");
        return;
    }
    assert_eq!(status, Some(3), "{stderr}");
}
