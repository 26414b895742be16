//! Fields of the kernel's structures under a load on the network.
#![allow(clippy::unwrap_used)]

use crate::guest_slots::for_a_guest;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const ROUND_TRIPS: u64 = 40;

/// Builds the load; prints a line with the reason and returns `None` without a compiler.
fn load(place: &Path) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let program = place.join("loopback");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-pthread", "-I"]).arg(root.join("native/include")).arg("-o").arg(&program);
    match compiler.arg(root.join("experiments/layout/loopback.c")).output() {
        Ok(built) => {
            assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
            Some(program)
        }
        Err(error) => {
            eprintln!("skipped: cc does not run here: {error}");
            None
        }
    }
}

fn nearmiss(place: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nearmiss")).current_dir(place).args(words).output().unwrap()
}

fn trace(place: &Path, options: &[&str], command: &[&str]) {
    let line = [&["trace", "-q", "--cpus", "2", "--memory", "1GiB", "--no-curve"], options, &["--"], command].concat();
    let done = nearmiss(place, &line);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

fn report(place: &Path, options: &[&str]) -> String {
    let done = nearmiss(place, &[&["report", "--kernel-structures"], options].concat());
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

fn structure<'a>(record: &'a Value, name: &str) -> &'a Value {
    let all = record["structures"].as_array().unwrap();
    all.iter().find(|one| one["structure"] == name).unwrap_or_else(|| panic!("no {name} in {record:#}"))
}

/// Number of the line with the field of this name, and the field.
fn field<'a>(structure: &'a Value, name: &str) -> (u64, &'a Value) {
    let lines = structure["by_line"].as_array().unwrap();
    let on = |line: &'a Value| Some((line["line"].as_u64()?, line["fields"].as_array()?));
    let mut all = lines.iter().filter_map(on).flat_map(|(line, fields)| fields.iter().map(move |field| (line, field)));
    all.find(|(_, field)| field["name"] == name).unwrap_or_else(|| panic!("no {name} in {structure:#}"))
}

#[test]
fn the_fields_of_tcp_sock_are_those_that_messages_use() {
    let Some(_guest) = for_a_guest() else { return };
    let place = tempfile::tempdir().unwrap();
    let Some(program) = load(place.path()) else { return };
    let count = ROUND_TRIPS.to_string();
    let window = ["--carry", "fields", "--from", "mark:1", "--until", "mark:2"];
    // The other end waits for 16 KiB when the window closes.
    trace(place.path(), &window, &[program.to_str().unwrap(), &count, "16"]);

    let all: Value = serde_json::from_str(&report(place.path(), &["--json"])).unwrap();
    let tcp_sock = structure(&all, "tcp_sock");
    assert_eq!((&tcp_sock["objects"], &tcp_sock["begins_lines"]), (&2.into(), &true.into()), "both ends");
    // Each message moves the sender's next number once, and each segment the receiver's.
    let (line, write_seq) = field(tcp_sock, "write_seq");
    assert_eq!(write_seq["writes"], 2 * ROUND_TRIPS, "{write_seq:#}");
    assert_eq!((&write_seq["bytes"], write_seq["from"].as_u64().unwrap() / 64), (&4.into(), line));
    let writers = write_seq["functions"].as_array().unwrap().iter().filter(|one| one["writes"] != 0);
    assert_eq!(writers.map(|one| &one["function"]).collect::<Vec<_>>(), ["tcp_sendmsg_locked"]);
    assert_eq!(field(tcp_sock, "rcv_nxt").1["writes"], 2 * ROUND_TRIPS);
    // The number of the socket's protocol lies in the structure that every socket begins with.
    assert_eq!(field(tcp_sock, "inet_conn.icsk_inet.sk.__sk_common.skc_state").1["writes"], 0);

    let during = ["--during", "tcp_v4_rcv,tcp_sendmsg"];
    let packets: Value = serde_json::from_str(&report(place.path(), &[&during[..], &["--json"]].concat())).unwrap();
    let [received, sent] = [0, 1].map(|at| &structure(&packets, "tcp_sock")["visits"][at]);
    assert_eq!((&received["during"], &sent["during"]), (&"tcp_v4_rcv".into(), &"tcp_sendmsg".into()));
    assert!(received["count"].as_u64().unwrap() >= 2 * ROUND_TRIPS, "{received:#}");
    let (lines, all_lines) = (sent["median_lines"].as_u64().unwrap(), tcp_sock["lines"].as_u64().unwrap());
    assert!(lines > 1 && lines <= all_lines, "{sent:#}");
    let text = report(place.path(), &during);
    assert!(text.contains("`tcp_sock`: 2 objects of ") && text.contains(" write_seq "), "{text}");

    let done = nearmiss(place.path(), &["report", "--kernel-structures", "--during", "no_such_function"]);
    assert_eq!(done.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&done.stderr).contains("no code of a kernel function `no_such_function` ran"));
}

#[test]
fn a_trace_that_dropped_accesses_has_no_fields() {
    let Some(_guest) = for_a_guest() else { return };
    let place = tempfile::tempdir().unwrap();
    trace(place.path(), &[], &["true"]);
    let done = nearmiss(place.path(), &["report", "--kernel-structures"]);
    assert_eq!(done.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&done.stderr).contains("--carry fields"));
}
