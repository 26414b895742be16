//! Parts of a run of unknown length: when recording pauses, goes on, and ends with the command.

use crate::timing::{Lengths, Seen, Timing};
use std::time::{Duration, Instant};

/// A part or a pause that the plugin does not end itself in so many times its length is ended on request.
const PATIENCE: u32 = 2;

/// How a command is recorded in parts, and when it is ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parts {
    /// Time from the start until which pauses follow calls, so that objects that are allocated there have their call
    /// sites.
    pub followed: Duration,
    /// Longest first part, by the clock of this machine: a run that is shorter is recorded whole.
    pub first: Duration,
    /// Longest part after the first.
    pub longest: Duration,
    /// Records of the first part, at most.
    pub first_records: u64,
    /// Records of a part after the first, at most.
    pub records: u64,
    /// Pauses between the parts.
    pub pauses: Pauses,
    /// The command is ended when it has run for this time in the guest.
    pub whole: Duration,
    /// The command is ended when so many records were sent.
    pub all_records: u64,
    /// Nanoseconds of the guest's clock in a second of a pause; 0: as in the pauses so far. Short pauses are mostly
    /// changes, and in followed ones the guest is slower.
    pub paused_ns_a_second: u64,
    /// Nanoseconds of the guest's clock in a part, or fewer where the parts so far take too long; none: as many as they
    /// show.
    pub part_ns: Option<u64>,
    /// Nanoseconds of the guest's clock from a part's begin to the next one's, where pauses go by that; 0: by `pauses`.
    pub period_ns: u64,
}

impl Parts {
    /// Returns the plan with nothing followed ahead of it.
    pub fn from_the_start(self) -> Self {
        Parts { followed: Duration::ZERO, ..self }
    }
}

/// How long pauses are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pauses {
    /// Each pause is so many times as long as the one before, so that few parts reach far into a long run.
    Growing {
        /// The first one.
        first: Duration,
        /// Times.
        by: f64,
    },
    /// As long as the part before, and longer where its records leave time: the parts that are still to come fill the
    /// plan.
    Filling,
}

/// How much of a command was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Covered {
    /// Parts.
    pub parts: u32,
    /// Time in which it was recorded, of `reached`; by the clock of this machine.
    pub recorded: Duration,
    /// From the window's start to its end.
    pub reached: Duration,
    /// Ended before its end, because the plan was over.
    pub ended: bool,
    /// Recording paused at least once.
    pub paused: bool,
    /// Nanoseconds of the guest's clock in a second of a pause; 0: unknown.
    pub paused_ns_a_second: u64,
    /// Nanoseconds of the guest's clock that were recorded, and all of them; zeros: unknown.
    pub guest_ns: (u64, u64),
    /// Pages that the kernel cleared in parts, and in all of the time; zeros: unknown.
    pub cleared_pages: (u64, u64),
}

/// Next action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Pause,
    GoOn,
    End,
}

/// A plan under way.
pub(crate) struct Schedule {
    plan: Parts,
    began: Instant,
    /// Start of the part or pause that goes on.
    since: Instant,
    paused: bool,
    pause: Duration,
    records: u64,
    records_before: u64,
    /// A change was requested and is not made yet.
    requested: bool,
    /// Changes at the last look; the guest may have been paused ahead of the window.
    changes: Option<u32>,
    timing: Timing,
    /// Lengths at the begin of the part or pause that goes on.
    lengths: Lengths,
    /// Lengths that the plugin has for the next ones.
    offered: Lengths,
    /// Time and records of the first part, once it is over.
    of_first: (Duration, u64),
    covered: Covered,
}

impl Schedule {
    /// The window opened at `now`.
    pub(crate) fn begin(plan: Parts, now: Instant) -> Self {
        Schedule {
            plan,
            began: now,
            since: now,
            paused: false,
            pause: Duration::ZERO,
            records: 0,
            records_before: 0,
            requested: false,
            changes: None,
            timing: Timing::begin(now),
            lengths: Lengths::default(),
            offered: Lengths::default(),
            of_first: (Duration::ZERO, 0),
            covered: Covered { parts: 1, ..Covered::default() },
        }
    }

    /// Returns the lengths of the first part and of the first pause, for the plugin as the window opens at `now`. A first
    /// part of no time is over as it begins: until the first look it would have recorded most of a program's start.
    pub(crate) fn opening(&mut self, now: Instant) -> Lengths {
        if self.plan.first.is_zero() {
            self.offered = Lengths { part_ns: 1, ..self.offer(now) };
            self.lengths = self.offered;
        }
        self.offered
    }

    /// Returns the action due at `now`. The plugin's state follows a requested change after a moment, on a busy machine a
    /// long one, and changes without a request where the plugin times itself.
    pub(crate) fn look(&mut self, now: Instant, seen: Seen) -> Option<Due> {
        let Seen { records, is_paused, .. } = seen;
        self.records = records;
        self.timing.look(now, seen);
        if now - self.began >= self.plan.whole || records >= self.plan.all_records {
            return (!std::mem::replace(&mut self.covered.ended, true)).then_some(Due::End);
        }
        let made = self.changes.replace(seen.changes).map_or(0, |before| seen.changes.wrapping_sub(before));
        if made > 1 {
            self.catch_up(now, is_paused, made);
            return None;
        }
        if is_paused != self.paused {
            match self.requested {
                true => self.wait_for_change(now),
                false => self.follow(now),
            }
            return None;
        }
        if std::mem::replace(&mut self.requested, false) {
            self.lengths = self.offered;
        }
        if self.paused {
            let timed = self.lengths.pause_ns != 0;
            if timed && self.plan.period_ns != 0 {
                return None;
            }
            return (now - self.since >= self.pause * patience(timed)).then(|| self.go_on(now));
        }
        let (longest, most) = match self.covered.parts {
            1 => (self.plan.first, self.plan.first_records),
            _ => (self.plan.longest, self.plan.records),
        };
        let (of_part, patience) = (records - self.records_before, patience(self.lengths.part_ns != 0));
        let is_over = now - self.since >= longest * patience || of_part >= most.saturating_mul(patience.into());
        is_over.then(|| self.rest(now))
    }

    /// Returns the lengths of the next part and of the next pause, for the plugin.
    pub(crate) fn offer(&mut self, now: Instant) -> Lengths {
        let pause = if self.paused { self.pause } else { self.next_pause(now) };
        let part_ns = self.timing.part_ns(self.plan.records, self.plan.longest, self.plan.part_ns);
        let uneven = unevenness(self.covered.parts);
        let pause_ns = match self.plan.period_ns {
            0 => self.pause_ns(pause.mul_f64(uneven)),
            period_ns => (period_ns.saturating_sub(part_ns) as f64 * uneven).max(1.0) as u64,
        };
        self.offered = Lengths { part_ns, pause_ns };
        self.offered
    }

    fn pause_ns(&self, here: Duration) -> u64 {
        match self.plan.paused_ns_a_second {
            0 => self.timing.pause_ns(here),
            a_second => (here.as_secs_f64() * a_second as f64) as u64,
        }
    }

    /// The plugin made a change without a request.
    fn follow(&mut self, now: Instant) {
        let _ = if self.paused { self.go_on(now) } else { self.rest(now) };
        (self.requested, self.lengths) = (false, self.offered);
    }

    /// A pause and a part begin when they are made: a part goes on until then.
    fn wait_for_change(&mut self, now: Instant) {
        if self.paused {
            self.covered.recorded += now - self.since;
        }
        (self.since, self.records_before) = (now, self.records);
    }

    /// The plugin made several changes since the last look: its parts and pauses are taken for as long as each other.
    fn catch_up(&mut self, now: Instant, is_paused: bool, made: u32) {
        let begun = if is_paused { made / 2 } else { made.div_ceil(2) };
        self.covered.parts += begun - u32::from(self.requested && !self.paused).min(begun);
        self.covered.recorded += (now - self.since) / 2;
        (self.since, self.records_before) = (now, self.records);
        (self.paused, self.requested, self.lengths) = (is_paused, false, self.offered);
    }

    fn rest(&mut self, now: Instant) -> Due {
        self.pause = self.next_pause(now);
        self.covered.recorded += now - self.since;
        (self.paused, self.since, self.requested) = (true, now, true);
        Due::Pause
    }

    /// The pause behind the part that goes on, if the part ends now.
    fn next_pause(&self, now: Instant) -> Duration {
        match self.plan.pauses {
            Pauses::Growing { first, .. } if self.covered.parts == 1 => first,
            Pauses::Growing { by, .. } => self.pause.mul_f64(by),
            Pauses::Filling => self.filling(now),
        }
    }

    /// The pause behind the part that ends now, if all that follow are like those so far, the first left out. A part sends
    /// records until the plugin pauses, which may be most of them.
    fn filling(&self, now: Instant) -> Duration {
        let recorded = self.covered.recorded + (now - self.since);
        let (part, records) = match self.covered.parts {
            1 => (recorded.min(self.plan.longest), self.plan.records),
            parts => {
                ((recorded - self.of_first.0) / (parts - 1), (self.records - self.of_first.1) / u64::from(parts - 1))
            }
        };
        let parts_left = self.plan.all_records.saturating_sub(self.records) / records.max(1);
        let left = (self.began + self.plan.whole).saturating_duration_since(now);
        let of_each = left.div_f64((parts_left as f64).max(1.0));
        of_each.saturating_sub(part).clamp(part, left.max(part))
    }

    fn go_on(&mut self, now: Instant) -> Due {
        if self.covered.parts == 1 {
            self.of_first = (self.covered.recorded, self.records);
        }
        self.covered.parts += 1;
        (self.paused, self.since, self.records_before) = (false, now, self.records);
        self.requested = true;
        Due::GoOn
    }

    /// Whether a pause that begins now follows calls.
    pub(crate) fn follows(&self, now: Instant) -> bool {
        now - self.began < self.plan.followed
    }

    /// The number of the part under way or last, and whether it is paused.
    pub(crate) fn part(&self) -> (u32, bool) {
        (self.covered.parts, self.paused)
    }

    /// The window closed at `now`, in a pause or not. A part that was requested last and never began does not count.
    pub(crate) fn end(mut self, now: Instant, seen: Seen) -> Covered {
        let is_paused = seen.is_paused;
        if !self.paused && is_paused && self.requested {
            self.covered.parts -= 1;
        } else if !self.paused || !is_paused {
            self.covered.recorded += now - self.since;
        }
        self.covered.reached = now - self.began;
        self.covered.guest_ns = seen.guest_ns();
        self.covered.cleared_pages = (seen.cleared[0], seen.cleared.iter().sum());
        self.covered.paused_ns_a_second = self.timing.pause_ns(Duration::from_secs(1));
        self.covered.paused = is_paused || self.covered.parts > 1;
        self.covered
    }
}

/// Share of its planned length that the pause behind part `number` has: 0.25 to 1.75, as likely each, and alike in each
/// run. With pauses of one length, a program that repeats itself in as many instructions is recorded at the same place
/// always.
fn unevenness(number: u32) -> f64 {
    // The output function of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
    let mut mixed = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    0.25 + 1.5 * ((mixed ^ mixed >> 31) >> 32) as f64 / (1u64 << 32) as f64
}

/// How many times its length a part or a pause may take before its end is requested.
fn patience(timed: bool) -> u32 {
    if timed { PATIENCE } else { 1 }
}

#[cfg(test)]
#[path = "parts_tests.rs"]
mod tests;
