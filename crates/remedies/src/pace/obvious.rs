//! The replays as they are defined: nothing is kept, each figure is found again wherever it is needed. The quick ones are
//! held to them on random logs, and to a number of looks at the events.

use super::batches::Batches;
use super::intervals::{Basis, Tried};
use super::logs::ReplayedLog;
use super::replay::{Log, Replayed};
use super::work::taken;
use nearmiss_pace::Aim;
use nearmiss_pace::LEAST_GAIN;
use nearmiss_pace::rules::{Call, Slept, Thread};
use nearmiss_record::figures::Cell;
use nearmiss_record::logs::PollCall;
use nearmiss_record::observed::WaitCosts;
use proptest::prelude::*;
use std::time::Duration;

/// An event: when it came, when the program was done with it, how long it was busy with it, and the call that returned it.
#[derive(Clone, Copy)]
struct Event {
    came: u64,
    done: u64,
    busy: u64,
    left_over: bool,
    timeout: Option<u64>,
}

/// The calls of a thread in the order of their returns.
struct Obvious(Vec<PollCall>);

impl Obvious {
    fn usual(&self, blocked: bool) -> Option<u64> {
        let of_sort = self.0.iter().filter(|call| (call.blocked_ns > call.on_cpu_ns) == blocked);
        let mut costs: Vec<u64> = of_sort.map(|call| call.on_cpu_ns).collect();
        costs.sort_unstable();
        costs.get(costs.len().saturating_sub(1) / 2).copied()
    }

    fn waiting(&self) -> u64 {
        self.usual(true).or_else(|| self.usual(false)).unwrap_or(0)
    }

    fn ready(&self) -> u64 {
        self.usual(false).unwrap_or(self.waiting() / 2)
    }

    fn on_cpu(&self) -> u64 {
        let cost = |call: &PollCall| if call.blocked_ns > call.on_cpu_ns { self.waiting() } else { self.ready() };
        self.0.iter().map(cost).sum()
    }

    fn behind(&self, at: usize) -> u64 {
        self.0.get(at + 1).map_or(0, |next| next.enter_ns.saturating_sub(self.0[at].exit_ns))
    }

    fn batch(&self, cpu_ns: u64) -> f64 {
        let mut batches = Batches::default();
        for (at, call) in self.0.iter().enumerate().filter(|(_, call)| call.events > 0) {
            batches.add(u64::from(call.events), self.behind(at));
        }
        batches.by_size().apart_from_events_ns(cpu_ns)
    }

    fn events(&self) -> Vec<Event> {
        let before = |at: usize| if at == 0 { self.0[0].enter_ns } else { self.0[at - 1].exit_ns };
        (0..self.0.len()).flat_map(|at| self.events_of(at, before(at))).collect()
    }

    fn events_of(&self, at: usize, before: u64) -> Vec<Event> {
        let call = &self.0[at];
        let batch = (self.batch(u64::MAX) as u64).min(self.behind(at));
        let events = u64::from(call.events);
        let event = |nth: u64| {
            let busy = (self.behind(at) - batch) / events;
            let left_over = nth <= u64::from(call.again.unwrap_or(0));
            let came = match (call.blocked_ns > call.on_cpu_ns, left_over) {
                (true, _) => call.exit_ns,
                (false, true) => before,
                (false, false) => before + call.enter_ns.saturating_sub(before) * nth / events,
            };
            Event { came, done: call.exit_ns + batch + nth * busy, busy, left_over, timeout: call.timeout_ns }
        };
        (1..=events).map(event).collect()
    }

    fn replay(&self, interval_ns: u64) -> Replayed {
        let mut thread = Thread::new(Aim::Interval(Duration::from_nanos(interval_ns)));
        let empty = self.0.iter().filter(|call| call.events == 0).count() as u64;
        let mut replayed = Replayed { calls: empty, waits: empty, ..Replayed::default() };
        let (mut now, mut left, mut added) = (self.0[0].enter_ns, self.events(), Vec::new());
        while let Some(event) = left.first().copied() {
            let left_over = event.left_over && event.came <= now;
            let sleep = thread.decide(Call { now_ns: now, timeout_ns: event.timeout, most_events: 64, left_over }).ok();
            let began = now + sleep.unwrap_or(0);
            let waits = event.came > began;
            let returns = if waits { event.came } else { began + self.ready() };
            let looks = if waits { returns } else { began };
            let ends = |(nth, event): (usize, &Event)| event.came > looks || (nth > 0 && event.left_over);
            let taken = left.iter().enumerate().position(ends).unwrap_or(left.len());
            thread.returned(returns, Some(taken as u64), sleep.map(|_| Slept { began_ns: began }));
            replayed.calls += 1;
            replayed.waits += u64::from(waits);
            replayed.sleeps += u64::from(sleep.is_some());
            now = returns + self.batch(u64::MAX) as u64;
            for event in left.drain(..taken) {
                now += event.busy;
                added.push(now.saturating_sub(event.done));
            }
        }
        added.sort_unstable();
        let rank = (added.len() * 99).div_ceil(100).max(1);
        replayed.added_p99_ns = added.get(rank - 1).copied().unwrap_or(0);
        replayed.added_mean_ns = added.iter().sum::<u64>() / (added.len() as u64).max(1);
        replayed
    }

    /// CPU time that an interval saves.
    fn saved_ns(&self, replayed: &Replayed, basis: &Basis) -> f64 {
        let timer = basis.waits.map_or(0, |waits| waits.sleep_cpu_ns.saturating_sub(waits.woken_cpu_ns));
        let calls = (replayed.calls - replayed.waits) * self.ready() + replayed.waits * self.waiting();
        let sleeps = replayed.sleeps as f64 * (self.waiting() + timer) as f64;
        let fewer = self.0.len() as f64 - replayed.calls as f64;
        let batches = fewer * self.batch(basis.thread_cpu_ns.saturating_sub(self.on_cpu()));
        self.on_cpu() as f64 - calls as f64 - sleeps + batches
    }

    fn pays(&self, replayed: &Replayed, basis: &Basis) -> bool {
        replayed.sleeps > 0 && self.saved_ns(replayed, basis) > basis.thread_cpu_ns as f64 / LEAST_GAIN as f64
    }

    fn row(&self, interval_ns: u64, basis: &Basis) -> Vec<Cell> {
        let replayed = self.replay(interval_ns);
        let saved = self.saved_ns(&replayed, basis) / basis.cpu_ns.max(1) as f64;
        vec![
            Cell::Nanos(interval_ns),
            Cell::Count(replayed.calls),
            Cell::Count(replayed.sleeps),
            Cell::Share(if replayed.sleeps == 0 { 0.0 } else { saved }),
            Cell::text(if self.pays(&replayed, basis) { "yes" } else { "no" }),
            Cell::Nanos(replayed.added_mean_ns),
            Cell::Nanos(replayed.added_p99_ns),
        ]
    }

    /// The interval within the budget that saves most, and its share; none where no sleeps pay.
    fn chosen(&self, intervals: &[u64], basis: &Basis) -> Option<(u64, f64)> {
        let mut best: Option<(u64, f64, bool)> = None;
        for interval in intervals {
            let replayed = self.replay(*interval);
            let saved = self.saved_ns(&replayed, basis) / basis.cpu_ns.max(1) as f64;
            let within = replayed.added_p99_ns <= basis.budget_ns;
            if within && best.is_none_or(|(_, most, _)| saved > most) {
                best = Some((*interval, saved, self.pays(&replayed, basis)));
            }
        }
        best.filter(|(_, _, pays)| *pays).map(|(interval, saved, _)| (interval, saved))
    }
}

/// The parts of a call: time before it, time in it off the CPU, CPU time, events, events left over, timeout.
type Made = (u64, u64, u64, u32, u32, Option<u64>);

fn calls(made: &[Made]) -> Vec<PollCall> {
    let mut now_ns = 1_000_000;
    let call = |(before, blocked_ns, on_cpu_ns, events, again, timeout_ns): &Made| {
        let enter_ns = now_ns + before;
        now_ns = enter_ns + blocked_ns + on_cpu_ns;
        PollCall {
            enter_ns,
            exit_ns: now_ns,
            blocked_ns: *blocked_ns,
            on_cpu_ns: *on_cpu_ns,
            events: *events,
            again: Some((*again).min(*events)),
            timeout_ns: *timeout_ns,
            ..PollCall::default()
        }
    };
    made.iter().map(call).collect()
}

/// Calls at once and calls that wait; few sizes of batches, so that some are frequent.
fn a_call() -> impl Strategy<Value = Made> {
    let waits = prop_oneof![Just(0), 0_u64..400_000];
    let timeouts = prop_oneof![4 => Just(None), 1 => Just(Some(0)), 2 => (0_u64..500_000).prop_map(Some)];
    (0_u64..60_000, waits, 500_u64..9_000, 0_u32..4, prop_oneof![3 => Just(0), 1 => 0_u32..3], timeouts)
}

fn basis(budget_ns: u64, intervals: Vec<u64>) -> Basis {
    let waits = Some(WaitCosts { sleep_cpu_ns: 7_500, woken_cpu_ns: 7_000 });
    Basis { cpu_ns: 2_000_000, thread_cpu_ns: 1_500_000, waits, budget_ns, intervals }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn quick_replays_are_the_obvious_ones(made in prop::collection::vec(a_call(), 1..120), budget_ns in 60_000_u64..2_000_000) {
        let obvious = Obvious(calls(&made));
        let log = ReplayedLog::of(Log::new(calls(&made)));
        // The replays that the first keeps serve the second, and no figure of the budget is among them.
        for (budget_ns, intervals) in [(budget_ns, vec![]), (1_000_000, vec![]), (budget_ns, vec![70_000, 900_000])] {
            let basis = basis(budget_ns, intervals);
            let tried = Tried::new(log.clone(), basis.clone(), &|_, _| ());
            let rows = tried.table().rows;
            let tried_intervals: Vec<u64> =
                rows[1..].iter().filter_map(|row| if let Cell::Nanos(ns) = row[0] { Some(ns) } else { None }).collect();
            for (row, interval) in rows[1..].iter().zip(&tried_intervals) {
                prop_assert_eq!(row, &obvious.row(*interval, &basis));
            }
            let choice = tried.choice();
            let chosen = obvious.chosen(&tried_intervals, &basis);
            prop_assert_eq!((choice.interval_ns, choice.saved), chosen.unwrap_or((50_000, 0.0)));
        }
    }
}

/// A call of one sort after one of the other, and batches of three sizes.
fn many(number: u64) -> Vec<PollCall> {
    let made = |n: u64| (10_000 + n % 7 * 900, n % 2 * 90_000, 1_500 + n * 7_919 % 4_000, n % 3 + 1, 0, None);
    let made = |n: u64| {
        let (before, blocked, on_cpu, events, again, timeout) = made(n);
        (before, blocked, on_cpu, events as u32, again, timeout)
    };
    calls(&(0..number).map(made).collect::<Vec<Made>>())
}

#[test]
fn a_longer_log_takes_no_more_looks_an_event() {
    let looks = |number: u64| {
        taken();
        let log = ReplayedLog::of(Log::new(many(number)));
        let tried = Tried::new(log.clone(), basis(1_000_000, Vec::new()), &|_, _| ());
        let results = (tried.table(), tried.choice(), tried.beyond_budget(), tried.of_batches(), tried.of_sleeps());
        let looks = taken();
        // All of it again is of what is kept.
        let again = Tried::new(log, basis(1_000_000, Vec::new()), &|_, _| ());
        let repeated = (again.table(), again.choice(), again.beyond_budget(), again.of_batches(), again.of_sleeps());
        assert_eq!((results, taken()), (repeated, 0));
        looks
    };
    // A call and its two events: a median of costs, one of batches, and 16 replays with at most two looks an event.
    for number in [1_000, 40_000] {
        let looks = looks(number) as u64;
        assert!(looks > 20 * number && looks < (2 + 16 * 2 * 2) * number, "{looks} looks at {number} calls");
    }
}
