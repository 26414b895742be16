//! Recorded parts of a longer run: how far a gain of theirs holds for all of it.

use nearmiss_record::finding::OfWholeRun;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Cost of one recorded part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartCost {
    /// Instructions of the command.
    pub instructions: u64,
    /// Its stall cycles.
    pub stall_cycles: u64,
}

/// Ends of the share of a whole run's cycles that is saved, with 95% confidence: the parts are taken as a sample of the
/// run (ratio estimate, Cochran, Sampling Techniques, 6.4, with Student's t). `computing_cycles` are the cycles of all
/// parts that no stall is in. Returns `None` for fewer than two parts.
pub(crate) fn interval(before: &[PartCost], after: &[PartCost], computing_cycles: u64) -> Option<OfWholeRun> {
    let count = before.len();
    if count < 2 || after.len() != count {
        return None;
    }
    let instructions: u64 = before.iter().map(|part| part.instructions).sum();
    let computing = computing_cycles as f64 / instructions.max(1) as f64;
    let cycles = |part: &PartCost| part.instructions as f64 * computing + part.stall_cycles as f64;
    let saved = |(before, after): (&PartCost, &PartCost)| before.stall_cycles as f64 - after.stall_cycles as f64;
    let whole: f64 = before.iter().map(cycles).sum();
    let saved_by_all: f64 = before.iter().zip(after).map(saved).sum();
    let gain = saved_by_all / whole.max(1.0);
    let residue = |pair: (&PartCost, &PartCost)| (saved(pair) - gain * cycles(pair.0)).powi(2);
    let squares: f64 = before.iter().zip(after).map(residue).sum();
    let error = (squares * count as f64 / (count - 1) as f64).sqrt() / whole.max(1.0);
    let reach = error * student_t(count - 1);
    let most = before.iter().zip(after).map(saved).fold(0.0, f64::max);
    Some(OfWholeRun { low: gain - reach, high: gain + reach, by_one_part: most / saved_by_all.max(1.0) })
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
        PartCost { instructions, stall_cycles }
    }

    #[test]
    fn parts_that_gain_alike_leave_no_doubt() {
        let (before, after) = ([part(100, 100), part(50, 50)], [part(100, 60), part(50, 30)]);
        let OfWholeRun { low, high, .. } = interval(&before, &after, 150).unwrap();
        assert!((low - 0.2).abs() < 1e-12 && (high - 0.2).abs() < 1e-12, "{low} {high}");
    }

    #[test]
    fn one_part_that_gains_alone_proves_nothing() {
        let before = [part(100, 100); 7];
        let after = [part(100, 30), before[0], before[0], before[0], before[0], before[0], before[0]];
        let OfWholeRun { low, high, by_one_part } = interval(&before, &after, 700).unwrap();
        assert_eq!(by_one_part, 1.0);
        // Savings of 70 in one part of seven of 200 cycles each: 5% ± t(6) 0.05.
        assert!((low - (0.05 - 2.446912 * 0.05)).abs() < 1e-6, "{low}");
        assert!((high - (0.05 + 2.446912 * 0.05)).abs() < 1e-6, "{high}");
    }

    #[test]
    fn a_whole_run_has_no_interval() {
        assert_eq!(interval(&[part(1, 1)], &[part(1, 0)], 1), None);
        assert_eq!(interval(&[], &[], 0), None);
    }
}
