//! How long a run is, as a first look shows it, and the parts in which a closer look records it.

use nearmiss_record::run::{Coverage, Manifest};
use nearmiss_tap::parts::{Parts, Pauses};
use std::time::Duration;

/// A command runs so many times as fast while it is not recorded, at least, where the guest's clock is unknown.
const FASTER_IN_A_PAUSE: f64 = 4.0;
/// And at most, about: where it waits for pages.
const MUCH_FASTER_IN_A_PAUSE: f64 = 16.0;
/// The least and the most that the guest's clock is taken to show of that.
const FASTER_BY_THE_CLOCK: [f64; 2] = [2.0, 200.0];
/// Parts that are spread over a run of known length, at most.
const SPREAD_PARTS: f64 = 24.0;
/// A shorter part is mostly the translation of its code.
const LEAST_PART: f64 = 0.1;
/// Parts of what a plan reaches of a longer run, where records are the limit: a program of several phases has each of
/// them in some.
pub(super) const REACHING_PARTS: u64 = 24;
/// And where time is: code is translated anew for each part.
const REACHING_PARTS_BY_TIME: u32 = 6;
/// Calls are followed in the pauses of a run's start, in which most programs allocate what they use: one of so many shares
/// of the time that is reached.
const BEGINNING: u32 = 8;
/// Share of a plan's time in which such a run should come to its end.
pub(super) const TO_THE_END: f64 = 0.9;
/// A closer look has so many records more for each store: it records them all, and the loads of what was just stored.
/// `xz` has 3.0 and `sort` 2.6 (measured by hand).
const RECORDS_A_STORE: u64 = 3;
/// A closer look takes so many times as long as a first look at the same commands, at least.
const CLOSER_BY_FIRST: f64 = 1.5;
/// The time grows by this share of the ratio of records: `xz` takes twice as long for five times as many (measured by
/// hand).
const TIME_BY_RECORDS: f64 = 0.45;
/// Parts of a closer look are so many times as long as the time of a whole one has it: 1.4 to 2.5 times (measured by hand).
const PART_BY_WHOLE: f64 = 2.0;
/// Times and records of a look that records every access, by those of a first look: `sort` has 3.8 times the records
/// (measured by hand).
const EVERY_ACCESS_BY_FIRST: f64 = 4.0;

/// End of a run, as a first look shows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Known {
    /// The run came to its end before the plan did.
    Ends(Length),
    /// The run goes on behind the plan: the length is that of what was reached.
    GoesOn(Length),
}

impl Known {
    /// Returns what a recording with so many stores shows of its command's end.
    pub fn of(manifest: &Manifest, stores: u64) -> Self {
        let length = Length::of(manifest, stores);
        let goes_on = manifest.covered.is_some_and(|covered| covered.ended);
        if goes_on { Known::GoesOn(length) } else { Known::Ends(length) }
    }

    /// Returns the end of a closer look that records every access.
    pub fn of_every_access(self) -> Self {
        match self {
            Known::Ends(length) => Known::Ends(length.of_every_access()),
            Known::GoesOn(length) => Known::GoesOn(length.of_every_access()),
        }
    }
}

/// How long a closer look at a whole run takes, or at what was reached of it, as a first look shows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Length {
    pub(super) records: u64,
    /// Records of a closer look, by those of the first.
    by_first: f64,
    /// How many times as long as the first look a closer look takes.
    slower: f64,
    recorded: Duration,
    unseen: Duration,
    /// Share of the run that was recorded.
    share: f64,
    /// How many times as fast the command is in a pause.
    faster: f64,
    /// Nanoseconds of the guest's clock from the begin to the end; 0: unknown.
    guest_ns: u64,
    paused_ns_a_second: u64,
}

impl Length {
    /// Returns the length of a run, from a first look at so many stores.
    pub(super) fn of(manifest: &Manifest, stores: u64) -> Self {
        let all = Coverage {
            parts: 1,
            recorded_ns: manifest.window_ns,
            reached_ns: manifest.window_ns,
            ended: false,
            ..Coverage::default()
        };
        let covered = manifest.covered.unwrap_or(all);
        let unseen_ns = covered.reached_ns.saturating_sub(covered.recorded_ns);
        let times = unseen_ns as f64 / covered.recorded_ns.max(1) as f64;
        let (share, faster) = match covered.share_by_guest() {
            Some(share) => (share, ((1.0 / share - 1.0) / times).clamp(FASTER_BY_THE_CLOCK[0], FASTER_BY_THE_CLOCK[1])),
            None => (1.0 / (1.0 + times * FASTER_IN_A_PAUSE), MUCH_FASTER_IN_A_PAUSE),
        };
        let records = manifest.records + RECORDS_A_STORE * stores;
        let by_first = records as f64 / manifest.records.max(1) as f64;
        let [recorded, unseen] = [covered.recorded_ns, unseen_ns].map(Duration::from_nanos);
        Length {
            records: (records as f64 / share) as u64,
            by_first,
            slower: (by_first * TIME_BY_RECORDS).max(CLOSER_BY_FIRST),
            recorded,
            unseen,
            share,
            faster,
            guest_ns: covered.share_by_guest().map_or(0, |_| covered.reached_guest_ns),
            paused_ns_a_second: covered.paused_ns_a_second,
        }
    }

    pub(super) fn of_every_access(self) -> Self {
        let by_first = self.by_first.max(EVERY_ACCESS_BY_FIRST);
        let records = (self.records as f64 * by_first / self.by_first.max(1.0)) as u64;
        Length { records, by_first, slower: self.slower.max(EVERY_ACCESS_BY_FIRST), ..self }
    }

    /// Time of a closer look at all of it.
    pub(super) fn time(&self) -> Duration {
        self.recorded.mul_f64(self.slower / self.share)
    }

    /// Time in the guest from the first part's begin to the last one's end.
    pub(super) fn reached(&self) -> Duration {
        self.recorded + self.unseen
    }

    /// Whether too little of the run was recorded to speak for the rest.
    pub(super) fn is_little_known(&self) -> bool {
        self.share < Coverage::LITTLE
    }

    /// Returns the plan with equal parts and pauses, so that the run comes to its end within it, and within its records.
    /// The first part ends at once: a program's start is unlike the rest of it, and it would stand for a part of many. A
    /// run that would be hardly recorded then is not followed to its end.
    pub(super) fn spread(self, plan: Parts) -> Parts {
        let followed = followed(plan, self.reached());
        let time = plan.whole.mul_f64(TO_THE_END).as_secs_f64();
        let paused_only = self.recorded.as_secs_f64() / self.faster + self.unseen.as_secs_f64();
        let speed = 1.0 / (self.faster * self.slower);
        let by_time = time - ((paused_only - time * speed) / (1.0 - speed)).clamp(0.0, time);
        let by_records = plan.all_records as f64 * TO_THE_END * self.time().as_secs_f64() / self.records.max(1) as f64;
        if by_time < time / 2.0 {
            return self.reaching(plan);
        }
        let recorded = by_time.min(by_records);
        let paused = (paused_only - recorded * speed).clamp(0.0, time - recorded);
        let parts = (recorded / LEAST_PART).clamp(1.0, SPREAD_PARTS);
        let [part, pause] = [recorded, paused].map(|all| Duration::from_secs_f64(all / parts));
        let records = (plan.all_records as f64 * TO_THE_END / parts).max(1.0) as u64;
        let pauses = Pauses::Growing { first: pause, by: 1.0 };
        let period_ns = (self.guest_ns as f64 / parts) as u64;
        self.by_its_clock(Parts { followed, first: Duration::ZERO, longest: part, records, pauses, period_ns, ..plan })
    }

    /// Returns the plan in equal parts and pauses, each of which stands for as much of the run as any other. The first
    /// part ends at once: a program's start is unlike the rest of it, and a smaller share of a long run than of its
    /// parts.
    pub(super) fn reaching(self, plan: Parts) -> Parts {
        let followed = followed(plan, self.reached());
        let longest = plan.whole / (2 * REACHING_PARTS_BY_TIME);
        let records = (plan.all_records / REACHING_PARTS).max(1);
        let pauses = Pauses::Filling;
        self.by_its_clock(Parts { followed, first: Duration::ZERO, longest, records, pauses, ..plan })
    }

    /// Returns the plan with what a first look shows of the guest's clock in pauses and in parts. Parts that grow until
    /// the time of one is known would stand for less of the run's start than of the rest.
    fn by_its_clock(self, plan: Parts) -> Parts {
        let a_second = PART_BY_WHOLE * self.guest_ns as f64 / self.time().as_secs_f64().max(1e-9);
        let part_ns = Some((a_second * plan.longest.as_secs_f64()) as u64).filter(|ns| *ns != 0);
        Parts { paused_ns_a_second: self.paused_ns_a_second, part_ns, ..plan }
    }

    pub(super) fn fits(self, plan: &Parts) -> bool {
        self.time() <= plan.whole && self.records <= plan.all_records
    }
}

/// Returns the time from the start until which pauses follow calls: a block that is allocated in a later one has a call
/// site only where its calls were seen before.
fn followed(plan: Parts, reached: Duration) -> Duration {
    plan.whole.min(reached) / BEGINNING
}
