//! Fits recordings to a time: how long a command is recorded, in which parts, and how many records are kept for
//! replays.

use nearmiss_record::run::{Coverage, Manifest};
use nearmiss_tap::parts::{Parts, Pauses};
use std::time::{Duration, Instant};

/// A recording that is modelled as it goes leaves little behind it: share of the time left that the guest may take.
const OF_A_TRACE: f64 = 0.75;
/// A first look leaves time for a second recording and for replays.
const OF_A_FIRST_LOOK: f64 = 0.27;
/// A closer look leaves time for replays.
const OF_A_CLOSER_LOOK: f64 = 0.42;
/// A look for what comes later in a run leaves less time for replays, since nothing was suspected yet.
const OF_A_FARTHER_LOOK: f64 = 0.6;
/// Share of its time that a recording's first pause takes; each one behind it is longer.
const OF_A_FIRST_PAUSE: f64 = 1.0 / 30.0;
/// Share of its time that a first look's first pause takes. A program often makes its data before it does what it is for,
/// and a pause passes that ten times as fast as a part.
const OF_A_FIRST_LOOKS_FIRST_PAUSE: f64 = 1.0 / 12.0;
/// Records that are replayed in a second on a CPU, all remedies' and placements together, where fields are moved: as
/// measured by hand on programs of some seconds, and half of that beside other work.
const REPLAYED_WITH_FIELDS: f64 = 170_000.0;
/// Records that are replayed in a second on a CPU where blocks and stores are moved: false sharing, which is replayed in
/// both orders, has 260,000 to 1 million (measured by hand).
const REPLAYED: f64 = 255_000.0;
/// Records that are replayed in a second on a CPU where nothing was suspected yet: rehearsals are unlikely, and detection
/// alone has 2 million (measured by hand).
const DETECTED: f64 = 570_000.0;
/// CPUs that replays make use of, however many there are.
const MOST_CPUS: f64 = 2.0;
/// Booting the guest and starting the command ahead.
const BOOT: Duration = Duration::from_secs(4);
/// Least time of a second closer look, or nothing would be seen.
const LEAST: Duration = Duration::from_secs(2);
/// Parts that a recording has when its records are the limit.
const PARTS_BY_RECORDS: u64 = 8;
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
const REACHING_PARTS: u64 = 24;
/// And where time is: code is translated anew for each part.
const REACHING_PARTS_BY_TIME: u32 = 6;
/// Share of its time that a farther look records, at most.
const RECORDED_OF_FARTHER: f64 = 1.0 / 3.0;
/// Calls are followed in the pauses of a run's start, in which most programs allocate what they use: one of so many shares
/// of the time that is reached.
const BEGINNING: u32 = 8;
/// Share of a plan's time in which such a run should come to its end.
const TO_THE_END: f64 = 0.9;
/// A closer look has so many records more for each store: it records them all, and the loads of what was just stored.
/// `xz` has 3.0 and `sort` 2.6 (measured by hand).
const RECORDS_A_STORE: u64 = 3;
/// A closer look takes so many times as long as a first look at the same commands, at least.
const CLOSER_BY_FIRST: f64 = 1.5;
/// The time grows by this share of the ratio of records: `xz` takes twice as long for five times as many (measured by
/// hand).
const TIME_BY_RECORDS: f64 = 0.45;
/// Times and records of a look that records every access, by those of a first look: `sort` has 3.8 times the records
/// (measured by hand).
const EVERY_ACCESS_BY_FIRST: f64 = 4.0;

/// Purpose of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The report of `trace`.
    Report,
    /// Suspicions.
    FirstLook,
    /// Replays.
    CloserLook(Replays),
}

/// Purpose for which a closer look is likely to be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replays {
    /// A first look suspected nothing: it is recorded again for more of the run.
    Detection,
    /// Blocks, mappings and stores in other places.
    Blocks,
    /// Fields of structures in other places, each of several ways.
    Fields,
}

impl Replays {
    /// Records that are replayed in a second on a CPU.
    fn a_second(self) -> f64 {
        match self {
            Replays::Detection => DETECTED,
            Replays::Blocks => REPLAYED,
            Replays::Fields => REPLAYED_WITH_FIELDS,
        }
    }
}

/// The time in which an answer is wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    end: Option<Instant>,
    /// CPUs that are left to replays beside what runs on this machine, such as a process that was copied.
    idle_cpus: f64,
    /// From the launch of a guest to the window's opening.
    start: Duration,
}

impl Budget {
    /// Starts the budget now; a time of zero is no limit.
    pub fn of(within: Duration) -> Self {
        let end = (!within.is_zero()).then(|| Instant::now() + within);
        Budget { end, idle_cpus: end.map_or(MOST_CPUS, |_| idle_cpus()), start: BOOT }
    }

    /// Returns the budget for another recording of the same command, which starts as late as this one did.
    pub fn after(self, manifest: &Manifest) -> Self {
        let warm_ns = manifest.warm.as_ref().map_or(0, |warm| warm.time_ns);
        let start = Duration::from_nanos(manifest.boot_ns + warm_ns + manifest.ahead_ns);
        Budget { start: start.max(BOOT), ..self }
    }

    /// Whether a run that was recorded in parts can be recorded whole now, or was seen so little that other parts help.
    pub fn has_room_for_more(&self, known: Known) -> bool {
        let plan = self.plan(Purpose::CloserLook(Replays::Detection), None);
        match known {
            Known::Ends(length) => length.is_little_known() || plan.is_none_or(|plan| length.fits(&plan)),
            Known::GoesOn { reached, .. } => plan.is_some_and(|plan| reached < plan.whole),
        }
    }

    /// Returns how to record now; `None`: to the command's end. A run that a first look knows is recorded whole where
    /// that fits, else in equal parts that are spread over all that the plan reaches of it.
    pub fn plan(&self, purpose: Purpose, known: Option<Known>) -> Option<Parts> {
        let left = self.end?.saturating_duration_since(Instant::now());
        let plan = plan(left.saturating_sub(self.start - BOOT), purpose, self.idle_cpus);
        Some(match known {
            Some(Known::Ends(length)) if length.fits(&plan) => whole(plan),
            Some(Known::Ends(length)) => length.spread(plan),
            Some(Known::GoesOn { reached, paused_ns_a_second }) => {
                let parts = reaching(Parts { paused_ns_a_second, ..plan }, reached);
                match purpose {
                    Purpose::CloserLook(Replays::Detection) => farther(parts),
                    _ => parts,
                }
            }
            _ => plan,
        })
    }
}

/// End of a run, as a first look shows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Known {
    /// The run came to its end before the plan did.
    Ends(Length),
    /// The run goes on behind the plan.
    GoesOn {
        /// Time in the guest from the first part's begin to the last one's end.
        reached: Duration,
        /// Nanoseconds of the guest's clock in a second of a pause; 0: unknown.
        paused_ns_a_second: u64,
    },
}

impl Known {
    /// Returns what a recording with so many stores shows of its command's end.
    pub fn of(manifest: &Manifest, stores: u64) -> Self {
        let covered = manifest.covered.unwrap_or_default();
        let Coverage { reached_ns, paused_ns_a_second, .. } = covered;
        let goes_on = Known::GoesOn { reached: Duration::from_nanos(reached_ns), paused_ns_a_second };
        Length::of(manifest, stores).map_or(goes_on, Known::Ends)
    }

    /// Returns the end of a closer look that records every access.
    pub fn of_every_access(self) -> Self {
        match self {
            Known::Ends(length) => Known::Ends(length.of_every_access()),
            goes_on => goes_on,
        }
    }
}

/// How long a closer look at a whole run takes, as a first look shows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Length {
    records: u64,
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
    /// Returns the length of a run that came to its end before the plan did, from a first look at so many stores.
    fn of(manifest: &Manifest, stores: u64) -> Option<Self> {
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
        (!covered.ended).then(|| Length {
            records: (records as f64 / share) as u64,
            by_first,
            slower: (by_first * TIME_BY_RECORDS).max(CLOSER_BY_FIRST),
            recorded,
            unseen,
            share,
            faster,
            guest_ns: covered.share_by_guest().map_or(0, |_| covered.reached_guest_ns),
            paused_ns_a_second: covered.paused_ns_a_second,
        })
    }

    fn of_every_access(self) -> Self {
        let by_first = self.by_first.max(EVERY_ACCESS_BY_FIRST);
        let records = (self.records as f64 * by_first / self.by_first.max(1.0)) as u64;
        Length { records, by_first, slower: self.slower.max(EVERY_ACCESS_BY_FIRST), ..self }
    }

    /// Time of a closer look at all of it.
    fn time(&self) -> Duration {
        self.recorded.mul_f64(self.slower / self.share)
    }

    /// Whether too little of the run was recorded to speak for the rest.
    fn is_little_known(&self) -> bool {
        self.share < Coverage::LITTLE
    }

    /// Returns the plan with equal parts and pauses, so that the run comes to its end within it, and within its records.
    /// The first part ends at once: a program's start is unlike the rest of it, and it would stand for a part of many. A
    /// run that would be hardly recorded then is not followed to its end.
    fn spread(self, plan: Parts) -> Parts {
        let plan = Parts { paused_ns_a_second: self.paused_ns_a_second, ..plan };
        let followed = followed(plan, self.recorded + self.unseen);
        let time = plan.whole.mul_f64(TO_THE_END).as_secs_f64();
        let paused_only = self.recorded.as_secs_f64() / self.faster + self.unseen.as_secs_f64();
        let speed = 1.0 / (self.faster * self.slower);
        let by_time = time - ((paused_only - time * speed) / (1.0 - speed)).clamp(0.0, time);
        let by_records = plan.all_records as f64 * TO_THE_END * self.time().as_secs_f64() / self.records.max(1) as f64;
        if by_time < time / 2.0 {
            return reaching(plan, self.recorded + self.unseen);
        }
        let recorded = by_time.min(by_records);
        let paused = (paused_only - recorded * speed).clamp(0.0, time - recorded);
        let parts = (recorded / LEAST_PART).clamp(1.0, SPREAD_PARTS);
        let [part, pause] = [recorded, paused].map(|all| Duration::from_secs_f64(all / parts));
        let records = (plan.all_records as f64 * TO_THE_END / parts).max(1.0) as u64;
        let pauses = Pauses::Growing { first: pause, by: 1.0 };
        let period_ns = (self.guest_ns as f64 / parts) as u64;
        Parts { followed, first: Duration::ZERO, longest: part, records, pauses, period_ns, ..plan }
    }

    fn fits(self, plan: &Parts) -> bool {
        self.time() <= plan.whole && self.records <= plan.all_records
    }
}

/// Returns a plan of one part, as long as the plan.
fn whole(plan: Parts) -> Parts {
    Parts { first: plan.whole, first_records: plan.all_records, records: plan.all_records, ..plan }
}

/// Returns the plan in equal parts and pauses, each of which stands for as much of the run as any other. The first part ends
/// at once: a program's start is unlike the rest of it, and a smaller share of a long run than of its parts.
fn reaching(plan: Parts, reached: Duration) -> Parts {
    let followed = followed(plan, reached);
    let part = plan.whole / (2 * REACHING_PARTS_BY_TIME);
    let records = (plan.all_records / REACHING_PARTS).max(1);
    let pauses = Pauses::Filling;
    Parts { followed, first: Duration::ZERO, longest: part, records, pauses, ..plan }
}

/// Returns the plan with so short parts that most of its time is pauses, in which the run comes far.
fn farther(parts: Parts) -> Parts {
    let longest = parts.whole.mul_f64(RECORDED_OF_FARTHER) / REACHING_PARTS as u32;
    Parts { longest: longest.min(parts.longest), ..parts }
}

/// Returns the time from the start until which pauses follow calls: a block that is allocated in a later one has a call
/// site only where its calls were seen before.
fn followed(plan: Parts, reached: Duration) -> Duration {
    plan.whole.min(reached) / BEGINNING
}

/// Returns the CPUs that others do not use: at least one, since this process has its share among them.
fn idle_cpus() -> f64 {
    let cpus = std::thread::available_parallelism().map_or(1.0, |cpus| cpus.get() as f64);
    (cpus - nearmiss_host::taken_cpus()).clamp(1.0, MOST_CPUS)
}

/// How to record, with so much time left for all.
fn plan(left: Duration, purpose: Purpose, idle_cpus: f64) -> Parts {
    let share = match purpose {
        Purpose::Report => OF_A_TRACE,
        Purpose::FirstLook => OF_A_FIRST_LOOK,
        Purpose::CloserLook(Replays::Detection) => OF_A_FARTHER_LOOK,
        Purpose::CloserLook(_) => OF_A_CLOSER_LOOK,
    };
    let whole = left.saturating_sub(BOOT).mul_f64(share).max(LEAST);
    // Suspicions of a first look may be rehearsed on its own trace.
    let replays = match purpose {
        Purpose::CloserLook(replays) => replays,
        Purpose::Report | Purpose::FirstLook => Replays::Fields,
    };
    let of_first_pause = match purpose {
        Purpose::FirstLook => OF_A_FIRST_LOOKS_FIRST_PAUSE,
        Purpose::Report | Purpose::CloserLook(_) => OF_A_FIRST_PAUSE,
    };
    let behind = left.saturating_sub(whole);
    // The guest boots first, but where so little time is left that there would be nothing to replay.
    let replayed = behind.saturating_sub(BOOT).max(behind / 2);
    let all_records = match purpose {
        Purpose::Report => u64::MAX,
        _ => (replayed.as_secs_f64() * idle_cpus * replays.a_second()) as u64,
    };
    Parts {
        followed: Duration::ZERO,
        first: whole / 4,
        first_records: (all_records / 2).max(1),
        longest: whole / 20,
        records: (all_records / PARTS_BY_RECORDS).max(1),
        pauses: Pauses::Growing { first: whole.mul_f64(of_first_pause), by: 1.35 },
        whole,
        all_records: all_records.max(1),
        paused_ns_a_second: 0,
        period_ns: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_fits_without_every_access_may_not_fit_with_it() {
        let length = Length::of(&Manifest { window_ns: 6_000_000_000, ..Manifest::default() }, 0).unwrap();
        let plan = plan(Duration::from_secs(36), Purpose::CloserLook(Replays::Fields), MOST_CPUS);
        assert!(length.fits(&plan) && !length.of_every_access().fits(&plan));
    }

    #[test]
    fn a_server_that_starts_late_is_recorded_for_less_time_again() {
        let first = Budget { idle_cpus: MOST_CPUS, ..Budget::of(Duration::from_secs(50)) };
        let after = |ahead_ns| first.after(&Manifest { boot_ns: 1_000_000_000, ahead_ns, ..Manifest::default() });
        let whole =
            |budget: Budget| budget.plan(Purpose::CloserLook(Replays::Fields), None).unwrap().whole.as_secs_f64();
        assert!((whole(first) - whole(after(0))).abs() < 0.1, "the usual start");
        assert!((whole(first) - whole(after(9_000_000_000)) - 6.0 * OF_A_CLOSER_LOOK).abs() < 0.1);
    }

    #[test]
    fn no_time_is_no_limit() {
        assert_eq!(Budget::of(Duration::ZERO).plan(Purpose::FirstLook, None), None);
        assert!(Budget::of(Duration::from_secs(60)).plan(Purpose::FirstLook, None).is_some());
    }

    #[test]
    fn a_minute_is_two_recordings_and_replays() {
        let first = plan(Duration::from_secs(60), Purpose::FirstLook, MOST_CPUS);
        assert_eq!(first.whole, Duration::from_millis(15_120));
        assert_eq!(first.all_records, 13_899_200);
        assert_eq!(plan(Duration::from_secs(60), Purpose::Report, MOST_CPUS).all_records, u64::MAX);
        let closer = plan(Duration::from_secs(36), Purpose::CloserLook(Replays::Fields), MOST_CPUS);
        assert_eq!(closer.whole, Duration::from_millis(13_440));
        assert_eq!(closer.all_records, 6_310_400);
        // Half of it beside a process that computes on.
        assert_eq!(plan(Duration::from_secs(36), Purpose::CloserLook(Replays::Fields), 1.0).all_records, 3_155_200);
    }

    #[test]
    fn a_run_that_does_not_fit_has_equal_parts_to_its_end() {
        let covered = |recorded_ms: u64, reached_ms: u64| {
            let [recorded_ns, reached_ns] = [recorded_ms, reached_ms].map(|ms| ms * 1_000_000);
            Some(Coverage { parts: 1, recorded_ns, reached_ns, ended: false, ..Coverage::default() })
        };
        let length = |covered| Length::of(&seen(1_000_000, covered), 0).unwrap();
        let plan = plan(Duration::from_secs(40), Purpose::CloserLook(Replays::Fields), MOST_CPUS);
        let spread = length(covered(4200, 6100)).spread(plan);
        let seconds = |time: Duration| (time.as_secs_f64() * 100.0).round() / 100.0;
        let pause = |parts: Parts| match parts.pauses {
            Pauses::Growing { first, by: 1.0 } => seconds(first),
            other => panic!("{other:?}"),
        };
        // 13.6 s for 1.9 s of pauses and 4.2 s of recording: 1.6 s in pauses, the rest is recorded.
        assert_eq!((seconds(plan.whole), seconds(spread.longest), pause(spread)), (15.12, 0.5, 0.07));
        assert_eq!((seconds(spread.followed), spread.whole), (0.76, plan.whole));
        assert_eq!(
            (spread.first, spread.records),
            (Duration::ZERO, (plan.all_records as f64 * TO_THE_END / 24.0) as u64)
        );
        // 10 M records in 4.2 s, and room for less: less is recorded.
        let many = Length::of(&seen(10_000_000, covered(4200, 6100)), 0).unwrap().spread(plan);
        assert_eq!((seconds(many.longest), pause(many)), (0.17, 0.08));
        assert!(length(covered(4200, 6100)).is_little_known() && !length(covered(4200, 5200)).is_little_known());
    }

    #[test]
    fn parts_of_a_run_that_goes_on_have_equal_weights() {
        let plan = plan(Duration::from_secs(36), Purpose::CloserLook(Replays::Fields), MOST_CPUS);
        let parts = reaching(plan, Duration::from_secs(4));
        assert_eq!((parts.followed, parts.whole), (Duration::from_millis(500), plan.whole));
        assert_eq!((parts.first, parts.longest, parts.pauses), (Duration::ZERO, parts.whole / 12, Pauses::Filling));
        assert_eq!(parts.records, plan.all_records / 24);
        assert_eq!(farther(parts).longest.as_millis(), 186, "a third of 13.4 s in 24 parts");
        assert_eq!(reaching(plan, Duration::from_secs(90)).followed, plan.whole / 8);
    }

    fn seen(records: u64, covered: Option<Coverage>) -> Manifest {
        Manifest { window_ns: 5_000_000_000, records, covered, ..Manifest::default() }
    }

    #[test]
    fn a_run_that_fits_is_looked_at_whole() {
        let budget = Budget { idle_cpus: MOST_CPUS, ..Budget::of(Duration::from_secs(50)) };
        let first = |manifest: &Manifest| {
            budget.plan(Purpose::CloserLook(Replays::Fields), Some(Known::of(manifest, 0))).unwrap().first
        };
        let parts = |recorded_s: u64, ended| {
            let [recorded_ns, reached_ns] = [recorded_s, 5].map(|s| s * 1_000_000_000);
            Some(Coverage { parts: 3, recorded_ns, reached_ns, ended, ..Coverage::default() })
        };
        let [whole, quarter] = [18, 5].map(Duration::from_secs);
        assert!(first(&seen(1_000_000, None)) > whole);
        assert!(first(&seen(1_000_000, parts(4, false))) > whole, "12 s");
        assert!(first(&seen(1_000_000, parts(1, false))) < quarter, "25.5 s: spread");
        assert!(first(&seen(1_000_000, parts(4, true))) < quarter, "its end is not near");
        assert!(first(&seen(40_000_000, None)) < whole, "too much to replay");
        let by_the_clock = |recorded_guest_ns| Coverage {
            recorded_guest_ns,
            reached_guest_ns: 100,
            ..parts(4, false).unwrap_or_default()
        };
        assert!(first(&seen(1_000_000, Some(by_the_clock(60)))) > whole, "10 s");
        assert!(first(&seen(1_000_000, Some(by_the_clock(10)))) < quarter, "60 s: spread");
        let room = |manifest: &Manifest| budget.has_room_for_more(Known::of(manifest, 0));
        assert!(room(&seen(1_000_000, parts(4, false))) && !room(&seen(40_000_000, None)));
        let until = |reached_s: u64| {
            let covered = Coverage {
                parts: 8,
                recorded_ns: 1,
                reached_ns: reached_s * 1_000_000_000,
                ended: true,
                ..Coverage::default()
            };
            seen(1_000_000, Some(covered))
        };
        assert!(room(&until(15)) && !room(&until(28)), "another look takes 27.6 s");
    }

    #[test]
    fn what_fits_without_the_stores_may_not_fit_with_them() {
        let length = |stores| Length::of(&seen(1_000_000, None), stores).unwrap();
        assert_eq!((length(3_000_000).records, length(3_000_000).time()), (10_000_000, Duration::from_millis(22_500)));
        let plan = |stores| {
            let budget = Budget { idle_cpus: MOST_CPUS, ..Budget::of(Duration::from_secs(50)) };
            budget.plan(Purpose::CloserLook(Replays::Blocks), Some(Known::Ends(length(stores)))).unwrap()
        };
        let whole = plan(0);
        assert_eq!(whole.first, whole.whole);
        // In equal parts, though the first look saw all of it.
        assert_eq!((plan(3_000_000).first, plan(3_000_000).followed), (Duration::ZERO, Duration::from_millis(625)));
    }

    #[test]
    fn a_late_recording_still_has_a_part() {
        let late = plan(Duration::ZERO, Purpose::CloserLook(Replays::Fields), MOST_CPUS);
        assert_eq!((late.whole, late.records, late.all_records), (LEAST, 1, 1));
    }
}
