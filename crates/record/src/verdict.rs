//! `verdict.json`: result of an interleaved comparison of two sides; *measured*, or *modelled* if it compares
//! recordings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// `nearmiss/verdict/2`.
pub const SCHEMA: &str = "nearmiss/verdict/2";

/// Kinds of verdicts: by clocks and counters here, or by recordings on the model of a machine.
pub const MEASURED: &str = "measured";
/// See [`MEASURED`].
pub const MODELLED: &str = "modelled";

crate::schema::is_record!(Verdict);

/// The figures of one run, by metric.
pub type Sample = BTreeMap<String, f64>;

/// Direction that is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Less is better: times, misses.
    #[default]
    Lower,
    /// More is better: messages a second.
    Higher,
}

/// Result of the comparison for side B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// B is better.
    Gain,
    /// B is worse.
    Loss,
    /// No difference, and one of the requested resolution would have been seen.
    NoDifference,
    /// No difference was seen, but one of the requested resolution could have been missed.
    TooNoisy,
    /// The remedy did nothing to the command, so that there is nothing to measure.
    NothingToActOn,
    /// The load missed its rate, or requests failed, or a closed loop slowed down: the two sides did not do the same
    /// work.
    Void,
    /// The load reports neither its requests nor its rate: whether the two sides did the same work is unknown.
    Undecided,
}

impl Outcome {
    /// Whether it claims that the sides differ.
    pub fn is_claim(self) -> bool {
        matches!(self, Outcome::Gain | Outcome::Loss)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Outcome::Gain => "gain",
            Outcome::Loss => "loss",
            Outcome::NoDifference => "no difference",
            Outcome::TooNoisy => "too noisy",
            Outcome::NothingToActOn => "nothing to act on",
            Outcome::Void => "void",
            Outcome::Undecided => "undecided",
        })
    }
}

/// Why no further pairs were run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// The median.
    pub median: f64,
    /// The smallest.
    pub least: f64,
    /// The largest.
    pub largest: f64,
}

/// One metric of the two sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Name of the metric: with the unit, or the expression that finds the metric in the output.
    pub metric: String,
    /// Direction that is better for the metric.
    pub better: Better,
    /// Middle of the pairs' ratios, B ÷ A: the median of the geometric means of all two of them (Hodges and Lehmann).
    pub ratio: f64,
    /// Interval for that middle; absent where there are too few pairs for one.
    pub interval: Option<(f64, f64)>,
    /// Confidence of the interval itself. It is higher than that of the verdict, as it pays for all looks.
    pub confidence: f64,
    /// The relative difference that four of five such comparisons would have seen.
    pub smallest_detectable: Option<f64>,
    /// A loss of this share is the remedy's start alone, and not called a loss.
    #[serde(default)]
    pub tolerated_loss: f64,
    /// Side A.
    pub without: Summary,
    /// Side B.
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

    /// The share of the time that B saves, where the metric is a time or a rate: who does a quarter more in a second
    /// takes a fifth less time for the same work.
    pub fn saved(&self) -> f64 {
        match self.better {
            Better::Lower => 1.0 - self.ratio,
            Better::Higher => 1.0 - 1.0 / self.ratio,
        }
    }

    fn as_gain(&self, ratio: f64) -> f64 {
        match self.better {
            Better::Lower => 1.0 - ratio,
            Better::Higher => ratio - 1.0,
        }
    }

    /// Returns the result, if a difference of `resolution` must not be missed.
    pub fn outcome(&self, resolution: f64) -> Outcome {
        match self.gain_interval() {
            Some((low, _)) if low > 0.0 => Outcome::Gain,
            Some((_, high)) if high < -self.tolerated_loss => Outcome::Loss,
            _ if self.smallest_detectable.is_some_and(|seen| seen <= resolution) => Outcome::NoDifference,
            _ => Outcome::TooNoisy,
        }
    }
}

/// Names of the two sides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sides {
    /// Side A, which is compared with: `without color`, or the first command as typed.
    pub without: String,
    /// Side B, which the verdict is about: `with color, 32 colors`, or the second command as typed.
    pub with: String,
}

/// CPU time that the remedy adds to the start of one program; *measured*, on a program that does nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Start {
    /// The program.
    pub program: String,
    /// Pairs of its runs, without and with the remedy.
    pub pairs: usize,
    /// Middle of the pairs' differences.
    pub seconds: f64,
    /// Low end of the 95% interval for the middle.
    pub low_seconds: f64,
    /// High end of the 95% interval for the middle.
    pub high_seconds: f64,
}

/// Prediction of `diagnose` for the remedy in a run; *predicted*.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Predicted {
    /// The run.
    pub run: String,
    /// The function that the prediction is about; none: the whole command.
    pub function: Option<String>,
    /// The least share of the time that it saves.
    pub low: f64,
    /// The largest share of the time that it saves.
    pub high: f64,
    /// Share of a miss's latency that the machine is assumed to hide, where misses matter.
    pub overlap: Option<f64>,
}

impl Predicted {
    /// Returns how far a measured saving lies outside of the prediction, as a share.
    pub fn apart(&self, saved: f64) -> f64 {
        (self.low - saved).max(saved - self.high).max(0.0)
    }
}

/// Rate that a load offered one side and got; *measured*, and medians over the runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SideRate {
    /// Units of work a second that the load tried to get done; none: it reports none, as a closed loop.
    pub offered: Option<f64>,
    /// Units of work a second that were done.
    pub achieved: f64,
    /// Runs that got less than was offered, by more than is tolerated.
    pub missed: usize,
    /// Runs in which more of the units failed than is tolerated.
    pub failed: usize,
}

/// The rates at which a load ran against the two sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rates {
    /// Side A.
    pub without: SideRate,
    /// Side B.
    pub with: SideRate,
    /// The share of the offered rate that a run may miss.
    pub tolerance: f64,
}

/// The result of `verify`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// [`SCHEMA`].
    pub schema: String,
    /// [`MEASURED`] or [`MODELLED`].
    pub kind: String,
    /// The remedy that was compared, with its parameters; none: two commands.
    pub remedy: Option<String>,
    /// The two sides.
    pub sides: Sides,
    /// Result of the comparison.
    pub outcome: Outcome,
    /// The metric that it is about.
    pub comparison: Comparison,
    /// The relative difference that must not be missed.
    pub resolution: f64,
    /// Largest probability of a claimed difference if there is none.
    pub error_rate: f64,
    /// Pairs of runs.
    pub pairs: usize,
    /// After how many pairs the results were looked at.
    pub looks: Vec<usize>,
    /// Why no further pairs were run.
    pub stopped: Stopped,
    /// Seed of the order.
    pub seed: u64,
    /// The order within each pair: `AB` or `BA`.
    pub order: Vec<String>,
    /// The other metrics, each by itself with an interval that pays for all looks as the verdict's does.
    pub others: Vec<Comparison>,
    /// Names of those of the other metrics that have a verdict of their own.
    #[serde(default)]
    pub judged: Vec<String>,
    /// The rates of the load; none: there was no load, or it reported none.
    #[serde(default)]
    pub rates: Option<Rates>,
    /// The gain required, as a share.
    pub required_gain: Option<f64>,
    /// Whether the required gain was reached: the whole interval lies at it or above.
    pub required_gain_met: Option<bool>,
    /// Remedy's report of the last run with the remedy.
    pub engaged: Option<String>,
    /// Cost of the remedy's start; none: two commands, or it could not be measured.
    #[serde(default)]
    pub start: Option<Start>,
    /// Prediction for the remedy, if the verdict is set beside it.
    pub predicted: Option<Predicted>,
    /// Facts for the reader, one sentence each.
    pub notes: Vec<String>,
    /// Every run of side A, in order.
    pub without: Vec<Sample>,
    /// Every run of side B, in order; the n-th makes a pair with the n-th of side A.
    pub with: Vec<Sample>,
}

impl Verdict {
    /// Returns each metric of a neighbour measured beside the command, with a name that begins with `beside_`, and its
    /// result.
    pub fn neighbour(&self) -> impl Iterator<Item = (&Comparison, Outcome)> {
        self.others
            .iter()
            .filter(|other| other.metric.starts_with("beside_"))
            .map(|other| (other, other.outcome(self.resolution)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(better: Better, ratio: f64) -> Comparison {
        let summary = Summary { median: 1.0, least: 1.0, largest: 1.0 };
        Comparison {
            metric: "m".to_owned(),
            better,
            ratio,
            interval: Some((ratio - 0.125, ratio + 0.125)),
            confidence: 0.95,
            smallest_detectable: Some(0.25),
            tolerated_loss: 0.0,
            without: summary,
            with: summary,
        }
    }

    #[test]
    fn a_gain_and_the_time_saved_differ_for_rates() {
        let time = comparison(Better::Lower, 0.75);
        assert_eq!((time.gain(), time.saved(), time.gain_interval()), (0.25, 0.25, Some((0.125, 0.375))));
        let rate = comparison(Better::Higher, 1.25);
        assert_eq!((rate.gain(), rate.gain_interval()), (0.25, Some((0.125, 0.375))));
        assert!((rate.saved() - 0.2).abs() < 1e-12, "{}", rate.saved());
        assert_eq!((time.outcome(0.03), rate.outcome(0.03)), (Outcome::Gain, Outcome::Gain));
        assert_eq!(comparison(Better::Higher, 0.75).outcome(0.03), Outcome::Loss);
        assert_eq!(comparison(Better::Lower, 1.0).outcome(0.03), Outcome::TooNoisy);
        assert_eq!(comparison(Better::Lower, 1.0).outcome(0.3), Outcome::NoDifference);
    }

    #[test]
    fn a_loss_within_the_remedys_start_is_none() {
        let slower = |tolerated_loss| Comparison { tolerated_loss, ..comparison(Better::Lower, 1.25) };
        assert_eq!(
            [0.0, 0.124, 0.126].map(|t| slower(t).outcome(0.3)),
            [Outcome::Loss, Outcome::Loss, Outcome::NoDifference]
        );
        let faster = Comparison { tolerated_loss: 0.5, ..comparison(Better::Lower, 0.75) };
        assert_eq!(faster.outcome(0.3), Outcome::Gain);
    }

    #[test]
    fn a_gain_within_a_prediction_is_not_apart_from_it() {
        let predicted = Predicted { run: "r".to_owned(), function: None, low: 0.25, high: 0.5, overlap: Some(0.6) };
        assert_eq!([0.125, 0.25, 0.4, 0.5, 0.75].map(|saved| predicted.apart(saved)), [0.125, 0.0, 0.0, 0.0, 0.25]);
    }
}
