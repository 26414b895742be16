//! When a thread that asks for events may sleep first: the twin of `native/preload/pace/rules.c`, for the rehearsal. Both
//! are held to `native/preload/pace/tests/vectors.txt`.

use std::cmp::{max, min};

/// A sleep pays where it gathers so many events.
pub const LEAST_EVENTS: u64 = 2;
/// The interval must be at least so many times the cost of a call.
pub const DEAR_TIMES: u64 = 4;
/// The recent rate is that of so many intervals.
const RECENT: u64 = 8;
const MOST_STRIKES: u32 = 6;
/// Of an event.
const PARTS: u64 = 1024;
const MOST_RECENT: u64 = 1 << 32;

/// What keeps a thread awake, or that nothing does.
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
    /// The call costs too much for the interval.
    Dear,
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

/// What a thread knows of its own calls.
#[derive(Clone, Debug)]
pub struct Thread {
    interval_ns: u64,
    returned_ns: u64,
    recent_events: u64,
    recent_ns: u64,
    strikes: u32,
    held: u32,
    held_by: Why,
}

impl Thread {
    /// Of which nothing is known yet. `interval_ns`: a second at most.
    pub fn new(interval_ns: u64) -> Self {
        Thread { interval_ns, returned_ns: 0, recent_events: 0, recent_ns: 0, strikes: 0, held: 0, held_by: Why::Sleep }
    }

    /// How long to sleep before a call, or why not.
    pub fn decide(&self, call: Call) -> Result<u64, Why> {
        if call.timeout_ns == Some(0) {
            return Err(Why::AtOnce);
        }
        if self.returned_ns == 0 {
            return Err(Why::First);
        }
        let passed = call.now_ns.saturating_sub(self.returned_ns);
        if passed >= self.interval_ns {
            return Err(Why::Late);
        }
        if self.held > 0 {
            return Err(self.held_by);
        }
        let rest = self.interval_ns - passed;
        let sleep = call.timeout_ns.map_or(rest, |timeout| min(rest, timeout));
        if call.most_events < LEAST_EVENTS || self.recent_events * sleep < LEAST_EVENTS * PARTS * max(self.recent_ns, 1)
        {
            return Err(Why::Sparse);
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
    }

    fn note_rate(&mut self, now_ns: u64, events: u64) {
        if self.returned_ns == 0 {
            // These events took nobody knows how long.
            return;
        }
        let recent_ns = RECENT * self.interval_ns;
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

    /// Whether a sleep paid, by the call behind it.
    fn judge(&mut self, cost_ns: u64, events: u64) {
        if events < LEAST_EVENTS {
            self.strike(Why::Sparse);
        } else if cost_ns.saturating_mul(DEAR_TIMES) > self.interval_ns {
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

    const VECTORS: &str = include_str!("../../../../native/preload/pace/tests/vectors.txt");

    fn word(decided: Result<u64, Why>) -> String {
        let (why, sleep) = decided.map_or_else(|why| (why, 0), |sleep| (Why::Sleep, sleep));
        let name = match why {
            Why::Sleep => "sleep",
            Why::AtOnce => "at-once",
            Why::First => "first",
            Why::Late => "late",
            Why::Sparse => "sparse",
            Why::Dear => "dear",
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
        let mut thread = Thread::new(0);
        let mut decisions = 0;
        for line in VECTORS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let words: Vec<&str> = line.split(' ').collect();
            match words.as_slice() {
                ["interval", interval] => thread = Thread::new(count(interval)),
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
