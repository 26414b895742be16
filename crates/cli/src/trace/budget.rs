//! What fits a time: how long a command is recorded, in which parts, and how many records are kept for replays.

use nearmiss_tap::parts::Parts;
use std::time::{Duration, Instant};

/// A recording that is modelled as it goes leaves little behind it: share of the time left that the guest may take.
const OF_A_TRACE: f64 = 0.75;
/// A first look leaves time for a second recording and for replays.
const OF_A_FIRST_LOOK: f64 = 0.3;
/// A closer look leaves time for replays.
const OF_A_CLOSER_LOOK: f64 = 0.4;
/// Records whose replays take a second, all remedies' and placements together, on two CPUs: `experiments/answer/zen5.txt`
/// has 100 million in 133 s on the machine that takes longest.
const REPLAYED_A_SECOND: f64 = 750_000.0;
/// Booting the guest and starting the command ahead.
const BOOT: Duration = Duration::from_secs(4);
/// What a second closer look must have at least, or nothing would be seen.
const LEAST: Duration = Duration::from_secs(2);
/// Parts that a recording has when its records are the limit.
const PARTS_BY_RECORDS: u64 = 8;

/// What is recorded for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The report of `trace`.
    Report,
    /// Suspicions.
    FirstLook,
    /// Replays.
    CloserLook,
}

/// The time in which an answer is wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    end: Option<Instant>,
}

impl Budget {
    /// From now on; a time of zero is no limit.
    pub fn of(within: Duration) -> Self {
        Budget { end: (!within.is_zero()).then(|| Instant::now() + within) }
    }

    /// How to record now; `None`: to the command's end.
    pub fn plan(&self, purpose: Purpose) -> Option<Parts> {
        self.end.map(|end| plan(end.saturating_duration_since(Instant::now()), purpose))
    }
}

/// How to record, with so much time left for all.
fn plan(left: Duration, purpose: Purpose) -> Parts {
    let share = match purpose {
        Purpose::Report => OF_A_TRACE,
        Purpose::FirstLook => OF_A_FIRST_LOOK,
        Purpose::CloserLook => OF_A_CLOSER_LOOK,
    };
    let whole = left.saturating_sub(BOOT).mul_f64(share).max(LEAST);
    // What a first look shows may be rehearsed on its own trace.
    let all_records = match purpose {
        Purpose::Report => u64::MAX,
        _ => ((left - whole.min(left)).as_secs_f64() * REPLAYED_A_SECOND) as u64,
    };
    Parts {
        longest: whole / 12,
        records: (all_records / PARTS_BY_RECORDS).max(1),
        pause: whole / 40,
        growth: 1.35,
        whole,
        all_records: all_records.max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_is_no_limit() {
        assert_eq!(Budget::of(Duration::ZERO).plan(Purpose::FirstLook), None);
        assert!(Budget::of(Duration::from_secs(60)).plan(Purpose::FirstLook).is_some());
    }

    #[test]
    fn a_minute_is_two_recordings_and_replays() {
        let first = plan(Duration::from_secs(60), Purpose::FirstLook);
        assert_eq!(first.whole, Duration::from_millis(16_800));
        assert_eq!(first.all_records, 32_400_000);
        assert_eq!(plan(Duration::from_secs(60), Purpose::Report).all_records, u64::MAX);
        let closer = plan(Duration::from_secs(36), Purpose::CloserLook);
        assert_eq!(closer.whole, Duration::from_millis(12_800));
        assert_eq!(closer.all_records, 17_400_000);
    }

    #[test]
    fn what_is_late_still_sees_something() {
        let late = plan(Duration::ZERO, Purpose::CloserLook);
        assert_eq!((late.whole, late.records, late.all_records), (LEAST, 1, 1));
    }
}
