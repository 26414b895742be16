//! Rules for when a polling thread may sleep first, without a clock and without a system call: the twin of
//! `native/preload/pace/rules.c`. Both are held to `native/preload/pace/tests/vectors.txt`.

use crate::trial::Trial;
use std::cmp::{max, min};
use std::time::Duration;

/// A sleep pays where it gathers so many events.
pub const LEAST_EVENTS: u64 = 2;
/// The recent rate is that of so many intervals.
const RECENT: u64 = 8;
const MOST_STRIKES: u32 = 6;
/// The shortest interval that a budget is spent on.
const SHORTEST_NS: u64 = 50_000;
/// Parts of an event.
const PARTS: u64 = 1024;
const MOST_RECENT: u64 = 1 << 32;

/// How far apart a thread's calls are; a second at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// So far.
    Interval(Duration),
    /// As far as what is added to one event of a hundred stays within this.
    Budget(Duration),
}

/// Reason that keeps a thread awake, or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Why {
    /// Nothing: it sleeps.
    #[default]
    Sleep,
    /// The call itself does not wait.
    AtOnce,
    /// No call has returned before.
    First,
    /// The interval is over.
    Late,
    /// Too few events would gather.
    Sparse,
    /// The call itself takes longer than the interval.
    Dear,
    /// Sleeps cost what they save, or this is the half of the trial without.
    NoGain,
    /// Something of the last return waits still.
    LeftOver,
}

/// A call that is about to be made.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// When.
    pub now_ns: u64,
    /// How long it waits at most; none waits without limit.
    pub timeout_ns: Option<u64>,
    /// How many events it can return.
    pub most_events: u64,
    /// A descriptor of the last return is still readable.
    pub left_over: bool,
}

/// A sleep before a call: when the call itself began.
#[derive(Clone, Copy, Debug)]
pub struct Slept {
    /// Behind the sleep.
    pub began_ns: u64,
}

/// A thread's record of its own calls.
#[derive(Clone, Debug)]
pub struct Thread {
    aim: Aim,
    returned_ns: u64,
    recent_events: u64,
    recent_ns: u64,
    strikes: u32,
    held: u32,
    held_by: Why,
    busy_ns: u64,
    trial: Trial,
}

impl Thread {
    /// Creates a thread without history.
    pub fn new(aim: Aim) -> Self {
        Thread {
            aim,
            returned_ns: 0,
            recent_events: 0,
            recent_ns: 0,
            strikes: 0,
            held: 0,
            held_by: Why::Sleep,
            busy_ns: 0,
            trial: Trial::default(),
        }
    }

    /// The interval: a budget less the time that the thread is busy with what gathered, since the last event waits for
    /// both.
    pub fn interval_ns(&self) -> u64 {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        match self.aim {
            Aim::Interval(interval) => ns(interval),
            Aim::Budget(budget) => max(ns(budget).saturating_sub(self.busy_ns), SHORTEST_NS),
        }
    }

    /// Records that the program polls for events. Before [`Thread::decide`]. A longer busy time counts at once, and
    /// fades by a part in sixteen a call.
    pub fn polled(&mut self, now_ns: u64) {
        if self.returned_ns > 0 {
            let faded = self.busy_ns - self.busy_ns / 16;
            self.busy_ns = max(faded, now_ns.saturating_sub(self.returned_ns));
        }
    }

    /// Returns how long to sleep before a call, or why not.
    pub fn decide(&self, call: Call) -> Result<u64, Why> {
        if call.timeout_ns == Some(0) {
            return Err(Why::AtOnce);
        }
        if self.returned_ns == 0 {
            return Err(Why::First);
        }
        let (interval_ns, passed) = (self.interval_ns(), call.now_ns.saturating_sub(self.returned_ns));
        if passed >= interval_ns {
            return Err(Why::Late);
        }
        if self.held > 0 {
            return Err(self.held_by);
        }
        let rest = interval_ns - passed;
        let sleep = call.timeout_ns.map_or(rest, |timeout| min(rest, timeout));
        if call.most_events < LEAST_EVENTS || self.recent_events * sleep < LEAST_EVENTS * PARTS * max(self.recent_ns, 1)
        {
            return Err(Why::Sparse);
        }
        if self.trial.is_without() {
            return Err(Why::NoGain);
        }
        if call.left_over { Err(Why::LeftOver) } else { Ok(sleep) }
    }

    /// A call returned so many events, or failed (none).
    pub fn returned(&mut self, now_ns: u64, events: Option<u64>, slept: Option<Slept>) {
        self.note_rate(now_ns, events.unwrap_or(0));
        self.returned_ns = now_ns;
        match (slept, events) {
            (Some(slept), Some(events)) => self.judge(now_ns.saturating_sub(slept.began_ns), events),
            (None, _) => self.held = self.held.saturating_sub(1),
            (Some(_), None) => {}
        }
        self.trial.add(events.unwrap_or(0));
    }

    /// Returns whether a phase of the trial ends with this return: the caller then reads the thread's CPU clock.
    pub fn phase_ends(&self) -> bool {
        self.trial.phase_ends()
    }

    /// The next phase begins.
    pub fn next_phase(&mut self, cpu_ns: u64) {
        self.trial.next_phase(cpu_ns);
    }

    fn note_rate(&mut self, now_ns: u64, events: u64) {
        if self.returned_ns == 0 {
            // These events took an unknown time.
            return;
        }
        let recent_ns = RECENT * self.interval_ns();
        let passed = now_ns.saturating_sub(self.returned_ns);
        if passed > recent_ns {
            (self.recent_ns, self.recent_events) = (0, 0);
        }
        self.recent_ns += passed;
        self.recent_events += min(events, MOST_RECENT / PARTS) * PARTS;
        while self.recent_ns > recent_ns || self.recent_events > MOST_RECENT {
            self.recent_ns /= 2;
            self.recent_events /= 2;
        }
    }

    /// Judges whether a sleep paid, by the call behind it.
    fn judge(&mut self, cost_ns: u64, events: u64) {
        if events < LEAST_EVENTS {
            self.strike(Why::Sparse);
        } else if cost_ns > self.interval_ns() {
            self.strike(Why::Dear);
        } else {
            self.strikes = 0;
        }
    }

    fn strike(&mut self, why: Why) {
        self.strikes = min(self.strikes + 1, MOST_STRIKES);
        self.held = 1 << self.strikes;
        self.held_by = why;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::trial::PHASE_EVENTS;

    const VECTORS: &str = include_str!("../../../native/preload/pace/tests/vectors.txt");

    fn word(decided: Result<u64, Why>) -> String {
        let (why, sleep) = decided.map_or_else(|why| (why, 0), |sleep| (Why::Sleep, sleep));
        let name = match why {
            Why::Sleep => "sleep",
            Why::AtOnce => "at-once",
            Why::First => "first",
            Why::Late => "late",
            Why::Sparse => "sparse",
            Why::Dear => "dear",
            Why::NoGain => "no-gain",
            Why::LeftOver => "left-over",
        };
        format!("{name} {sleep}")
    }

    fn count(word: &str) -> u64 {
        word.parse().unwrap()
    }

    /// `None` below 0.
    fn signed(word: &str) -> Option<u64> {
        word.parse().ok()
    }

    #[test]
    fn the_rules_are_those_of_the_preloaded_library() {
        let nanos = |word: &str| Duration::from_nanos(count(word));
        let mut thread = Thread::new(Aim::Interval(Duration::ZERO));
        let (mut decisions, mut clock) = (0, 0);
        for line in VECTORS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let words: Vec<&str> = line.split(' ').collect();
            match words.as_slice() {
                ["interval", interval] => thread = Thread::new(Aim::Interval(nanos(interval))),
                ["budget", budget] => thread = Thread::new(Aim::Budget(nanos(budget))),
                ["polls", now] => thread.polled(count(now)),
                ["cpu", cpu] => {
                    clock = count(cpu);
                    thread.next_phase(clock);
                }
                ["phases", phases, now, spent] => {
                    for _ in 0..count(phases) {
                        clock += count(spent);
                        thread.returned(count(now), Some(PHASE_EVENTS), None);
                        thread.next_phase(clock);
                    }
                }
                ["phase-ends", expected] => assert_eq!(thread.phase_ends(), *expected == "1", "{line}"),
                ["returned", now, events] => thread.returned(count(now), signed(events), None),
                ["paid", now, events, began] => {
                    thread.returned(count(now), signed(events), Some(Slept { began_ns: count(began) }));
                }
                ["decide", now, timeout, most, left_over, "=", expected @ ..] => {
                    decisions += 1;
                    let decided = thread.decide(Call {
                        now_ns: count(now),
                        timeout_ns: signed(timeout),
                        most_events: count(most),
                        left_over: *left_over == "1",
                    });
                    assert_eq!(word(decided), expected.join(" "), "{line}");
                }
                // The rehearsal has no clock to run late.
                ["left", ..] => {}
                _ => panic!("not a vector: {line}"),
            }
        }
        assert!(decisions > 40, "{decisions}");
    }
}
