//! The rules with clocks and a sleep: what a server's loop calls.

use crate::rules::{Aim, Call, Slept, Thread, Why};
use rustix::event::{Timespec, poll};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// The longest interval and the longest budget.
const MOST: Duration = Duration::from_secs(1);

/// A wait for events that a thread is about to make.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// Most time that the wait takes; none: without limit.
    pub timeout: Option<Duration>,
    /// Most events that the wait can return.
    pub most_events: usize,
    /// Whether something of the last wait was left, as by a server that takes one connection a wait. It must not wait
    /// longer.
    pub left_over: bool,
}

/// Counts of a thread's pacer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sleeps {
    /// Waits.
    pub waits: u64,
    /// Events that the waits returned.
    pub events: u64,
    /// Sleeps before the waits.
    pub sleeps: u64,
    /// Time that the sleeps took.
    pub slept: Duration,
    /// Waits without a sleep since sleeps cost what they save.
    pub without_gain: u64,
}

/// Paces the waits of one thread, which must be the one that makes the calls.
#[derive(Debug)]
pub struct Pacer {
    rules: Thread,
    slept: Option<Slept>,
    done: Sleeps,
}

impl Pacer {
    /// Times of more than a second count as a second.
    pub fn new(aim: Aim) -> Self {
        let aim = match aim {
            Aim::Interval(interval) => Aim::Interval(interval.min(MOST)),
            Aim::Budget(budget) => Aim::Budget(budget.min(MOST)),
        };
        Pacer { rules: Thread::new(aim), slept: None, done: Sleeps::default() }
    }

    /// Sleeps if that pays. Returns what is left of the timeout; a signal ends the sleep.
    pub fn before_wait(&mut self, wait: Wait) -> Option<Duration> {
        let now_ns = clock_ns(ClockId::Monotonic);
        self.rules.polled(now_ns);
        let call = Call {
            now_ns,
            timeout_ns: wait.timeout.map(|timeout| u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX)),
            most_events: wait.most_events as u64,
            left_over: wait.left_over,
        };
        match self.rules.decide(call) {
            Ok(sleep_ns) => {
                let slept = self.sleep(now_ns, sleep_ns);
                wait.timeout.map(|timeout| timeout.saturating_sub(slept))
            }
            Err(why) => {
                self.done.without_gain += u64::from(why == Why::NoGain);
                wait.timeout
            }
        }
    }

    fn sleep(&mut self, now_ns: u64, sleep_ns: u64) -> Duration {
        // A second at most.
        let rest = Timespec { tv_sec: (sleep_ns / 1_000_000_000) as i64, tv_nsec: (sleep_ns % 1_000_000_000) as i64 };
        // Without descriptors it is a sleep, which a signal ends as it would have ended the wait.
        let _interrupted = poll(&mut [], Some(&rest)).is_err();
        let began_ns = clock_ns(ClockId::Monotonic);
        self.slept = Some(Slept { began_ns });
        let slept = Duration::from_nanos(began_ns.saturating_sub(now_ns));
        self.done.sleeps += 1;
        self.done.slept += slept;
        slept
    }

    /// The wait returned so many events.
    pub fn after_wait(&mut self, events: usize) {
        self.rules.returned(clock_ns(ClockId::Monotonic), Some(events as u64), self.slept.take());
        if self.rules.phase_ends() {
            self.rules.next_phase(clock_ns(ClockId::ThreadCPUTime));
        }
        self.done.waits += 1;
        self.done.events += events as u64;
    }

    /// Returns the work done since the beginning.
    pub fn done(&self) -> Sleeps {
        self.done
    }
}

fn clock_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(timeout: Option<Duration>) -> Wait {
        Wait { timeout, most_events: 64, left_over: false }
    }

    /// A thread with waits that bring eight events each.
    fn busy(aim: Aim) -> Pacer {
        let mut pacer = Pacer::new(aim);
        for _ in 0..3 {
            pacer.before_wait(wait(Some(Duration::ZERO)));
            pacer.after_wait(8);
        }
        pacer
    }

    #[test]
    fn a_wait_comes_an_interval_after_the_last() {
        let mut pacer = busy(Aim::Interval(Duration::from_millis(20)));
        let left = pacer.before_wait(wait(Some(Duration::from_secs(1)))).unwrap_or_default();
        pacer.after_wait(8);
        let done = pacer.done();
        assert_eq!((done.waits, done.events, done.sleeps), (4, 32, 1));
        assert!(done.slept >= Duration::from_millis(19), "{done:?}");
        assert!(left <= Duration::from_millis(981) && left > Duration::from_millis(500), "{left:?}");
    }

    #[test]
    fn deadlines_come_first_and_what_is_left_over_is_not_held_up() {
        let mut pacer = busy(Aim::Interval(Duration::from_secs(9)));
        let left = pacer.before_wait(wait(Some(Duration::from_millis(5))));
        assert_eq!((left, pacer.done().sleeps), (Some(Duration::ZERO), 1));
        let mut pacer = busy(Aim::Budget(Duration::from_millis(20)));
        assert_eq!(pacer.before_wait(Wait { left_over: true, ..wait(None) }), None);
        assert_eq!(pacer.done().sleeps, 0);
    }
}
