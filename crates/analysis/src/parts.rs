//! Recorded parts of a longer run: how far a gain of theirs holds for all of it.

use nearmiss_record::finding::{LEAST_GAIN, SavingRange};
use nearmiss_record::model::{RecordedPart, ShareRange, StallRanges, StallSources};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Cost of one recorded part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartCost {
    /// Instructions of the command.
    pub instructions: u64,
    /// Stall cycles of the command.
    pub stall_cycles: u64,
    /// Stall cycles for lines of memory that no earlier part showed: behind a pause nobody knows whether a cache had them.
    pub doubtful_cycles: u64,
}

/// Ratios of the modelled waits for such lines to the estimated ones that ranges leave room for. Nine of ten programs lie
/// within (`experiments/answer/parts.txt`, modelled).
const DOUBT: [f64; 3] = [0.5, 1.0, 2.0];
/// Halvings of an interval that a root is looked for in.
const HALVINGS: usize = 50;

impl PartCost {
    /// Stall cycles if the doubtful ones were so many times as many.
    fn stall_cycles_at(&self, times: f64) -> f64 {
        self.stall_cycles as f64 + (times - 1.0) * self.doubtful_cycles as f64
    }
}

/// Cycles of one recorded part, and how many of them are saved.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PartSaving {
    /// Cycles as it was.
    pub cycles: f64,
    /// Cycles saved.
    pub saved: f64,
}

/// Ends of the share of a whole run's cycles that is saved, with 95% confidence: the parts are taken as a sample of the
/// run (ratio estimate, Cochran, Sampling Techniques, 6.4, with Student's t). Returns `None` for fewer than two parts.
///
/// A few parts that save much show that others like them may have been missed. Such an end lies as far off as the
/// empirical likelihood has it (Owen, Empirical Likelihood, 2.4), which goes no farther than the part that saves most.
pub fn of_whole_run(parts: &[PartSaving]) -> Option<SavingRange> {
    let count = parts.len();
    if count < 2 {
        return None;
    }
    let whole: f64 = parts.iter().map(|part| part.cycles).sum();
    let saved: f64 = parts.iter().map(|part| part.saved).sum();
    let gain = saved / whole.max(1.0);
    let squares: f64 = beyond(parts, gain).map(|beyond| beyond.powi(2)).sum();
    let error = (squares * count as f64 / (count - 1) as f64).sqrt() / whole.max(1.0);
    let t = student_t(count - 1);
    let gain_of = |part: &PartSaving| part.saved / part.cycles.max(1.0);
    let farther = |farthest: f64| farthest_likely(parts, gain, farthest, t);
    let worst = parts.iter().map(gain_of).fold(gain, f64::min);
    let best = parts.iter().map(gain_of).fold(gain, f64::max);
    let most = parts.iter().map(|part| part.saved).fold(0.0, f64::max);
    // A change that costs no recorded part anything, or little, costs the run no more.
    let low = (gain - error * t).min(farther(worst)).max(worst.min(0.0));
    Some(SavingRange {
        // A phase may lie between two parts, as short as that.
        low: if low > 0.0 { low * (1.0 - 1.0 / count as f64) } else { low },
        high: (gain + error * t).max(farther(best)),
        by_one_part: most / saved.max(1.0),
        gaining_parts: parts.iter().filter(|part| gain_of(part) >= LEAST_GAIN).count(),
    })
}

/// What each part saves beyond this share of its cycles.
fn beyond(parts: &[PartSaving], share: f64) -> impl Iterator<Item = f64> {
    parts.iter().map(move |part| part.saved - share * part.cycles)
}

/// Returns the share between the parts' own and the farthest one whose empirical likelihood is as small as that of a mean
/// of a normal sample `t` errors off.
fn farthest_likely(parts: &[PartSaving], own: f64, farthest: f64, t: f64) -> f64 {
    let (mut likely, mut unlikely) = (own, farthest);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(likely, unlikely);
        let beyond: Vec<f64> = beyond(parts, middle).collect();
        let is_likely = unlikeliness(&beyond) <= t * t;
        *(if is_likely { &mut likely } else { &mut unlikely }) = middle;
    }
    likely
}

/// Returns minus twice the logarithm of the empirical likelihood ratio of a mean of zero.
///
/// The weights are 1 / (1 + multiplier * value), and the multiplier is the one at which the weighted values sum to zero.
/// All weights are positive between the bounds, and the sum falls from one to the other.
fn unlikeliness(values: &[f64]) -> f64 {
    let (least, most) =
        values.iter().fold((0.0, 0.0), |(least, most): (f64, f64), value| (least.min(*value), most.max(*value)));
    if least >= 0.0 || most <= 0.0 {
        return if least < most { f64::INFINITY } else { 0.0 };
    }
    let (mut from, mut to) = (-1.0 / most, -1.0 / least);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(from, to);
        let sum: f64 = values.iter().map(|value| value / (1.0 + middle * value)).sum();
        *(if sum > 0.0 { &mut from } else { &mut to }) = middle;
    }
    2.0 * values.iter().map(|value| (from * value).ln_1p()).sum::<f64>()
}

/// Ends for parts with these costs before and after. `computing_cycles` are the cycles of all parts that no stall is in;
/// `beside` are further ones by part, if any.
pub(crate) fn interval(
    before: &[PartCost],
    after: &[PartCost],
    computing_cycles: u64,
    beside: &[PartSaving],
) -> Option<SavingRange> {
    if after.len() != before.len() {
        return None;
    }
    let instructions: u64 = before.iter().map(|part| part.instructions).sum();
    let computing = computing_cycles as f64 / instructions.max(1) as f64;
    let range = |times: f64| {
        let beside = beside.iter().copied().chain(std::iter::repeat(PartSaving::default()));
        let part = |((before, after), beside): ((&PartCost, &PartCost), PartSaving)| PartSaving {
            cycles: before.instructions as f64 * computing + before.stall_cycles_at(times) + beside.cycles,
            saved: before.stall_cycles_at(times) - after.stall_cycles_at(times) + beside.saved,
        };
        of_whole_run(&before.iter().zip(after).zip(beside).map(part).collect::<Vec<_>>())
    };
    let [fewer, as_estimated, more] = DOUBT.map(range);
    let (fewer, as_estimated, more) = (fewer?, as_estimated?, more?);
    Some(SavingRange {
        low: as_estimated.low.min(fewer.low).min(more.low),
        high: as_estimated.high.max(fewer.high).max(more.high),
        ..as_estimated
    })
}

/// Ranges of what a run waits for. `computing_cycles` are the cycles of all parts that no stall is in.
pub(crate) fn ranges(parts: &[RecordedPart], computing_cycles: u64) -> Option<StallRanges> {
    // What the first part touches first, nobody had.
    let doubtful = |number: usize, stalls: &StallSources| if number == 0 { 0 } else { stalls.first_touch };
    let cost = |(number, part): (usize, &RecordedPart)| PartCost {
        instructions: part.instructions,
        stall_cycles: part.stalls.total(),
        doubtful_cycles: doubtful(number, &part.stalls),
    };
    let before: Vec<PartCost> = parts.iter().enumerate().map(cost).collect();
    let share = |source: &dyn Fn(&StallSources) -> u64| {
        let without = before.iter().zip(parts).map(|(cost, part)| {
            let doubtful = StallSources { first_touch: cost.doubtful_cycles, ..StallSources::default() };
            PartCost {
                stall_cycles: cost.stall_cycles - source(&part.stalls),
                doubtful_cycles: cost.doubtful_cycles - source(&doubtful),
                ..*cost
            }
        });
        let range = interval(&before, &without.collect::<Vec<_>>(), computing_cycles, &[])?;
        Some(ShareRange { low: range.low.max(0.0), high: range.high.min(1.0) })
    };
    let level = |level: usize| share(&|stalls| stalls.levels.get(level).copied().unwrap_or(0));
    Some(StallRanges {
        all: share(&StallSources::total)?,
        levels: (0..parts.first()?.stalls.levels.len()).map(level).collect::<Option<_>>()?,
        coherence: share(&|stalls| stalls.coherence)?,
        first_touch: share(&|stalls| stalls.first_touch)?,
        memory_local: share(&|stalls| stalls.memory_local)?,
        memory_remote: share(&|stalls| stalls.memory_remote)?,
        mispredicted: share(&|stalls| stalls.mispredicted)?,
        other: share(&|stalls| stalls.other)?,
    })
}

/// Two-sided 95% quantile of Student's t.
fn student_t(degrees: usize) -> f64 {
    StudentsT::new(0.0, 1.0, degrees as f64).map_or(f64::INFINITY, |t| t.inverse_cdf(0.975))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn part(instructions: u64, stall_cycles: u64) -> PartCost {
        PartCost { instructions, stall_cycles, doubtful_cycles: 0 }
    }

    #[test]
    fn parts_that_gain_alike_leave_room_for_what_lies_between_two() {
        let (before, after) = ([part(100, 100), part(50, 50)], [part(100, 60), part(50, 30)]);
        let SavingRange { low, high, .. } = interval(&before, &after, 150, &[]).unwrap();
        assert!((low - 0.1).abs() < 1e-12 && (high - 0.2).abs() < 1e-12, "{low} {high}");
    }

    #[test]
    fn one_part_that_gains_alone_proves_nothing() {
        let before = [part(100, 100); 7];
        let after = [part(100, 30), before[0], before[0], before[0], before[0], before[0], before[0]];
        let SavingRange { low, high, by_one_part, gaining_parts } = interval(&before, &after, 700, &[]).unwrap();
        assert_eq!((by_one_part, gaining_parts), (1.0, 1));
        // Savings of 70 in one part of seven of 200 cycles each: 5% ± t(6) 0.05, and no part that loses.
        assert_eq!(low, 0.0);
        // Others like that one may have been missed: a share p of the run gains 35%, if 7p (7/6 (1-p))^6 is exp(-t²/2).
        assert!((high - 0.206155).abs() < 1e-6, "{high}");
    }

    #[test]
    fn few_parts_that_gain_much_leave_room_for_more_of_them() {
        let with = |saving: [f64; 12]| of_whole_run(&saving.map(|saved| PartSaving { cycles: 100.0, saved })).unwrap();
        let mut savings = [10.0; 12];
        (savings[3], savings[7]) = (60.0, 70.0);
        let few = with(savings);
        // 19.2% ± t(11) 6.2%.
        assert!((few.low - (0.19167 - 2.201 * 0.06211) * 11.0 / 12.0).abs() < 1e-4, "{few:?}");
        assert!((few.high - 0.360726).abs() < 1e-6, "{few:?}");
        let many = with(savings.map(|saved| 80.0 - saved));
        assert!((many.low - (0.8 - 0.360726) * 11.0 / 12.0).abs() < 1e-6, "{many:?}");
        assert!((many.high - (0.60833 + 2.201 * 0.06211)).abs() < 1e-4, "{many:?}");
    }

    #[test]
    fn savings_beside_the_stalls_count_in_their_own_parts() {
        let parts = [part(100, 0); 4];
        let beside = |saved: f64| PartSaving { cycles: 100.0, saved };
        let alike = interval(&parts, &parts, 400, &[beside(40.0); 4]).unwrap();
        assert!((alike.low - 0.15).abs() < 1e-12 && (alike.high - 0.2).abs() < 1e-12, "{alike:?}");
        let unlike = interval(&parts, &parts, 400, &[80.0, 0.0, 80.0, 0.0].map(beside)).unwrap();
        assert_eq!((unlike.low, unlike.gaining_parts), (0.0, 2));
        // Savings of 40 ± 40 in parts of 200 cycles: 20% ± t(3) 11.5%.
        assert!((unlike.high - (0.2 + 3.182_446 * 0.2 / 3f64.sqrt())).abs() < 1e-5, "{unlike:?}");
    }

    #[test]
    fn waits_for_lines_that_nobody_saw_before_may_be_half_or_twice_as_long() {
        let stalls = StallSources { levels: vec![0, 60], first_touch: 40, ..StallSources::default() };
        let part = RecordedPart { instructions: 100, stalls };
        // Parts of 200 cycles; the first one's lines were new to everybody.
        let of = ranges(&[part.clone(), part.clone(), part.clone()], 300).unwrap();
        assert!(of.first_touch.low < 0.134 && of.first_touch.high > 0.266, "{of:?}");
        assert!(of.levels[1].low < 0.264 && of.levels[1].high > 0.321, "{of:?}");
        let known = RecordedPart { stalls: StallSources { other: 40, first_touch: 0, ..part.stalls.clone() }, ..part };
        let of = ranges(&[known.clone(), known.clone(), known], 300).unwrap();
        assert!((of.other.low - 0.2 * 2.0 / 3.0).abs() < 1e-9 && (of.other.high - 0.2).abs() < 1e-9, "{of:?}");
    }

    #[test]
    fn what_parts_wait_for_has_a_range() {
        let part = |levels: u64, other: u64| RecordedPart {
            instructions: 100,
            stalls: StallSources { levels: vec![0, levels], other, ..StallSources::default() },
        };
        let alike = ranges(&[part(60, 40), part(60, 40)], 200).unwrap();
        let near = |range: ShareRange, share: f64| {
            (range.low - share / 2.0).abs() < 1e-12 && (range.high - share).abs() < 1e-12
        };
        assert!(near(alike.all, 0.5) && near(alike.levels[1], 0.3) && near(alike.other, 0.2), "{alike:?}");
        assert!(near(alike.levels[0], 0.0) && near(alike.coherence, 0.0), "{alike:?}");
        // Parts of 200 and 120 cycles, of which 100 and 20 wait: three eighths, with a t(1) of 12.7 between 0 and all.
        let unlike = ranges(&[part(60, 40), part(20, 0)], 200).unwrap();
        assert_eq!(unlike.all, ShareRange { low: 0.0, high: 1.0 });
        assert_eq!(ranges(&[part(60, 40)], 100), None);
    }

    #[test]
    fn a_whole_run_has_no_interval() {
        assert_eq!(interval(&[part(1, 1)], &[part(1, 0)], 1, &[]), None);
        assert_eq!(interval(&[], &[], 0, &[]), None);
    }
}
