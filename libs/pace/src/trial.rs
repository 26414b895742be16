//! Savings of sleeps: the thread's CPU time for an event with sleeps and without, measured in turn.

use std::cmp::min;

/// A phase is so many events long.
pub const PHASE_EVENTS: u64 = 256;
/// So often each way before the comparison counts.
const PHASES_EACH: u32 = 2;
/// So many phases of the cheaper way to one of the other, after a change of the cheaper way. Each phase of the other
/// that changes nothing doubles them, this often.
const PHASES_BETWEEN: u32 = 2;
const MOST_DOUBLED: u32 = 4;
/// Sleeps must save one part in so many of the thread's CPU time.
pub const LEAST_GAIN: u64 = 32;
/// Parts of a nanosecond.
const PARTS: u64 = 1024;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Way {
    #[default]
    WithSleeps,
    Without,
}

/// One way's phases. A quarter of the cost is the last phase's. A phase of much other work (a thousand connections
/// accepted) must not spoil the comparison for long: it counts as twice the cost so far at most, and what costs less than
/// half counts at once.
#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    cost: u64,
    phases: u32,
}

impl Measured {
    fn add(&mut self, cost: u64) {
        let at_once = self.phases == 0 || cost < self.cost / 2;
        let most = self.cost.saturating_mul(2);
        self.cost = if at_once { cost } else { self.cost - self.cost / 4 + min(cost, most) / 4 };
        self.phases += 1;
    }
}

/// The comparison, which never ends: loads change.
#[derive(Clone, Debug, Default)]
pub struct Trial {
    events: u64,
    began_cpu_ns: Option<u64>,
    with_sleeps: Measured,
    without: Measured,
    since_other: u32,
    doubled: u32,
    cheaper: Way,
    way: Way,
}

impl Trial {
    /// Returns whether sleeps are out in this phase.
    pub fn is_without(&self) -> bool {
        self.way == Way::Without
    }

    /// A call brought so many events.
    pub fn add(&mut self, events: u64) {
        self.events += min(events, 1 << 32);
    }

    /// Returns whether the thread's CPU clock is needed now.
    pub fn phase_ends(&self) -> bool {
        self.began_cpu_ns.is_none() || self.events >= PHASE_EVENTS
    }

    /// The next phase begins at this CPU time of the thread.
    pub fn next_phase(&mut self, cpu_ns: u64) {
        if let Some(began) = self.began_cpu_ns {
            let spent = min(cpu_ns.saturating_sub(began), u64::MAX / PARTS);
            let measured = if self.is_without() { &mut self.without } else { &mut self.with_sleeps };
            measured.add(spent * PARTS / self.events.max(1));
            self.way = self.next_way();
        }
        self.began_cpu_ns = Some(cpu_ns);
        self.events = 0;
    }

    /// Both ways in turn at first, later the cheaper one but for a phase now and then.
    fn next_way(&mut self) -> Way {
        if self.without.phases < PHASES_EACH {
            return if self.without.phases < self.with_sleeps.phases { Way::Without } else { Way::WithSleeps };
        }
        let pays = self.with_sleeps.cost < self.without.cost - self.without.cost / LEAST_GAIN;
        let (cheaper, other) = if pays { (Way::WithSleeps, Way::Without) } else { (Way::Without, Way::WithSleeps) };
        if cheaper != self.cheaper {
            (self.cheaper, self.since_other, self.doubled) = (cheaper, 0, 0);
        }
        if self.since_other < PHASES_BETWEEN << self.doubled {
            self.since_other += 1;
            return cheaper;
        }
        self.since_other = 0;
        self.doubled = min(self.doubled + 1, MOST_DOUBLED);
        other
    }
}
