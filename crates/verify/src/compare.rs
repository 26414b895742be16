use crate::interval::{median, median_interval, smallest_detectable};
use crate::looks::looks;
use crate::order::{Coin, Side, letters};
use crate::{Better, Comparison, Error, Outcome, Sample, Stopped, Summary, Verdict};
use nearmiss_record::verdict::{SCHEMA, Sides};
use std::time::Duration;

/// How a comparison is carried out.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The metric that the verdict is about.
    pub metric: String,
    /// Which way it is better.
    pub better: Better,
    /// Decides the order within the pairs.
    pub seed: u64,
    /// Runs of each side before the first that counts.
    pub warm_up: usize,
    /// Least number of pairs, at least 6.
    pub least_pairs: usize,
    /// Largest number of pairs, however fast they are.
    pub most_pairs: usize,
    /// No new pair begins after this time, once the least number of pairs is done.
    pub time_limit: Duration,
    /// The error rate: how often a difference is claimed where there is none.
    pub alpha: f64,
    /// A difference of this share must not be missed: where it could be, the verdict is too
    /// noisy rather than no difference.
    pub resolution: f64,
    /// The gain that the user asks for, as a share.
    pub required_gain: Option<f64>,
}

impl Default for Plan {
    fn default() -> Self {
        Plan {
            metric: "wall_s".to_owned(),
            better: Better::Lower,
            seed: 1,
            warm_up: 1,
            least_pairs: 10,
            most_pairs: 100,
            time_limit: Duration::from_secs(120),
            alpha: 0.05,
            resolution: 0.03,
            required_gain: None,
        }
    }
}

impl Plan {
    fn check(&self) -> Result<(), Error> {
        let wrong = |what: &str| Err(Error::Parameters(what.to_owned()));
        if self.least_pairs < 6 {
            return wrong("the number of pairs must be at least 6: fewer cannot show a difference at 95%");
        }
        if !(self.alpha > 0.0 && self.alpha < 0.5 && self.resolution > 0.0 && self.resolution < 1.0) {
            return wrong("the error rate must lie between 0 and 0.5, the resolution between 0 and 1");
        }
        Ok(())
    }
}

/// Everything measured so far.
#[derive(Default)]
struct Pairs {
    without: Vec<Sample>,
    with: Vec<Sample>,
    order: Vec<String>,
}

impl Pairs {
    fn count(&self) -> usize {
        self.without.len()
    }

    /// Values of a metric, where every run has it.
    fn values(samples: &[Sample], metric: &str) -> Option<Vec<f64>> {
        samples.iter().map(|sample| sample.get(metric).copied()).collect()
    }

    /// The logarithm of each pair's ratio, sorted; `None` where some run lacks the metric or
    /// has none of it.
    fn log_ratios(&self, metric: &str) -> Option<Vec<f64>> {
        let without = Self::values(&self.without, metric)?;
        let with = Self::values(&self.with, metric)?;
        let mut ratios: Vec<f64> = without.iter().zip(&with).map(|(a, b)| (b / a).ln()).collect();
        ratios.sort_by(f64::total_cmp);
        ratios.iter().all(|ratio| ratio.is_finite()).then_some(ratios)
    }

    fn comparison(&self, metric: &str, better: Better, alpha: f64) -> Option<Comparison> {
        let ratios = self.log_ratios(metric)?;
        let interval = median_interval(&ratios, alpha);
        Some(Comparison {
            metric: metric.to_owned(),
            better,
            ratio: median(&ratios)?.exp(),
            interval: interval.map(|(low, high)| (low.exp(), high.exp())),
            confidence: 1.0 - alpha,
            smallest_detectable: interval.map(|i| smallest_detectable(i, alpha).exp() - 1.0),
            without: summary(Self::values(&self.without, metric)?)?,
            with: summary(Self::values(&self.with, metric)?)?,
        })
    }
}

fn summary(mut values: Vec<f64>) -> Option<Summary> {
    values.sort_by(f64::total_cmp);
    Some(Summary { median: median(&values)?, least: *values.first()?, largest: *values.last()? })
}

/// Compares two sides by samples of them.
///
/// `measure` runs one side once. `elapsed` is the time since the beginning. The samples
/// come in pairs, one of each side. The figures beside the plan's metric are given with
/// plain 95% intervals: they decide nothing. Who the sides are is for the caller to say.
pub fn compare(
    plan: &Plan,
    mut measure: impl FnMut(Side) -> Result<Sample, Error>,
    mut elapsed: impl FnMut() -> Duration,
) -> Result<Verdict, Error> {
    plan.check()?;
    let before_warm_up = elapsed();
    for _ in 0..plan.warm_up.max(1) {
        measure(Side::Without)?;
        measure(Side::With)?;
    }
    let started = elapsed();
    // How many pairs fit is settled now, before any of them is known.
    let pair = (started - before_warm_up).as_secs_f64() / plan.warm_up.max(1) as f64;
    let fitting = plan.time_limit.saturating_sub(started).as_secs_f64() / pair.max(1e-9);
    let most = (fitting.min(plan.most_pairs as f64) as usize).max(plan.least_pairs);
    let looks = looks(plan.least_pairs, most, plan.alpha);

    let mut pairs = Pairs::default();
    let mut coin = Coin::new(plan.seed);
    let mut left = plan.alpha;
    let mut looked = Vec::new();
    for (number, look) in looks.iter().enumerate() {
        let mut out_of_time = false;
        while pairs.count() < look.pairs && !out_of_time {
            run_pair(&mut pairs, &mut coin, &mut measure)?;
            out_of_time = pairs.count() >= plan.least_pairs && elapsed() >= plan.time_limit;
        }
        let last = out_of_time || number + 1 == looks.len();
        let alpha = if last { left } else { look.alpha };
        left -= alpha;
        looked.push(pairs.count());
        let comparison = pairs.comparison(&plan.metric, plan.better, alpha).ok_or_else(|| {
            Error::Parameters(format!(
                "{}: not every run has it, or it is zero or negative, so no ratio can be formed",
                plan.metric
            ))
        })?;
        let decided = is_decided(&comparison, plan);
        if decided || last {
            let stopped = match (decided, out_of_time) {
                (true, _) => Stopped::Decided,
                (false, true) => Stopped::TimeLimit,
                (false, false) => Stopped::PlannedEnd,
            };
            return Ok(judge(plan, &pairs, comparison, looked, stopped));
        }
    }
    Err(Error::Parameters("a comparison without a look".to_owned()))
}

fn run_pair(
    pairs: &mut Pairs,
    coin: &mut Coin,
    measure: &mut impl FnMut(Side) -> Result<Sample, Error>,
) -> Result<(), Error> {
    let pair = coin.next_pair();
    pairs.order.push(letters(pair));
    for side in pair {
        let sample = measure(side)?;
        match side {
            Side::Without => pairs.without.push(sample),
            Side::With => pairs.with.push(sample),
        }
    }
    Ok(())
}

/// Whether going on could no longer change what is said.
fn is_decided(comparison: &Comparison, plan: &Plan) -> bool {
    let settled = match comparison.outcome(plan.resolution) {
        Outcome::Gain | Outcome::Loss => true,
        // Twice as fine as need be: what is asked for would have been seen by now.
        Outcome::NoDifference => comparison.smallest_detectable.is_some_and(|seen| seen <= plan.resolution / 2.0),
        Outcome::TooNoisy => false,
    };
    let requirement_settled = match (plan.required_gain, comparison.gain_interval()) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(required), Some((low, high))) => low >= required || high < required,
    };
    settled && requirement_settled
}

fn judge(plan: &Plan, pairs: &Pairs, comparison: Comparison, looks: Vec<usize>, stopped: Stopped) -> Verdict {
    let outcome = comparison.outcome(plan.resolution);
    let names: Vec<&String> = pairs.without.first().map(|sample| sample.keys().collect()).unwrap_or_default();
    let others = names
        .into_iter()
        .filter(|name| **name != plan.metric)
        .filter_map(|name| pairs.comparison(name, Better::Lower, plan.alpha))
        .collect();
    let met = plan
        .required_gain
        .map(|required| outcome == Outcome::Gain && comparison.gain_interval().is_some_and(|(low, _)| low >= required));
    Verdict {
        schema: SCHEMA.to_owned(),
        kind: "measured".to_owned(),
        remedy: None,
        sides: Sides::default(),
        outcome,
        comparison,
        resolution: plan.resolution,
        error_rate: plan.alpha,
        pairs: pairs.count(),
        looks,
        stopped,
        seed: plan.seed,
        order: pairs.order.clone(),
        others,
        required_gain: plan.required_gain,
        required_gain_met: met,
        engaged: None,
        predicted: None,
        notes: Vec::new(),
        without: pairs.without.clone(),
        with: pairs.with.clone(),
    }
}
