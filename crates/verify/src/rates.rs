//! Whether a load did the same work against both sides: what it offered and got, and what failed.

use crate::interval::median;
use crate::loads::{ACHIEVED, ERRORS, OFFERED, WORK};
use crate::pairs::Pairs;
use crate::{Rates, Sample, SideRate};

/// One run in so many may miss its rate: neighbours take a CPU away now and then.
const ONE_RUN_IN: usize = 10;
/// Pairs after which a side that missed its rate in every run ends the comparison.
const HOPELESS: usize = 3;

/// The rates of all runs; `None` where a run has none.
pub(crate) fn of(pairs: &Pairs, tolerance: f64) -> Option<Rates> {
    let side = |samples: &[Sample]| side_rate(samples, tolerance);
    Some(Rates { without: side(&pairs.without)?, with: side(&pairs.with)?, tolerance })
}

fn side_rate(samples: &[Sample], tolerance: f64) -> Option<SideRate> {
    let middle = |name: &str| {
        let mut values: Vec<f64> = samples.iter().filter_map(|sample| sample.get(name).copied()).collect();
        values.sort_by(f64::total_cmp);
        median(&values)
    };
    let runs = |beyond: fn(&Sample, f64) -> bool| samples.iter().filter(|sample| beyond(sample, tolerance)).count();
    Some(SideRate { offered: middle(OFFERED), achieved: middle(ACHIEVED)?, missed: runs(missed), failed: runs(failed) })
}

fn missed(sample: &Sample, tolerance: f64) -> bool {
    match (sample.get(OFFERED), sample.get(ACHIEVED)) {
        (Some(offered), Some(achieved)) => *achieved < offered * (1.0 - tolerance),
        _ => false,
    }
}

fn failed(sample: &Sample, tolerance: f64) -> bool {
    match (sample.get(WORK), sample.get(ERRORS)) {
        (Some(done), Some(errors)) => *errors > (done + errors) * tolerance,
        _ => false,
    }
}

fn any_side(rates: Option<&Rates>, holds: impl Fn(usize) -> bool) -> bool {
    rates.is_some_and(|rates| [rates.without, rates.with].iter().any(|side| holds(side.missed.max(side.failed))))
}

/// Whether they make the verdict void.
pub(crate) fn void(rates: Option<&Rates>, pairs: usize) -> bool {
    any_side(rates, |runs| runs * ONE_RUN_IN > pairs)
}

/// Whether further pairs would be in vain.
pub(crate) fn hopeless(rates: Option<&Rates>, pairs: usize) -> bool {
    pairs >= HOPELESS && any_side(rates, |runs| runs == pairs)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn run(offered: f64, achieved: f64, errors: f64) -> Sample {
        let figures = [(OFFERED, offered), (ACHIEVED, achieved), (WORK, 1000.0), (ERRORS, errors)];
        figures.map(|(name, value)| (name.to_owned(), value)).into()
    }

    /// Eleven runs a side, of which so many under B are this one.
    fn rates(bad: usize, sample: &Sample) -> Option<Rates> {
        let good = vec![run(5000.0, 4950.0, 10.0); 11];
        let with = (0..11).map(|n| if n < bad { sample.clone() } else { good[n].clone() }).collect();
        of(&Pairs { without: good, with, order: Vec::new() }, 0.01)
    }

    #[test]
    fn more_than_one_run_in_ten_that_misses_its_rate_is_too_many() {
        for (sample, missed, failed) in [(run(5000.0, 4949.9, 0.0), 2, 0), (run(5000.0, 4999.0, 10.2), 0, 2)] {
            let two = rates(2, &sample).unwrap();
            assert_eq!((two.with.missed, two.with.failed, two.without.missed), (missed, failed, 0));
            assert!(void(Some(&two), 11) && !hopeless(Some(&two), 11));
            assert!(!void(rates(1, &sample).as_ref(), 11));
            assert!(hopeless(rates(11, &sample).as_ref(), 11));
        }
        let one = rates(1, &run(5000.0, 1.0, 0.0)).unwrap();
        assert_eq!((one.with.offered, one.with.achieved), (Some(5000.0), 4950.0));
    }

    #[test]
    fn a_closed_loop_misses_no_rate() {
        let mut closed = run(0.0, 10.0, 0.0);
        closed.remove(OFFERED);
        let rates = of(&Pairs { without: vec![closed.clone()], with: vec![closed], order: Vec::new() }, 0.01);
        assert_eq!(rates.unwrap().with, SideRate { offered: None, achieved: 10.0, missed: 0, failed: 0 });
        assert!(!void(rates.as_ref(), 1) && !void(None, 1) && !hopeless(rates.as_ref(), 3));
    }
}
