use crate::interval::median;
use crate::{Better, Sample};
use serde::Serialize;
use std::fmt;

/// What the comparison says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The remedy helps.
    Gain,
    /// The remedy harms.
    Loss,
    /// No difference, and one of the resolution asked for would have been seen.
    NoDifference,
    /// No difference was seen, but one of the resolution asked for could have been missed.
    TooNoisy,
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Outcome::Gain => "gain",
            Outcome::Loss => "loss",
            Outcome::NoDifference => "no difference",
            Outcome::TooNoisy => "too noisy",
        })
    }
}

/// Why no further pairs were run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stopped {
    /// Further pairs could not have changed the outcome at its error rate.
    Decided,
    /// All planned pairs were run.
    PlannedEnd,
    /// The time was up.
    TimeLimit,
}

/// One side's figures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The median.
    pub median: f64,
    /// The smallest.
    pub least: f64,
    /// The largest.
    pub largest: f64,
}

impl Summary {
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        Some(Summary { median: median(&sorted)?, least: *sorted.first()?, largest: *sorted.last()? })
    }
}

/// One metric, without and with the remedy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Its name: with its unit, or the expression that finds it in the output.
    pub metric: String,
    /// Which way it is better.
    pub better: Better,
    /// Median of the pairs' ratios, with ÷ without.
    pub ratio: f64,
    /// Interval for that median; absent where there are too few pairs for one.
    pub interval: Option<(f64, f64)>,
    /// Confidence of the interval itself. For the metric that the verdict is about it is
    /// higher than that of the verdict, as it pays for all looks.
    pub confidence: f64,
    /// The relative difference that four of five such comparisons would have seen.
    pub smallest_detectable: Option<f64>,
    /// Without the remedy.
    pub without: Summary,
    /// With the remedy.
    pub with: Summary,
}

impl Comparison {
    /// The gain as a share: how much less time it takes, or how much more it does.
    pub fn gain(&self) -> f64 {
        self.as_gain(self.ratio)
    }

    /// The interval as gains, low to high.
    pub fn gain_interval(&self) -> Option<(f64, f64)> {
        self.interval.map(|(low, high)| match self.better {
            Better::Lower => (self.as_gain(high), self.as_gain(low)),
            Better::Higher => (self.as_gain(low), self.as_gain(high)),
        })
    }

    fn as_gain(&self, ratio: f64) -> f64 {
        match self.better {
            Better::Lower => 1.0 - ratio,
            Better::Higher => ratio - 1.0,
        }
    }

    /// What it says, where a difference of `resolution` must not be missed.
    pub fn outcome(&self, resolution: f64) -> Outcome {
        match self.gain_interval() {
            Some((low, _)) if low > 0.0 => Outcome::Gain,
            Some((_, high)) if high < 0.0 => Outcome::Loss,
            _ if self.smallest_detectable.is_some_and(|seen| seen <= resolution) => Outcome::NoDifference,
            _ => Outcome::TooNoisy,
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{}: {} without, {} with; {:+.1}%",
            self.metric,
            Figure(self.without.median),
            Figure(self.with.median),
            (self.ratio - 1.0) * 100.0
        )?;
        match self.interval {
            Some((low, high)) => write!(out, " [{:+.1}%, {:+.1}%]", (low - 1.0) * 100.0, (high - 1.0) * 100.0),
            None => write!(out, " [too few pairs for an interval]"),
        }
    }
}

/// Four digits that count, never in powers of ten.
struct Figure(f64);

impl fmt::Display for Figure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.0.abs().max(1e-9).log10().floor() as i32 + 1;
        write!(out, "{:.*}", (4 - whole).clamp(0, 9) as usize, self.0)
    }
}

/// The result of `verify`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// `nearmiss/verdict/1`.
    pub schema: &'static str,
    /// `measured`.
    pub kind: &'static str,
    /// The remedy that was compared, with its parameters.
    pub remedy: Option<String>,
    /// What it says.
    pub outcome: Outcome,
    /// The metric that it is about.
    pub comparison: Comparison,
    /// The relative difference that must not be missed.
    pub resolution: f64,
    /// How often a difference is claimed where there is none, at most.
    pub error_rate: f64,
    /// Pairs of runs.
    pub pairs: usize,
    /// After how many pairs the results were looked at.
    pub looks: Vec<usize>,
    /// Why no further pairs were run.
    pub stopped: Stopped,
    /// What decided the order.
    pub seed: u64,
    /// The order: A without, B with the remedy.
    pub order: Vec<String>,
    /// The other metrics, each with a plain 95% interval of its own.
    pub others: Vec<Comparison>,
    /// The gain that was asked for, as a share.
    pub required_gain: Option<f64>,
    /// Whether it was reached: the whole interval lies at it or above.
    pub required_gain_met: Option<bool>,
    /// What the remedy reported of the last run under it.
    pub engaged: Option<String>,
    /// Every run without, in order.
    pub without: Vec<Sample>,
    /// Every run with, in order; the n-th makes a pair with the n-th without.
    pub with: Vec<Sample>,
}

impl Verdict {
    /// The record's schema.
    pub const SCHEMA: &'static str = "nearmiss/verdict/1";

    /// Of a neighbour measured beside the command: each of its metrics, whose names begin
    /// with `beside_`, and what it says.
    pub fn neighbour(&self) -> impl Iterator<Item = (&Comparison, Outcome)> {
        self.others
            .iter()
            .filter(|other| other.metric.starts_with("beside_"))
            .map(|other| (other, other.outcome(self.resolution)))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.outcome)?;
        if let Some(remedy) = &self.remedy {
            write!(out, " ({remedy})")?;
        }
        writeln!(out, ", measured in {} pairs", self.pairs)?;
        writeln!(out, "  {}", self.comparison)?;
        let confidence = (1.0 - self.error_rate) * 100.0;
        write!(out, "  interval of the median ratio, {confidence:.0}% over all looks (after ")?;
        let looks: Vec<String> = self.looks.iter().map(usize::to_string).collect();
        writeln!(out, "{} pairs)", looks.join(", "))?;
        match (self.outcome, self.comparison.smallest_detectable) {
            (Outcome::NoDifference, Some(seen)) => {
                writeln!(out, "  smallest difference that this run could have seen: {:.1}%", seen * 100.0)?;
            }
            (Outcome::TooNoisy, seen) => {
                let seen = seen.map_or("nothing".to_owned(), |seen| format!("{:.1}% or more", seen * 100.0));
                writeln!(
                    out,
                    "  this run could have seen {seen}; {:.1}% was asked for: give it more time, or a quieter machine",
                    self.resolution * 100.0
                )?;
            }
            _ => {}
        }
        for other in &self.others {
            writeln!(out, "  {other}")?;
        }
        for (other, outcome) in self.neighbour() {
            writeln!(out, "  neighbour, {}: {outcome}", other.metric)?;
        }
        if let (Some(required), Some(met)) = (self.required_gain, self.required_gain_met) {
            let word = if met { "met" } else { "not met" };
            writeln!(out, "  required gain of {:.1}%: {word}", required * 100.0)?;
        }
        if let Some(engaged) = &self.engaged {
            writeln!(out, "  {engaged}")?;
        }
        write!(out, "  seed {}, order {}", self.seed, self.order.join(" "))
    }
}
