//! Parts and pauses by the clock of the guest's instructions.
//!
//! The emulator runs some code much faster than other code, compared with a processor: moments at equal distances of this
//! machine's clock fall more often into what it runs slowly. Parts of as many instructions, with as many between them,
//! are a fair sample of the run.

use std::time::{Duration, Instant};

/// A part that its time here would make shorter has this length. The time of a short part is mostly that of its begin and
/// end, so that each part would be hardly longer than the one before.
const LEAST_PART_NS: u64 = 300_000;

/// Lengths at which the plugin ends the next part and the next pause itself, in nanoseconds of the guest's clock; 0: on
/// request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lengths {
    pub part_ns: u64,
    pub pause_ns: u64,
}

/// State of the plugin, as a look at the ring shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Records so far.
    pub records: u64,
    /// Between two parts.
    pub is_paused: bool,
    /// Changes between parts and pauses; 0: the plugin does not time itself, or not yet.
    pub changes: u32,
    /// The guest's clock at the last change.
    pub changed_ns: u64,
    /// The guest's clock not long ago.
    pub now_ns: u64,
    /// Nanoseconds of the guest's clock in parts, and in pauses, up to the last change.
    pub passed_ns: [u64; 2],
    /// Pages that the kernel cleared in parts, and in pauses.
    pub cleared: [u64; 2],
}

impl Seen {
    /// Nanoseconds of the guest's clock that were recorded, and all of them; zeros: unknown.
    pub(crate) fn guest_ns(&self) -> (u64, u64) {
        let mut passed_ns = self.passed_ns;
        if self.changes != 0 {
            passed_ns[usize::from(self.is_paused)] += self.now_ns.saturating_sub(self.changed_ns);
        }
        (passed_ns[0], passed_ns[0] + passed_ns[1])
    }
}

/// Stretches of a run by both clocks.
#[derive(Clone, Copy, Debug, Default)]
struct Passed {
    here: Duration,
    guest_ns: u64,
}

impl Passed {
    fn add(&mut self, here: Duration, guest_ns: u64) {
        self.here += here;
        self.guest_ns += guest_ns;
    }

    /// Nanoseconds of the guest's clock in so long a time of this machine's; 0: unknown.
    fn guest_ns_in(&self, here: Duration) -> u64 {
        (here.as_secs_f64() * self.guest_ns as f64 / self.here.as_secs_f64().max(1e-9)) as u64
    }
}

/// Rates of the parts and pauses that have ended.
#[derive(Clone, Debug)]
pub(crate) struct Timing {
    seen: Seen,
    at: Instant,
    parts: Passed,
    pauses: Passed,
    /// Records of `parts`.
    records: u64,
    /// Whether the last part is among `parts`.
    last_counts: bool,
    /// Records ahead of the last part.
    before: u64,
}

impl Timing {
    pub(crate) fn begin(now: Instant) -> Self {
        let (seen, parts, pauses) = Default::default();
        Timing { seen, at: now, parts, pauses, records: 0, last_counts: false, before: 0 }
    }

    /// Takes what a look showed at `now`.
    pub(crate) fn look(&mut self, now: Instant, seen: Seen) {
        // The records of a part have come by the end of the pause behind it.
        if self.seen.is_paused && self.last_counts {
            self.records += seen.records - self.seen.records;
        }
        if seen.changes == self.seen.changes {
            self.seen.records = seen.records;
            return;
        }
        let (here, guest_ns) = (now - self.at, seen.changed_ns.saturating_sub(self.seen.changed_ns));
        // Changes that went by between two looks have no lengths.
        let counts = self.seen.changes != 0 && seen.changes.wrapping_sub(self.seen.changes) == 1;
        match seen.is_paused {
            true if counts => self.parts.add(here, guest_ns),
            false if counts => self.pauses.add(here, guest_ns),
            _ => {}
        }
        if seen.is_paused {
            self.last_counts = counts;
            self.records += if counts { seen.records - self.before } else { 0 };
        } else {
            self.before = seen.records;
        }
        (self.seen, self.at) = (seen, now);
    }

    /// Length of a part of so many records, at most of so long a time here and as long as `planned`; 0: unknown.
    pub(crate) fn part_ns(&self, records: u64, longest: Duration, planned: Option<u64>) -> u64 {
        let is_known = self.records != 0 && self.parts.guest_ns >= planned.map_or(1, |_| LEAST_PART_NS);
        if !is_known {
            return planned.unwrap_or(0);
        }
        let by_records = records as f64 * self.parts.guest_ns as f64 / self.records as f64;
        let longest_ns = self.parts.guest_ns_in(longest).max(LEAST_PART_NS);
        (by_records as u64).min(longest_ns).min(planned.unwrap_or(u64::MAX)).max(1)
    }

    /// Length of a pause of so long a time here; 0: unknown.
    pub(crate) fn pause_ns(&self, here: Duration) -> u64 {
        self.pauses.guest_ns_in(here)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_stretch_that_goes_on_counts_as_what_it_is() {
        let seen = |is_paused| Seen {
            is_paused,
            changes: 3,
            changed_ns: 50,
            now_ns: 90,
            passed_ns: [20, 30],
            ..Seen::default()
        };
        assert_eq!((seen(false).guest_ns(), seen(true).guest_ns()), ((60, 90), (20, 90)));
        let before_the_window = Seen { changes: 0, now_ns: 90, ..Seen::default() };
        assert_eq!(before_the_window.guest_ns(), (0, 0));
    }

    #[test]
    fn a_part_that_was_mostly_its_begin_and_end_is_followed_by_one_of_some_length() {
        let began = Instant::now();
        let mut timing = Timing::begin(began);
        timing.look(began, Seen { changes: 1, changed_ns: 5, ..Seen::default() });
        let paused = Seen { records: 100, is_paused: true, changes: 2, changed_ns: 1005, ..Seen::default() };
        timing.look(began + 20 * MS, paused);
        assert_eq!(timing.part_ns(1_000_000, 30 * MS, None), LEAST_PART_NS, "1,500 ns by its time");
        assert_eq!(timing.part_ns(1000, 30 * MS, None), 10_000, "no more records than wanted");
        assert_eq!(timing.part_ns(1000, 30 * MS, Some(900_000)), 900_000, "one of 1,000 ns is no measure");
    }

    #[test]
    fn lengths_follow_from_what_parts_and_pauses_took_by_both_clocks() {
        let began = Instant::now();
        let mut timing = Timing::begin(began);
        let mut changes = 0;
        let mut look = |ms: u32, records, is_paused, changed_ns| {
            changes += u32::from(changed_ns != 0);
            timing.look(began + ms * MS, Seen { records, is_paused, changes, changed_ns, ..Seen::default() });
            (timing.part_ns(1_000, 100 * MS, None), timing.pause_ns(10 * MS))
        };
        assert_eq!(look(50, 4_000, false, 0), (0, 0));
        // The first part began before the plugin's clock is known; a pause of 20 ms is 8 ms of the guest.
        assert_eq!(look(100, 5_000, true, 1_000_000), (0, 0));
        assert_eq!(look(120, 6_000, false, 9_000_000), (0, 4_000_000));
        // A part of 50 ms is 2 ms of the guest, and has 4,000 records: the last 1,000 come in the pause.
        assert_eq!(look(170, 9_000, true, 11_000_000), (666_666, 4_000_000));
        assert_eq!(look(190, 10_000, false, 19_000_000), (500_000, 4_000_000));
        assert_eq!(timing.part_ns(100_000, 100 * MS, None), 4_000_000, "as long as 100 ms here");
        assert_eq!(timing.part_ns(100_000, 100 * MS, Some(3_000_000)), 3_000_000, "no longer than those before");
        assert_eq!(timing.part_ns(100_000, 100 * MS, Some(5_000_000)), 4_000_000);
    }
}
