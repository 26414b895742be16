//! Everything measured so far, and comparisons of it by metrics.

use crate::interval::{Averages, median, smallest_detectable};
use crate::loads::BEHIND;
use crate::order::{Side, letters};
use crate::{Better, Comparison, Error, Sample, Summary};

/// Pairs of runs, in order.
#[derive(Default)]
pub(crate) struct Pairs {
    pub(crate) without: Vec<Sample>,
    pub(crate) with: Vec<Sample>,
    pub(crate) order: Vec<String>,
}

impl Pairs {
    pub(crate) fn count(&self) -> usize {
        self.without.len()
    }

    /// Runs a pair.
    pub(crate) fn run(
        &mut self,
        pair: [Side; 2],
        mut measure: impl FnMut(Side) -> Result<Sample, Error>,
    ) -> Result<(), Error> {
        self.order.push(letters(pair));
        for side in pair {
            let sample = measure(side)?;
            match side {
                Side::Without => self.without.push(sample),
                Side::With => self.with.push(sample),
            }
        }
        Ok(())
    }

    /// Returns the pairs in which the load kept up on both sides: only their times are the server's.
    pub(crate) fn kept_up(&self) -> Pairs {
        let all = self.without.iter().zip(&self.with).zip(&self.order);
        let mut kept = Pairs::default();
        for ((without, with), order) in all.filter(|((without, with), _)| !is_behind(without, with)) {
            kept.without.push(without.clone());
            kept.with.push(with.clone());
            kept.order.push(order.clone());
        }
        kept
    }

    /// Names of all that a run measured.
    pub(crate) fn metrics(&self) -> Vec<&String> {
        self.without.first().map(|sample| sample.keys().collect()).unwrap_or_default()
    }

    /// Whether a ratio can be formed of every pair.
    pub(crate) fn has(&self, metric: &str) -> bool {
        self.log_ratios(metric).is_some()
    }

    /// Compares the pairs by a metric, where every run has it; `start_seconds` is the part of a time that the remedy's
    /// start takes.
    pub(crate) fn comparison(
        &self,
        metric: &str,
        better: Better,
        alpha: f64,
        start_seconds: f64,
    ) -> Option<Comparison> {
        let averages = Averages::new(&self.log_ratios(metric)?);
        let interval = averages.interval(alpha);
        let without = summary(Self::values(&self.without, metric)?)?;
        let is_time_of_the_command = [crate::WALL, crate::CPU].contains(&metric);
        Some(Comparison {
            metric: metric.to_owned(),
            better,
            ratio: averages.middle()?.exp(),
            interval: interval.map(|(low, high)| (low.exp(), high.exp())),
            confidence: 1.0 - alpha,
            smallest_detectable: interval.map(|i| smallest_detectable(i, alpha).exp() - 1.0),
            tolerated_loss: if is_time_of_the_command { start_seconds / without.median } else { 0.0 },
            without,
            with: summary(Self::values(&self.with, metric)?)?,
        })
    }

    fn values(samples: &[Sample], metric: &str) -> Option<Vec<f64>> {
        samples.iter().map(|sample| sample.get(metric).copied()).collect()
    }

    /// The logarithm of each pair's ratio; `None` where some run lacks the metric or has none of it.
    fn log_ratios(&self, metric: &str) -> Option<Vec<f64>> {
        let without = Self::values(&self.without, metric)?;
        let with = Self::values(&self.with, metric)?;
        let ratios: Vec<f64> = without.iter().zip(&with).map(|(a, b)| (b / a).ln()).collect();
        ratios.iter().all(|ratio| ratio.is_finite()).then_some(ratios)
    }
}

/// Whether the load fell behind in a run of the pair.
pub(crate) fn is_behind(without: &Sample, with: &Sample) -> bool {
    [without, with].iter().any(|sample| sample.contains_key(BEHIND))
}

/// Compares pairs of runs by a figure, B against A; who ran them decided the order of each pair by a coin. `None` where
/// some run lacks the figure, or no ratio can be formed. Without an interval there were too few pairs for `alpha`.
pub fn of_pairs(metric: &str, better: Better, pairs: Vec<(Sample, Sample)>, alpha: f64) -> Option<Comparison> {
    let (without, with) = pairs.into_iter().unzip();
    Pairs { without, with, order: Vec::new() }.comparison(metric, better, alpha, 0.0)
}

/// Median, least and largest; `None` of no numbers.
pub fn summary(mut values: Vec<f64>) -> Option<Summary> {
    values.sort_by(f64::total_cmp);
    Some(Summary { median: median(&values)?, least: *values.first()?, largest: *values.last()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_in_which_the_load_fell_behind_is_left_out_on_both_sides() {
        let run = |p99: f64, behind: bool| -> Sample {
            let figures = [("p99_ms".to_owned(), p99)].into_iter();
            figures.chain(behind.then(|| (BEHIND.to_owned(), 1.0))).collect()
        };
        let pairs = Pairs {
            without: vec![run(1.0, false), run(2.0, true), run(3.0, false)],
            with: vec![run(10.0, false), run(20.0, false), run(30.0, true)],
            order: ["AB", "BA", "AB"].map(str::to_owned).to_vec(),
        };
        let kept = pairs.kept_up();
        assert_eq!(
            (kept.without, kept.with, kept.order),
            (vec![run(1.0, false)], vec![run(10.0, false)], vec!["AB".to_owned()])
        );
    }
}
