//! Calls by which the threads of an observed program wait for events.

use super::NAME;
use nearmiss_analysis::CaseError;
use nearmiss_pace::rules::LEAST_EVENTS;
use nearmiss_record::observed::{Observed, Poll};
use std::collections::BTreeMap;
use std::time::Duration;

/// The calls that the preloaded library sees.
const PACED: [&str; 7] = ["poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2"];

/// A thread's calls, of all kinds that can be paced.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calls {
    /// Process.
    pub process: u32,
    /// Thread.
    pub thread: u32,
    /// Name of the thread.
    pub name: String,
    /// Calls that ended.
    pub calls: u64,
    /// Calls with timeout 0, which do not wait.
    pub at_once: u64,
    /// Events that the calls returned.
    pub events: u64,
    /// CPU time in the calls.
    pub on_cpu_ns: u64,
    /// Descriptors given; 0 for epoll.
    pub descriptors: u64,
}

impl Calls {
    /// Events of a call.
    pub fn events_a_call(&self) -> f64 {
        self.events as f64 / self.calls.max(1) as f64
    }

    /// CPU time of a call.
    pub fn cost_ns(&self) -> u64 {
        self.on_cpu_ns / self.calls.max(1)
    }

    fn add(&mut self, poll: &Poll) {
        self.name.clone_from(&poll.name);
        self.calls += poll.calls;
        self.at_once += poll.zero_timeout;
        self.events += poll.events;
        self.on_cpu_ns += poll.on_cpu_ns;
        self.descriptors += poll.descriptors;
    }

    /// Events that gather in an interval.
    fn gathers(&self, interval: Duration, duration_ns: u64) -> f64 {
        self.events as f64 * interval.as_nanos() as f64 / duration_ns.max(1) as f64
    }

    /// Whether this interval would halve the calls at least: not where events are sparse, where calls are batched
    /// already, where a call polls one descriptor, or where most calls do not wait and are therefore left alone.
    pub fn could_be_fewer(&self, interval: Duration, duration_ns: u64) -> bool {
        let gathers = self.gathers(interval, duration_ns);
        let polls_one = self.descriptors > 0 && self.descriptors < 2 * self.calls;
        let mostly_waits = 2 * self.at_once < self.calls;
        gathers >= LEAST_EVENTS as f64 && gathers >= 2.0 * self.events_a_call() && !polls_one && mostly_waits
    }
}

/// Returns the calls of an observation by thread.
pub fn by_thread(observed: &Observed) -> Vec<Calls> {
    let mut threads: BTreeMap<(u32, u32), Calls> = BTreeMap::new();
    for poll in observed.polls.iter().filter(|poll| is_paced(&poll.call)) {
        let (process, thread) = (poll.process.max(0).cast_unsigned(), poll.thread.max(0).cast_unsigned());
        let fresh = || Calls { process, thread, ..Calls::default() };
        threads.entry((process, thread)).or_insert_with(fresh).add(poll);
    }
    threads.into_values().collect()
}

/// Whether the remedy can pace this call.
pub fn is_paced(call: &str) -> bool {
    PACED.contains(&call)
}

/// Returns why there is no rehearsal without the log.
pub fn no_log(calls: &Calls) -> CaseError {
    CaseError::Unfit(format!(
        "`{}` waits often for few events, and nothing shows when: {NAME} rehearses on the log of every call; observe again \
         with --polls --log",
        calls.name
    ))
}

#[cfg(test)]
mod tests {
    use super::super::BUDGET;
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn poll(thread: i32, call: &str, calls: u64, events: u64) -> Poll {
        Poll { call: call.into(), process: 7, thread, name: "srv".into(), calls, events, ..Poll::default() }
    }

    fn found(polls: Vec<Poll>) -> Vec<u32> {
        let observed = Observed { polls, ..Observed::default() };
        by_thread(&observed)
            .iter()
            .filter(|calls| calls.could_be_fewer(BUDGET, SECOND))
            .map(|calls| calls.thread)
            .collect()
    }

    #[test]
    fn threads_that_wait_often_for_few_events_are_found() {
        let often = poll(1, "epoll_wait", 5000, 5000);
        let just = poll(2, "epoll_wait", 2000, 2000);
        let sparse = poll(3, "epoll_wait", 1999, 1999);
        let batched = poll(4, "epoll_wait", 1000, 5000);
        let one_descriptor = Poll { descriptors: 5000, ..poll(5, "poll", 5000, 5000) };
        let two = Poll { descriptors: 10_000, ..poll(6, "poll", 5000, 5000) };
        let ring = poll(8, "io_uring_enter", 5000, 5000);
        let spins = Poll { zero_timeout: 2500, ..poll(9, "poll", 5000, 5000) };
        let mostly_waits = Poll { zero_timeout: 2499, ..poll(10, "poll", 5000, 5000) };
        let all = vec![often, just, sparse, batched, one_descriptor, two, ring, spins, mostly_waits];
        assert_eq!(found(all), [1, 2, 6, 10]);
    }

    #[test]
    fn the_calls_of_a_thread_are_taken_together() {
        let polls = vec![poll(1, "poll", 1500, 1200), poll(1, "epoll_wait", 1500, 1200), poll(2, "poll", 9, 9)];
        let threads = by_thread(&Observed { polls, ..Observed::default() });
        assert_eq!((threads.len(), threads[0].calls, threads[0].events), (2, 3000, 2400));
    }
}
