//! The log of a thread's calls again, with a least interval between them; *predicted*.

use super::batches::{Batches, Sizes};
use super::work::{looked_at, median};
use nearmiss_pace::Aim;
use nearmiss_pace::rules::{Call, Slept, Thread};
use nearmiss_record::logs::PollCall;
use std::time::Duration;

/// The log of an epoll call lacks how many events it could return; the rules need only room for two.
const MOST_EVENTS: u64 = 64;

/// An event: when it came, when the program was done with it in the log, and how long it was busy with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Event {
    came_ns: u64,
    done_ns: u64,
    busy_ns: u64,
    /// The thread had left the event over: it was readable when the call was made, and one of the same descriptor
    /// before it.
    left_over: bool,
    /// Timeout of the call that returned the event.
    timeout_ns: Option<u64>,
}

/// Log of one thread.
#[derive(Clone, Debug, Default)]
pub struct Log {
    events: Vec<Event>,
    first_ns: u64,
    /// Calls in the log.
    pub calls: u64,
    /// Calls that brought no event: they stay as they were.
    pub empty: u64,
    blocked: Costs,
    ready: Costs,
    /// Batches in which the program handled the events.
    pub batches: Sizes,
    /// Time of a batch beside that of its events.
    batch_ns: u64,
}

/// Calls of one sort.
#[derive(Clone, Copy, Debug, Default)]
struct Costs {
    calls: u64,
    /// The median CPU time of a call: a call that lost the CPU for milliseconds is no measure of the others.
    usual_ns: Option<u64>,
}

impl Costs {
    fn of<'a>(calls: impl Iterator<Item = &'a PollCall>) -> Self {
        let costs: Vec<u64> = calls.map(|call| call.on_cpu_ns).collect();
        Costs { calls: costs.len() as u64, usual_ns: median(costs) }
    }
}

/// A short time off the CPU is no wait of its own.
fn had_to_block(call: &PollCall) -> bool {
    call.blocked_ns > call.on_cpu_ns
}

/// Effect of an interval on a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Calls that the thread makes.
    pub calls: u64,
    /// Calls that had to wait.
    pub waits: u64,
    /// Sleeps before the calls.
    pub sleeps: u64,
    /// Mean time that the interval adds until the program is done with an event.
    pub added_mean_ns: u64,
    /// Added time that one event of a hundred reaches or exceeds.
    pub added_p99_ns: u64,
}

impl Log {
    /// Makes the log of one thread's calls, in any order.
    pub fn new(mut calls: Vec<PollCall>) -> Self {
        calls.sort_by_key(|call| call.exit_ns);
        let (blocked, ready): (Vec<&PollCall>, Vec<&PollCall>) = calls.iter().partition(|call| had_to_block(call));
        let mut log = Log {
            first_ns: calls.first().map_or(0, |call| call.enter_ns),
            blocked: Costs::of(blocked.into_iter()),
            ready: Costs::of(ready.into_iter()),
            ..Log::default()
        };
        let mut batches = Batches::default();
        let behind =
            |at: usize, call: &PollCall| calls.get(at + 1).map_or(0, |next| next.enter_ns.saturating_sub(call.exit_ns));
        for (at, call) in calls.iter().enumerate().filter(|(_, call)| call.events > 0) {
            batches.add(u64::from(call.events), behind(at, call));
        }
        log.batches = batches.by_size();
        log.batch_ns = log.batches.apart_from_events_ns(u64::MAX) as u64;
        let mut before = log.first_ns;
        for (at, call) in calls.iter().enumerate() {
            log.add(call, before, behind(at, call));
            before = call.exit_ns;
        }
        log
    }

    fn add(&mut self, call: &PollCall, before: u64, busy_ns: u64) {
        self.calls += 1;
        let blocked = had_to_block(call);
        let events = u64::from(call.events);
        if events == 0 {
            self.empty += 1;
            return;
        }
        let batch_ns = self.batch_ns.min(busy_ns);
        let busy_ns = (busy_ns - batch_ns) / events;
        // A call that had to block was ended by its events. The events of one that had not came since the last return,
        // at unknown times: evenly.
        let gap = call.enter_ns.saturating_sub(before);
        let again = u64::from(call.again.unwrap_or(0));
        for event in 1..=events {
            let left_over = event <= again;
            let came_ns = match (blocked, left_over) {
                (true, _) => call.exit_ns,
                (false, true) => before,
                (false, false) => before + gap * event / events,
            };
            let (done_ns, timeout_ns) = (call.exit_ns + batch_ns + event * busy_ns, call.timeout_ns);
            self.events.push(Event { came_ns, done_ns, busy_ns, left_over, timeout_ns });
        }
    }

    /// CPU time of a call that has to wait: to sleep and to be woken are most of it.
    pub fn waiting_ns(&self) -> u64 {
        self.blocked.usual_ns.or(self.ready.usual_ns).unwrap_or(0)
    }

    /// Returns the CPU time of a call with events ready; where the log has none, half of one that waits.
    pub fn ready_ns(&self) -> u64 {
        self.ready.usual_ns.unwrap_or(self.waiting_ns() / 2)
    }

    /// CPU time of the calls, each as usual for its sort.
    pub fn on_cpu_ns(&self) -> u64 {
        self.blocked.calls * self.waiting_ns() + self.ready.calls * self.ready_ns()
    }

    /// CPU time of a call.
    pub fn cost_ns(&self) -> u64 {
        self.on_cpu_ns() / self.calls.max(1)
    }

    /// Returns how many events a call takes that looks until then. A left-over event is for a call of its own.
    fn taken(&self, next: usize, until: u64) -> usize {
        let first = self.events[next..].iter().take(1);
        let others = self.events[next..].iter().skip(1).take_while(|event| !event.left_over);
        let taken = first.chain(others).take_while(|event| event.came_ns <= until).count();
        // The first that is not taken was looked at, too.
        looked_at(taken + 1);
        taken
    }

    /// The log under an interval.
    pub fn replay(&self, interval_ns: u64) -> Replayed {
        let mut thread = Thread::new(Aim::Interval(Duration::from_nanos(interval_ns)));
        let mut replayed = Replayed { calls: self.empty, waits: self.empty, ..Replayed::default() };
        let mut added = Vec::with_capacity(self.events.len());
        let (mut now, mut next) = (self.first_ns, 0);
        while let Some(event) = self.events.get(next) {
            let left_over = event.left_over && event.came_ns <= now;
            let call = Call { now_ns: now, timeout_ns: event.timeout_ns, most_events: MOST_EVENTS, left_over };
            let sleep = thread.decide(call).ok();
            let began = now + sleep.unwrap_or(0);
            let waits = event.came_ns > began;
            let returns = if waits { event.came_ns } else { began + self.ready_ns() };
            let until = if waits { returns } else { began };
            let taken = self.taken(next, until);
            thread.returned(returns, Some(taken as u64), sleep.map(|_| Slept { began_ns: began }));
            replayed.calls += 1;
            replayed.waits += u64::from(waits);
            replayed.sleeps += u64::from(sleep.is_some());
            now = returns + self.batch_ns;
            for event in &self.events[next..next + taken] {
                now += event.busy_ns;
                added.push(now.saturating_sub(event.done_ns));
            }
            next += taken;
        }
        (replayed.added_mean_ns, replayed.added_p99_ns) = (mean(&added), p99(added));
        replayed
    }
}

fn mean(times: &[u64]) -> u64 {
    times.iter().sum::<u64>() / (times.len() as u64).max(1)
}

/// The least time that 99 of 100 do not exceed.
fn p99(mut times: Vec<u64>) -> u64 {
    times.sort_unstable();
    let rank = (times.len() * 99).div_ceil(100).max(1);
    times.get(rank - 1).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call that blocked until `exit_ns`.
    fn call(enter_ns: u64, exit_ns: u64, events: u32) -> PollCall {
        let blocked_ns = (exit_ns - enter_ns).saturating_sub(1000);
        PollCall { enter_ns, exit_ns, events, blocked_ns, on_cpu_ns: 1000, ..PollCall::default() }
    }

    /// An event each 100 µs, with which the program is busy for 10 µs.
    fn steady(events: u64) -> Log {
        Log::new((0..events).map(|n| call(1_000_000 + n * 100_000, 1_090_000 + n * 100_000, 1)).collect())
    }

    #[test]
    fn calls_go_down_to_one_an_interval_and_latency_goes_up() {
        let log = steady(10_000);
        assert_eq!((log.calls, log.cost_ns()), (10_000, 1000));
        // Far under the time between two events nothing changes.
        let short = log.replay(50_000);
        assert_eq!(short, Replayed { calls: 10_000, waits: 10_000, ..Replayed::default() });
        let replayed = log.replay(1_000_000);
        // A sleep ends 1 ms after the last return, and the call takes 500 ns: ten events, half of an interval late, and each
        // behind those before it in the batch.
        let expected = Replayed { calls: 1002, waits: 2, sleeps: 1000, added_mean_ns: 545_441, added_p99_ns: 990_500 };
        assert_eq!(replayed, expected);
        let longer = log.replay(5_000_000);
        assert!(longer.calls < replayed.calls / 4 && longer.added_mean_ns > 4 * replayed.added_mean_ns, "{longer:?}");
    }

    #[test]
    fn no_event_is_lost_and_empty_calls_stay() {
        let mut calls: Vec<PollCall> = (0..50).map(|n| call(n * 100_000, n * 100_000 + 90_000, 2)).collect();
        calls.push(PollCall { enter_ns: 6_000_000, exit_ns: 7_000_000, blocked_ns: 1, ..PollCall::default() });
        let log = Log::new(calls);
        assert_eq!((log.events.len(), log.empty), (100, 1));
        assert_eq!(log.replay(10_000).calls, 51);
    }

    #[test]
    fn events_of_a_call_that_did_not_block_came_since_the_last_return() {
        let at_once = PollCall { enter_ns: 200, exit_ns: 210, events: 2, on_cpu_ns: 10, ..PollCall::default() };
        let first =
            PollCall { enter_ns: 0, exit_ns: 100, events: 1, blocked_ns: 90, on_cpu_ns: 10, ..PollCall::default() };
        let log = Log::new(vec![first, at_once]);
        let came: Vec<u64> = log.events.iter().map(|event| event.came_ns).collect();
        assert_eq!(came, [100, 150, 200]);
        assert_eq!(log.events[0].busy_ns, 100);
    }

    #[test]
    fn a_call_that_lost_its_cpu_leaves_the_cost_of_the_others() {
        let slow = PollCall { blocked_ns: 0, on_cpu_ns: 20_000_000, ..call(2_000_000_000, 2_030_000_000, 1) };
        let log = Log::new((0..100).map(|n| call(n * 100_000, n * 100_000 + 90_000, 1)).chain([slow]).collect());
        assert_eq!((log.waiting_ns(), log.ready_ns(), log.cost_ns()), (1000, 20_000_000, 199_009));
        let blocked =
            PollCall { blocked_ns: 25_000_000, on_cpu_ns: 20_000_000, ..call(2_000_000_000, 2_030_000_000, 1) };
        let log = Log::new((0..100).map(|n| call(n * 100_000, n * 100_000 + 90_000, 1)).chain([blocked]).collect());
        assert_eq!((log.waiting_ns(), log.ready_ns(), log.cost_ns()), (1000, 500, 1000));
    }

    #[test]
    fn events_left_over_keep_the_thread_awake() {
        // Five datagrams each 500 µs, of which a call takes one.
        let calls = |again| {
            (0..5000u64).map(move |n| {
                let (burst, nth) = (1_000_000 + n / 5 * 500_000, n % 5);
                let exit_ns = burst + nth * 10_000;
                let enter_ns = if nth == 0 { burst - 400_000 } else { exit_ns - 1000 };
                PollCall { again: Some(if nth == 0 { 0 } else { again }), ..call(enter_ns, exit_ns, 1) }
            })
        };
        let (new, left) = (Log::new(calls(0).collect()), Log::new(calls(1).collect()));
        // A sleep would gather the others, but each needs a call of its own.
        let (new, left) = (new.replay(200_000), left.replay(200_000));
        assert!(new.calls < 4500 && new.sleeps > 900, "{new:?}");
        assert_eq!((left.calls, left.added_p99_ns), (5000, 0), "{left:?}");
    }

    #[test]
    fn calls_that_do_not_wait_are_left_alone_and_deadlines_are_kept() {
        let with = |timeout_ns| {
            Log::new(
                (0..10_000).map(|n| PollCall { timeout_ns, ..call(n * 100_000, n * 100_000 + 90_000, 1) }).collect(),
            )
        };
        let [at_once, soon, never] = [Some(0), Some(500_000), None].map(|timeout| with(timeout).replay(1_000_000));
        assert_eq!((at_once.sleeps, at_once.calls, at_once.added_mean_ns), (0, 10_000, 0));
        assert!(soon.calls > never.calls * 3 / 2 && soon.calls < never.calls * 5 / 2, "{soon:?} {never:?}");
    }

    #[test]
    fn the_99th_percentile_is_a_time_that_occurred() {
        assert_eq!(p99((1..=100).collect()), 99);
        assert_eq!(p99((1..=101).collect()), 100);
        assert_eq!((p99(vec![5]), p99(vec![]), mean(&[])), (5, 0, 0));
    }
}
