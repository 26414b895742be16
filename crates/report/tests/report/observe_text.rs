//! The page of text of an observed run, on fixtures: samples as a machine with a performance-monitoring unit gives them.

#![allow(clippy::unwrap_used)]

use nearmiss_record::observed::{Event, Frame, Instrument, Observed, Poll, Profile, Sample, Task, WaitCosts};
use nearmiss_report::observe::text;

const COPY: &str = "rep_movs_alternative";

/// P1's finding with P1's figures: the copy has 7 of 100 references and 60 of 100 misses, from two call sites.
/// A fixture: no machine took these samples.
fn writer(roles: &[&str]) -> Observed {
    let frame = |function: &str| Frame {
        function: function.into(),
        module: "[kernel]".into(),
        kernel: true,
        ..Frame::default()
    };
    let frames = [COPY, "generic_perform_write", "ext4_da_write_begin", "block_write", "vfs_write"].map(frame).to_vec();
    // Stacks: the copy from its two callers, and everything else.
    let stacks = vec![vec![0, 1, 4], vec![0, 3, 4], vec![2, 1, 4]];
    let mut samples = Vec::new();
    let mut take = |event: usize, stack: u32, count: u64| {
        let sample = Sample { event: event as u32, stack, weight: 10_007, ..Sample::default() };
        samples.extend((0..count).map(|_| sample));
    };
    for (event, role) in roles.iter().enumerate() {
        let counts = match *role {
            "misses" => [45, 15, 40],
            "references" => [5, 2, 93],
            _ => [20, 10, 70],
        };
        for (stack, count) in counts.into_iter().enumerate() {
            take(event, stack as u32, count);
        }
    }
    let event =
        |role: &&str| Event { name: format!("cache-{role}"), role: (*role).into(), period: 10_007, ..Event::default() };
    Observed {
        target: "dd if=/dev/zero of=FILE bs=1M count=500 conv=fsync".into(),
        profile: Some(Profile {
            events: roles.iter().map(event).collect(),
            frames,
            stacks,
            threads: vec![(1, 1, "dd".into())],
            samples,
        }),
        ..Observed::default()
    }
}

/// Returns where `part` begins in the text.
fn at(page: &str, part: &str) -> usize {
    page.find(part).unwrap_or_else(|| panic!("no `{part}` in\n{page}"))
}

#[test]
fn p1s_finding_in_p1s_form() {
    let page = text(&writer(&["clock", "misses", "references"]), 80, 8);
    let misses = at(&page, "Where misses go (cache-misses, 100 samples at 1 in 10,007, 0 lost)");
    let table = &page[misses..];
    assert!(
        table.lines().nth(2).unwrap().starts_with("   60.0%  60.0%  rep_movs_alternative "),
        "the copy leads:\n{page}"
    );
    at(table, "  rep_movs_alternative is called by generic_perform_write 75.0%, block_write\n    25.0%\n");
    at(table, "  rep_movs_alternative has 7% of references, 60% of misses\n");
    assert!(!page.contains("nearmiss trace"), "nothing is missing");
}

#[test]
fn without_a_unit_the_report_names_what_gives_the_shares() {
    let mut observed = writer(&["clock"]);
    observed.instruments =
        vec![Instrument { name: "misses".into(), on: false, how: "no unit".into(), to_enable: "fix".into() }];
    let page = text(&observed, 80, 8);
    at(&page, "  rep_movs_alternative is called by generic_perform_write 66.7%, block_write\n    33.3%\n");
    at(&page, "  its shares of references and of misses: modelled by nearmiss trace -- CMD,\n");
    at(&page, "  no misses: no unit; fix\n");
    assert!(!page.contains("% of misses"), "what was not measured is not printed:\n{page}");
}

/// Two seconds of one thread that polls for half of them, and one that sleeps.
fn two_seconds() -> Observed {
    let on = |name: &str| Instrument { name: name.into(), on: true, ..Instrument::default() };
    let task = |name: &str, cpu_ns, wait_ns, slept: u64, life_ns| Task {
        name: name.into(),
        thread: 7,
        cpu_ns,
        wait_ns,
        life_ns,
        off: vec![("poll".into(), slept / 4, 9), ("nanosleep".into(), slept / 4 * 3, 1)],
        ..Task::default()
    };
    Observed {
        duration_ns: 2_000_000_000,
        cpus: 1,
        cpu_ns: 500_000_000,
        instruments: ["polls", "sched", "locks"].map(on).to_vec(),
        polls: vec![Poll {
            call: "poll".into(),
            name: "loop".into(),
            thread: 7,
            calls: 3_000,
            open: true,
            blocked_ns: 3_001_000,
            span_ns: 1_000_000_000,
            ..Poll::default()
        }],
        tasks: vec![
            task("loop", 500_000_000, 300_000_000, 400_000_000, 1_200_000_000),
            task("before", 1_000, 2_000, 3_000, 0),
        ],
        lost: vec![("tasks".into(), 12), ("poll threads".into(), 3)],
        ..Observed::default()
    }
}

#[test]
fn a_second_is_a_second_of_the_observation() {
    let page = text(&two_seconds(), 90, 8);
    at(&page, "Polls: 3,000 calls, 1500.0/s, 0.00 events a call");
    at(&page, "      3,000   1500.0    0.00       –   0.0%  1.00 µs     0 ns  poll loop 7\n");
}

#[test]
fn left_over_events_and_the_costs_of_waits_stand_below_the_polls() {
    let mut observed = two_seconds();
    observed.waits = Some(WaitCosts { sleep_cpu_ns: 24_300, woken_cpu_ns: 7_010 });
    let (events, again, not_compared) = (5_000, 1_200, 1_000);
    observed.polls[0] = Poll { events, again, not_compared, ..observed.polls[0].clone() };
    let page = text(&observed, 80, 8);
    at(&page, " poll loop 7\n            left over: 1,200 of 4,000 events (30.0%)\n  a sleep of 500 µs costs ");
    at(&page, "  a sleep of 500 µs costs 24.3 µs of CPU time here, being woken 7.01 µs\n    (measured)\n");
    let page = text(&two_seconds(), 80, 8);
    assert!(!page.contains("left over") && !page.contains("a sleep of"), "{page}");
}

#[test]
fn a_tasks_states_stand_beside_its_life() {
    let page = text(&two_seconds(), 90, 8);
    at(&page, "    on CPU runnable  waiting   in all switches  moves  task, waiting for\n");
    at(
        &page,
        "    500 ms   300 ms   400 ms   1.20 s        0      0  loop 7\n            poll 100 ms, nanosleep 300 ms\n",
    );
    at(&page, "   1.00 µs  2.00 µs  3.00 µs        –        0      0  before 7\n");
}

#[test]
fn sums_name_what_they_lack() {
    let page = text(&two_seconds(), 120, 8);
    at(&page, "measured  2.00 s on 1 CPU, 500 ms of CPU time (25.0% of one CPU); without 12 that found no");
    at(&page, "0.0% of one CPU in them; without 3 that found no");
    at(&page, "waiting for a CPU; without 12 that found no room");
    assert!(at(&page, "Lock waits: 0") > 0 && !page.contains("run time; without"), "locks lost nothing:\n{page}");
}
