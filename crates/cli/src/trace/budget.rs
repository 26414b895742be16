//! Fits recordings to a time: how long a command is recorded, in which parts, and how many records are kept for
//! replays.

use super::length::{Known, REACHING_PARTS};
use nearmiss_record::run::Manifest;
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
/// Share of its time that a farther look records, at most.
const RECORDED_OF_FARTHER: f64 = 1.0 / 3.0;

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
            Known::GoesOn(length) => plan.is_some_and(|plan| length.reached() < plan.whole),
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
            Some(Known::GoesOn(length)) => {
                let parts = length.reaching(plan);
                match purpose {
                    Purpose::CloserLook(Replays::Detection) => farther(parts),
                    _ => parts,
                }
            }
            _ => plan,
        })
    }
}

/// Returns a plan of one part, as long as the plan.
fn whole(plan: Parts) -> Parts {
    Parts { first: plan.whole, first_records: plan.all_records, records: plan.all_records, ..plan }
}

/// Returns the plan with so short parts that most of its time is pauses, in which the run comes far.
fn farther(parts: Parts) -> Parts {
    let longest = parts.longest.min(parts.whole.mul_f64(RECORDED_OF_FARTHER) / REACHING_PARTS as u32);
    let shorter = longest.as_secs_f64() / parts.longest.as_secs_f64().max(1e-9);
    let part_ns = parts.part_ns.map(|part_ns| (part_ns as f64 * shorter) as u64);
    Parts { longest, part_ns, ..parts }
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
        part_ns: None,
        period_ns: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::length::{Length, TO_THE_END};
    use super::*;
    use nearmiss_record::run::Coverage;

    #[test]
    fn a_run_that_fits_without_every_access_may_not_fit_with_it() {
        let length = Length::of(&Manifest { window_ns: 6_000_000_000, ..Manifest::default() }, 0);
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
        let length = |covered| Length::of(&seen(1_000_000, covered), 0);
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
        let many = Length::of(&seen(10_000_000, covered(4200, 6100)), 0).spread(plan);
        assert_eq!((seconds(many.longest), pause(many)), (0.17, 0.08));
        assert!(length(covered(4200, 6100)).is_little_known() && !length(covered(4200, 5200)).is_little_known());
    }

    #[test]
    fn parts_of_a_run_that_goes_on_have_equal_weights() {
        let plan = plan(Duration::from_secs(36), Purpose::CloserLook(Replays::Fields), MOST_CPUS);
        let reached = |seconds: u64| {
            let [recorded_ns, reached_ns] = [1, seconds].map(|seconds| seconds * 1_000_000_000);
            let by_the_clock = Coverage { recorded_guest_ns: 1_000_000, reached_guest_ns: 30_000_000, ..ENDED };
            Length::of(&seen(1_000_000, Some(Coverage { recorded_ns, reached_ns, ..by_the_clock })), 0)
        };
        let parts = reached(4).reaching(plan);
        assert_eq!((parts.followed, parts.whole), (Duration::from_millis(500), plan.whole));
        assert_eq!((parts.first, parts.longest, parts.pauses), (Duration::ZERO, parts.whole / 12, Pauses::Filling));
        assert_eq!(parts.records, plan.all_records / 24);
        // A second of a first look is 1 ms of the guest: 1.12 s of a closer one are less, of which parts have twice.
        assert_eq!(parts.part_ns, Some(1_493_333));
        assert_eq!(farther(parts).longest.as_millis(), 186, "a third of 13.4 s in 24 parts");
        assert_eq!(farther(parts).part_ns, Some(248_888));
        assert_eq!(reached(90).reaching(plan).followed, plan.whole / 8);
    }

    const ENDED: Coverage = Coverage {
        parts: 8,
        recorded_ns: 1,
        reached_ns: 1,
        ended: true,
        ahead_ns: 0,
        paused_ns_a_second: 0,
        recorded_guest_ns: 0,
        reached_guest_ns: 0,
        recorded_cleared_pages: 0,
        reached_cleared_pages: 0,
    };

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
        let until = |reached_s: u64| seen(1_000_000, Some(Coverage { reached_ns: reached_s * 1_000_000_000, ..ENDED }));
        assert!(room(&until(15)) && !room(&until(28)), "another look takes 27.6 s");
    }

    #[test]
    fn what_fits_without_the_stores_may_not_fit_with_them() {
        let length = |stores| Length::of(&seen(1_000_000, None), stores);
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
