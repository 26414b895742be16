//! Poll logs of events that a thread leaves over, on a subject that prints what it leaves; and the cost of waits.

#![allow(clippy::unwrap_used)]

use crate::observing::{Observed, observe, with_bpf};
use nearmiss_record::logs::PollCall;
use nearmiss_record::observation::Observation;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

const FAMILY: [&str; 7] = ["poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2"];
const ROUNDS: u64 = 12;

fn subject() -> Option<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/subjects/left-over");
    if !path.is_file() {
        println!("skipped: {} is not built; make subjects", path.display());
        return None;
    }
    Some(path.canonicalize().unwrap().to_str().unwrap().to_owned())
}

/// Runs the subject under one `observe --polls --log`, once for each of these calls of [`FAMILY`], with more options.
fn logged(program: &str, families: &[usize], more: &str) -> Observed {
    let once = |family: &usize| format!("{program} --family {family} --rounds {ROUNDS} {more} || exit\n");
    let script: String = families.iter().map(once).collect();
    observe(&["--polls", "--log", "--", "sh", "-c", &script])
}

/// Returns the totals of the subject's call: calls, events, events left over, events not compared.
fn totals(o: &Observed, call: &str) -> [u64; 4] {
    let polls = o.record["polls"].as_array().unwrap();
    let row = polls.iter().find(|poll| poll["call"] == call).unwrap_or_else(|| panic!("no {call} in {polls:?}"));
    ["calls", "events", "again", "not_compared"].map(|name| row[name].as_u64().unwrap())
}

#[test]
fn events_left_over_are_counted_exactly_in_every_call() {
    let (Some(_guard), Some(program)) = (with_bpf(), subject()) else { return };
    let every: Vec<usize> = (0..FAMILY.len()).collect();
    let leaving = logged(&program, &every, "--sockets 3 --batch 5 --take 1");
    let taking = logged(&program, &every, "--sockets 3 --batch 5 --take 0");
    let of_each = leaving.stderr.matches("left over: 144 of 204 events (70.6%)").count();
    assert_eq!(of_each, FAMILY.len(), "{}", leaving.stderr);
    assert!(!taking.stderr.contains("left over:"), "{}", taking.stderr);
    let log = Observation::open(&leaving.run).unwrap().log::<PollCall>().unwrap().unwrap();
    let log: Vec<PollCall> = log.map(Result::unwrap).collect();
    for call in FAMILY {
        // One datagram a wake of five, of three sockets: four calls of five find what the call before found. The bell is
        // waited for, though it rings twice.
        assert_eq!(totals(&leaving, call), [7 * ROUNDS, 17 * ROUNDS, 12 * ROUNDS, 0], "{call}: {}", leaving.stderr);
        let again: Vec<Option<u32>> = log.iter().filter(|c| c.call == call).map(|c| c.again).collect();
        assert_eq!(again, [0, 0, 0, 3, 3, 3, 3].map(Some).repeat(ROUNDS as usize), "{call}");
        // Taking all leaves nothing.
        assert_eq!(totals(&taking, call), [3 * ROUNDS, 5 * ROUNDS, 0, 0], "{call}: {}", taking.stderr);
    }
}

#[test]
fn events_behind_many_descriptors_are_found_and_too_many_events_are_not_compared() {
    let (Some(_guard), Some(program)) = (with_bpf(), subject()) else { return };
    let both = [0, 4];
    let found = logged(&program, &both, "--sockets 64 --silent 400 --batch 4 --take 1");
    // A call of too many events is not compared, and leaves nothing to compare; then the bell is waited for.
    let too_many = logged(&program, &both, "--sockets 65 --batch 4 --take 1");
    for call in both.map(|family| FAMILY[family]) {
        assert_eq!(totals(&found, call), [6 * ROUNDS, 258 * ROUNDS, 192 * ROUNDS, 0], "{call}: {}", found.stderr);
        assert_eq!(totals(&too_many, call), [6 * ROUNDS, 262 * ROUNDS, 0, 260 * ROUNDS], "{call}: {}", too_many.stderr);
    }
    let o = logged(&program, &[2], "--sockets 300 --batch 2 --take 1");
    assert_eq!(totals(&o, "select"), [4 * ROUNDS, 602 * ROUNDS, 0, 600 * ROUNDS], "{}", o.stderr);
}

#[test]
fn without_a_log_nothing_is_compared() {
    let (Some(_guard), Some(program)) = (with_bpf(), subject()) else { return };
    let o = observe(&["--polls", "--", &program, "--rounds", "12"]);
    assert_eq!(totals(&o, "poll"), [7 * ROUNDS, 7 * ROUNDS, 0, 0], "{}", o.stderr);
}

#[test]
fn the_costs_of_waits_are_measured_with_and_without_a_log() {
    let Some(_guard) = with_bpf() else { return };
    for log in [&["--polls"][..], &["--polls", "--log"]] {
        let o = observe(&[log, &["--", "sleep", "0.2"]].concat());
        for name in ["sleep_cpu_ns", "woken_cpu_ns"] {
            let ns = o.record["waits"][name].as_u64().unwrap();
            assert!((100..400_000).contains(&ns), "{name} {ns}: {}", o.stderr);
        }
    }
    let o = observe(&["--io", "--", "true"]);
    assert!(o.record["waits"].is_null(), "{}", o.record["waits"]);
}

/// User and system time of a process, in nanoseconds, as `/proc` has it in hundredths of a second.
fn cpu_of(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields = stat.rsplit_once(')').unwrap().1.split_whitespace();
    fields.skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap() * 10_000_000).sum()
}

#[test]
fn polls_alone_know_the_cpu_time_of_a_process() {
    let Some(_guard) = with_bpf() else { return };
    let mut busy = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let (before, begun) = (cpu_of(busy.id()), Instant::now());
    let o = observe(&["--polls", "-p", &busy.id().to_string(), "--for", "2s"]);
    let (most, elapsed) = (cpu_of(busy.id()) - before, begun.elapsed().as_nanos() as u64);
    busy.kill().unwrap();
    busy.wait().unwrap();
    // The process runs on while nearmiss starts and ends, all of that time at most.
    let (ours, window) = (o.record["cpu_ns"].as_u64().unwrap(), o.record["duration_ns"].as_u64().unwrap());
    assert!(ours <= most + 20_000_000, "{ours} of {most}");
    assert!(ours + (elapsed - window) + 50_000_000 >= most, "{ours} of {most}, in {window} of {elapsed}");
}

#[test]
fn polls_alone_know_the_cpu_time_of_a_commands_daemons() {
    let Some(_guard) = with_bpf() else { return };
    // The loop's parent ends at once, so that nobody of the command waits for the loop.
    // The command ends after the loop, however long that takes here.
    let line = "(sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; times >daemon' &) ; \
                until [ -s daemon ]; do sleep 0.3; done; sleep 0.3";
    let place = tempfile::tempdir().unwrap();
    let line = line.replace("daemon", place.path().join("times").to_str().unwrap());
    let o = observe(&["--polls", "--", "sh", "-c", &line]);
    let times = std::fs::read_to_string(place.path().join("times")).unwrap();
    // `0m0.51s 0m0.02s`, user and system.
    let seconds = |word: &str| word.trim_start_matches("0m").trim_end_matches('s').parse::<f64>().unwrap();
    let daemon: f64 = times.lines().next().unwrap().split_whitespace().map(seconds).sum();
    let ours = o.record["cpu_ns"].as_f64().unwrap() / 1e9;
    assert!(daemon > 0.05 && ours >= daemon && ours <= daemon + 0.3, "{ours} of {daemon}");
}
