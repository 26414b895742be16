//! Parts of a run of unknown length: when recording pauses, goes on, and ends with the command.

use std::time::{Duration, Instant};

/// How a command is recorded in parts, and when it is ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parts {
    /// Time from the command's start that is followed and not recorded: calls, mappings and heap objects alone. It holds
    /// for a window that opens with the command.
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
            of_first: (Duration::ZERO, 0),
            covered: Covered { parts: 1, ..Covered::default() },
        }
    }

    /// Returns the action due at `now`, when `records` were sent since the window opened. `is_paused`: the plugin's
    /// state, which follows a requested change after a moment, on a busy machine a long one.
    pub(crate) fn look(&mut self, now: Instant, records: u64, is_paused: bool) -> Option<Due> {
        self.records = records;
        if now - self.began >= self.plan.whole || records >= self.plan.all_records {
            return (!std::mem::replace(&mut self.covered.ended, true)).then_some(Due::End);
        }
        if is_paused != self.paused {
            self.wait_for_change(now);
            return None;
        }
        if self.paused {
            return (now - self.since >= self.pause).then(|| self.go_on(now));
        }
        let (longest, most) = match self.covered.parts {
            1 => (self.plan.first, self.plan.first_records),
            _ => (self.plan.longest, self.plan.records),
        };
        let of_part = records - self.records_before;
        (now - self.since >= longest || of_part >= most).then(|| self.rest(now))
    }

    /// A pause and a part begin when they are made: a part goes on until then.
    fn wait_for_change(&mut self, now: Instant) {
        if self.paused {
            self.covered.recorded += now - self.since;
        }
        (self.since, self.records_before) = (now, self.records);
    }

    fn rest(&mut self, now: Instant) -> Due {
        self.pause = match self.plan.pauses {
            Pauses::Growing { first, .. } if self.covered.parts == 1 => first,
            Pauses::Growing { by, .. } => self.pause.mul_f64(by),
            Pauses::Filling => self.filling(now),
        };
        self.covered.recorded += now - self.since;
        (self.paused, self.since) = (true, now);
        Due::Pause
    }

    /// The pause behind the part that ends now, if all that follow are like those so far, the first left out. A part sends
    /// records until the plugin pauses, which may be most of them.
    fn filling(&self, now: Instant) -> Duration {
        let recorded = self.covered.recorded + (now - self.since);
        let (part, records) = match self.covered.parts {
            1 => (recorded.min(self.plan.longest), self.records.min(self.plan.records)),
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
        Due::GoOn
    }

    /// The number of the part under way or last, and whether it is paused.
    pub(crate) fn part(&self) -> (u32, bool) {
        (self.covered.parts, self.paused)
    }

    /// The window closed at `now`, in a pause or not. A part that was requested last and never began does not count.
    pub(crate) fn end(mut self, now: Instant, is_paused: bool) -> Covered {
        if !is_paused {
            self.covered.recorded += now - self.since;
        } else if !self.paused {
            self.covered.parts -= 1;
        }
        self.covered.reached = now - self.began;
        self.covered.paused = is_paused || self.covered.parts > 1;
        self.covered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn plan() -> Parts {
        let (pauses, whole) = (Pauses::Growing { first: 10 * MS, by: 1.4 }, 1000 * MS);
        Parts {
            followed: Duration::ZERO,
            first: 200 * MS,
            first_records: 2500,
            longest: 100 * MS,
            records: 1000,
            pauses,
            whole,
            all_records: 5000,
        }
    }

    fn filling_plan() -> Parts {
        let (first, pauses) = (100 * MS, Pauses::Filling);
        Parts { first, first_records: 250, longest: first, records: 250, pauses, ..plan() }
    }

    /// Looks every millisecond; a part sends `rate` records in each.
    fn run(rate: u64, length: u32) -> (Vec<(u32, Due)>, Covered) {
        run_of(plan(), rate, length)
    }

    fn run_of(plan: Parts, rate: u64, length: u32) -> (Vec<(u32, Due)>, Covered) {
        run_late(plan, rate, length, 0)
    }

    /// Each pause begins so many milliseconds late.
    fn run_late(plan: Parts, rate: u64, length: u32, late: u32) -> (Vec<(u32, Due)>, Covered) {
        let began = Instant::now();
        let mut schedule = Schedule::begin(plan, began);
        let (mut seen, mut records, mut paused, mut end) = (Vec::new(), 0, false, length);
        let mut pause_at = None;
        for ms in 1..=length {
            paused |= pause_at.is_some_and(|at| at < ms);
            records += if paused { 0 } else { rate };
            if let Some(due) = schedule.look(began + ms * MS, records, paused) {
                seen.push((ms, due));
                pause_at = (due == Due::Pause).then_some(ms + late);
                paused &= due != Due::GoOn;
                if due == Due::End {
                    end = ms;
                    break;
                }
            }
        }
        (seen, schedule.end(began + end * MS, paused))
    }

    #[test]
    fn a_short_run_is_one_part() {
        let covered = Covered { parts: 1, recorded: 190 * MS, reached: 190 * MS, ended: false, paused: false };
        assert_eq!(run(1, 190), (vec![], covered));
    }

    #[test]
    fn a_run_that_ends_in_its_first_pause_was_not_recorded_whole() {
        let (seen, covered) = run(1, 205);
        assert_eq!(seen, [(200, Due::Pause)]);
        assert_eq!((covered.parts, covered.recorded, covered.paused), (1, 200 * MS, true));
    }

    #[test]
    fn pauses_grow_and_the_command_ends_with_the_plan() {
        let (seen, covered) = run(1, 5000);
        let firsts = [(200, Due::Pause), (210, Due::GoOn), (310, Due::Pause), (324, Due::GoOn)];
        assert_eq!(seen[..4], firsts);
        assert_eq!(seen.last(), Some(&(1000, Due::End)));
        assert!(covered.ended && covered.reached == 1000 * MS && covered.parts >= 6, "{covered:?}");
    }

    #[test]
    fn parts_of_few_records_fill_the_plan_and_others_are_half_of_it() {
        let filling = filling_plan();
        // 5000 records in 20 parts of 25 ms.
        let (seen, covered) = run_of(filling, 10, 5000);
        assert_eq!(seen[..2], [(25, Due::Pause), (52, Due::GoOn)]);
        assert_eq!((covered.parts, covered.recorded, covered.ended), (20, 500 * MS, true));
        let (_, covered) = run_of(Parts { all_records: 2500, ..filling }, 10, 5000);
        assert_eq!((covered.parts, covered.recorded), (10, 250 * MS));
        assert!(covered.reached > 850 * MS, "{covered:?}");
        let (seen, covered) = run_of(filling, 1, 5000);
        assert_eq!(seen[..3], [(100, Due::Pause), (200, Due::GoOn), (300, Due::Pause)]);
        assert_eq!(covered.parts, 5);
    }

    #[test]
    fn parts_that_pause_late_fill_the_plan_too() {
        let filling = filling_plan();
        // 25 ms until a pause is requested, and 50 ms until it is made.
        let (_, covered) = run_late(filling, 10, 5000, 50);
        assert!(covered.reached > 850 * MS && covered.parts >= 5, "{covered:?}");
    }

    #[test]
    fn a_longer_first_part_leaves_the_rest_to_the_others() {
        let plan = Parts { first: 200 * MS, first_records: 1000, ..filling_plan() };
        let (seen, covered) = run_of(plan, 10, 5000);
        assert_eq!(seen[0], (100, Due::Pause));
        assert!(covered.reached > 900 * MS && (16..=17).contains(&covered.parts), "{covered:?}");
    }

    #[test]
    fn parts_count_when_the_plugin_comes_to_them() {
        let began = Instant::now();
        let mut schedule = Schedule::begin(plan(), began);
        let mut look = |ms: u32, is_paused| schedule.look(began + ms * MS, 0, is_paused);
        assert_eq!(look(200, false), Some(Due::Pause));
        // The pause is made 300 ms late, and the next part never.
        assert_eq!([look(210, false), look(500, false), look(509, true)], [None; 3]);
        assert_eq!(look(510, true), Some(Due::GoOn));
        assert_eq!(look(900, true), None);
        assert_eq!(look(1000, true), Some(Due::End));
        let covered = schedule.end(began + 1000 * MS, true);
        assert_eq!((covered.parts, covered.recorded), (1, 500 * MS));
    }

    #[test]
    fn a_part_ends_with_its_records_and_the_plan_with_all() {
        let (seen, covered) = run(100, 5000);
        assert_eq!(seen[..4], [(25, Due::Pause), (35, Due::GoOn), (45, Due::Pause), (59, Due::GoOn)]);
        assert_eq!(seen.last().map(|(_, due)| *due), Some(Due::End));
        assert_eq!((covered.parts, covered.recorded), (4, 50 * MS));
    }
}
