//! Everything measured so far, and what it says of a metric.

use crate::interval::{Averages, median, smallest_detectable};
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

    /// Names of all that a run measured.
    pub(crate) fn metrics(&self) -> Vec<&String> {
        self.without.first().map(|sample| sample.keys().collect()).unwrap_or_default()
    }

    /// Whether a ratio can be formed of every pair.
    pub(crate) fn has(&self, metric: &str) -> bool {
        self.log_ratios(metric).is_some()
    }

    /// What the pairs say of a metric, where every run has it; `start_seconds` is what the remedy's start takes of a
    /// time.
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

fn summary(mut values: Vec<f64>) -> Option<Summary> {
    values.sort_by(f64::total_cmp);
    Some(Summary { median: median(&values)?, least: *values.first()?, largest: *values.last()? })
}
