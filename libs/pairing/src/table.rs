//! Samples of each pair: how long a task takes beside another one, relative to alone.

use crate::costs::Costs;

/// Least samples of a pair before it is judged: fewer give no usable spread.
pub const LEAST_SAMPLES: u32 = 3;
/// Confidence needed to call a pair high or low, unless the caller passes another.
pub const USUAL_CONFIDENCE: f64 = 0.9;

/// Samples of one figure: their number, mean and spread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Series {
    count: u32,
    mean: f64,
    /// Sum of the squared distances from the mean (Welford's).
    squares: f64,
}

impl Series {
    /// Takes one sample in; what is no number is none.
    pub fn add(&mut self, sample: f64) {
        if !sample.is_finite() {
            return;
        }
        self.count = self.count.saturating_add(1);
        let from_before = sample - self.mean;
        self.mean += from_before / f64::from(self.count);
        self.squares += from_before * (sample - self.mean);
    }

    /// Returns how many samples there are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns the mean of the samples, if there are any.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then_some(self.mean)
    }

    /// The variance of the mean, from the spread of the samples; none below two samples.
    pub fn variance_of_mean(&self) -> Option<f64> {
        let count = f64::from(self.count);
        (self.count > 1).then(|| self.squares / (count - 1.0) / count)
    }
}

/// How well two tasks share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Affinity {
    /// The two cost less together than pairs do on average.
    High,
    /// The two cost more together than pairs do on average.
    Low,
    /// Nothing certain is known.
    #[default]
    Unknown,
}

/// A judgement and how certain it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairJudgement {
    /// Unknown where the confidence is below the caller's least.
    pub affinity: Affinity,
    /// Least probability that the pair lies on the side of the mean on which its samples lie, for any distribution:
    /// Cantelli's inequality. A half where nothing is known.
    pub confidence: f64,
}

/// Samples of each pair of tasks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PairTable {
    tasks: usize,
    /// Samples by task, then by the task beside it.
    beside: Vec<Series>,
}

impl PairTable {
    /// Nothing seen yet of so many tasks.
    pub fn new(tasks: usize) -> Self {
        PairTable { tasks, beside: vec![Series::default(); tasks * tasks] }
    }

    /// Returns how many tasks there are.
    pub fn tasks(&self) -> usize {
        self.tasks
    }

    /// Makes room for so many tasks; those that are there keep their numbers.
    pub fn grow(&mut self, tasks: usize) {
        if tasks <= self.tasks {
            return;
        }
        let mut grown = PairTable::new(tasks);
        for task in 0..self.tasks {
            let (from, to) = (task * self.tasks, task * tasks);
            grown.beside[to..to + self.tasks].copy_from_slice(&self.beside[from..from + self.tasks]);
        }
        *self = grown;
    }

    /// Forgets all that was seen of a task: another one has its number now.
    pub fn forget(&mut self, task: usize) {
        for other in 0..self.tasks.min(if task < self.tasks { self.tasks } else { 0 }) {
            self.beside[task * self.tasks + other] = Series::default();
            self.beside[other * self.tasks + task] = Series::default();
        }
    }

    /// Adds a sample: `task` took so many times as long, or missed so many times as often, beside `other` as alone.
    /// Tasks that are not in the table are left out.
    pub fn add(&mut self, task: usize, other: usize, of_alone: f64) {
        if task < self.tasks && other < self.tasks {
            self.beside[task * self.tasks + other].add(of_alone);
        }
    }

    /// Returns the samples of `task` beside `other`.
    pub fn beside(&self, task: usize, other: usize) -> Series {
        let is_there = task < self.tasks && other < self.tasks;
        if is_there { self.beside[task * self.tasks + other] } else { Series::default() }
    }

    /// Returns the cost of the two together, relative to alone: the mean of both; none unless both were seen.
    pub fn together(&self, task: usize, other: usize) -> Option<f64> {
        Some((self.beside(task, other).mean()? + self.beside(other, task).mean()?) / 2.0)
    }

    /// Mean of all pairs that were seen.
    pub fn mean(&self) -> Option<f64> {
        let seen: Vec<f64> = self.pairs().filter_map(|(a, b)| self.together(a, b)).collect();
        (!seen.is_empty()).then(|| seen.iter().sum::<f64>() / seen.len() as f64)
    }

    /// All pairs of different tasks, the smaller number first.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let tasks = self.tasks;
        (0..tasks).flat_map(move |a| (a + 1..tasks).map(move |b| (a, b)))
    }

    /// Judges whether a pair is high or low: on which side of `mean` it lies, if that is certain enough. Both the
    /// pair's own spread and the number of its samples count.
    pub fn judge(&self, task: usize, other: usize, mean: f64, least_confidence: f64) -> PairJudgement {
        let nothing = PairJudgement { affinity: Affinity::Unknown, confidence: 0.5 };
        let (one, two) = (self.beside(task, other), self.beside(other, task));
        let Some(together) = self.together(task, other) else { return nothing };
        if one.count().min(two.count()) < LEAST_SAMPLES || together == mean {
            return nothing;
        }
        let variance = one.variance_of_mean().unwrap_or(0.0) + two.variance_of_mean().unwrap_or(0.0);
        let confidence = cantelli((together - mean).powi(2), variance / 4.0);
        let side = if together < mean { Affinity::High } else { Affinity::Low };
        let affinity = if confidence >= least_confidence { side } else { Affinity::Unknown };
        PairJudgement { affinity, confidence }
    }

    /// Returns a copy of the table in which the pairs that are not certain enough are unseen.
    pub fn certain(&self, least_confidence: f64) -> Self {
        let mut certain = self.clone();
        let Some(mean) = self.mean() else { return certain };
        let unsure = |a, b| self.judge(a, b, mean, least_confidence).affinity == Affinity::Unknown;
        for (a, b) in self.pairs().filter(|(a, b)| unsure(*a, *b)) {
            certain.beside[a * self.tasks + b] = Series::default();
            certain.beside[b * self.tasks + a] = Series::default();
        }
        certain
    }

    /// Returns the costs of groups: `weights` specify how much each task matters, such as its cycles alone. A pair that
    /// was not seen costs what pairs cost on average; if none was seen, what tasks cost alone.
    pub fn costs(&self, weights: &[f64]) -> Costs {
        let unseen = self.mean().unwrap_or(1.0);
        let weight = |task: usize| weights.get(task).copied().unwrap_or(1.0);
        let mut costs = Costs::new(self.tasks);
        for (a, b) in self.pairs() {
            let of = |task, other| self.beside(task, other).mean().unwrap_or(unseen) * weight(task);
            costs.set(a, b, of(a, b) + of(b, a));
        }
        (0..self.tasks).for_each(|task| costs.set_alone(task, weight(task)));
        costs
    }
}

/// Least probability that a figure lies on the side of a bound on which its mean lies, by the squared distance to the
/// bound and the variance.
fn cantelli(squared_distance: f64, variance: f64) -> f64 {
    let spread = variance / (variance + squared_distance);
    (1.0 - spread).max(0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(samples: &[f64]) -> PairTable {
        let mut table = PairTable::new(2);
        for sample in samples {
            table.add(0, 1, *sample);
            table.add(1, 0, *sample);
        }
        table
    }

    #[test]
    fn a_series_has_the_mean_and_the_variance_of_its_samples() {
        let mut series = Series::default();
        assert_eq!((series.mean(), series.variance_of_mean()), (None, None));
        [1.0, 2.0, 6.0, f64::NAN].into_iter().for_each(|sample| series.add(sample));
        assert_eq!((series.count(), series.mean()), (3, Some(3.0)));
        // Squares of −2, −1 and 3 make 14; 14 / 2 / 3.
        assert!((series.variance_of_mean().unwrap_or(0.0) - 14.0 / 6.0).abs() < 1e-12);
    }

    #[test]
    fn pairs_seen_too_seldom_or_spread_too_far_are_unknown() {
        let judged = |samples: &[f64]| seen(samples).judge(0, 1, 1.2, 0.9);
        assert_eq!(judged(&[]).affinity, Affinity::Unknown);
        assert_eq!(judged(&[0.9, 0.9]), PairJudgement { affinity: Affinity::Unknown, confidence: 0.5 });
        assert_eq!(judged(&[0.9, 0.9, 0.9]), PairJudgement { affinity: Affinity::High, confidence: 1.0 });
        assert_eq!(judged(&[1.5, 1.5, 1.5]).affinity, Affinity::Low);
        // Mean 1.5, variance of the mean 1/12 in each direction, so 1/24 of both: 1 − 1/(1 + 0.09 × 24).
        let wide = judged(&[1.0, 1.5, 2.0]);
        assert_eq!(wide.affinity, Affinity::Unknown);
        assert!((wide.confidence - (1.0 - 1.0 / 3.16)).abs() < 1e-9, "{wide:?}");
    }

    #[test]
    fn a_pair_that_is_not_certain_is_as_if_unseen() {
        let mut table = PairTable::new(3);
        for (a, b, samples) in [(0, 1, [1.0; 3]), (0, 2, [2.0; 3]), (1, 2, [1.0, 1.5, 2.3])] {
            samples.into_iter().for_each(|sample| {
                table.add(a, b, sample);
                table.add(b, a, sample);
            });
        }
        let certain = table.certain(0.9);
        assert_eq!(
            (certain.together(0, 1), certain.together(0, 2), certain.together(1, 2)),
            (Some(1.0), Some(2.0), None)
        );
    }

    #[test]
    fn a_task_that_is_forgotten_leaves_the_others_as_they_were() {
        let mut table = PairTable::new(2);
        table.add(0, 1, 1.5);
        table.grow(3);
        table.add(2, 0, 0.5);
        assert_eq!((table.beside(0, 1).mean(), table.beside(2, 0).mean()), (Some(1.5), Some(0.5)));
        table.forget(2);
        table.forget(9);
        assert_eq!((table.beside(0, 1).mean(), table.beside(2, 0).mean()), (Some(1.5), None));
    }

    #[test]
    fn unseen_pairs_cost_the_mean_and_weights_decide_who_matters() {
        let mut table = PairTable::new(3);
        table.add(0, 1, 2.0);
        table.add(1, 0, 1.0);
        let costs = table.costs(&[10.0, 1.0, 1.0]);
        assert_eq!(costs.pair(0, 1), 21.0);
        assert_eq!(costs.pair(1, 2), 3.0);
        assert_eq!(costs.alone(0), 10.0);
    }
}
