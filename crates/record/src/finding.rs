//! `findings.json`: the findings of a run, their remedies and the gains.
//!
//! Symptoms and evidence are *modelled* where they come from a trace, *measured* where they come from an observation;
//! gains are *predicted*.

use crate::figures::Table;
use crate::waits::Wait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// `nearmiss/findings/2`.
pub const SCHEMA: &str = "nearmiss/findings/2";

crate::schema::is_record!(Findings);

/// A gain below this share is shown on request only.
pub const LEAST_GAIN: f64 = 0.02;

/// All findings of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Findings {
    /// [`SCHEMA`].
    pub schema: String,
    /// The machine that the run was modelled on; of an observation, the machine it was made on.
    pub machine: String,
    /// Caution about the measurement behind the machine, if any: one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caution: Option<String>,
    /// The command; empty where a running process was observed.
    pub command: Vec<String>,
    /// Kind of evidence of the run: modelled where there is a trace.
    pub known: EvidenceKind,
    /// Cost of the command on this machine, if it was run here too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
    /// Findings, those with the most predicted gain first.
    pub findings: Vec<Finding>,
    /// Why there is nothing to remedy, if so: one sentence.
    pub healthy: Option<String>,
    /// Waits of the command that no remedy explains, though something could save them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unexplained: Option<Unexplained>,
    /// Changes that their author can make and no remedy rehearses, one paragraph each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<String>,
    /// Facts for the reader, one sentence each.
    pub notes: Vec<String>,
}

/// Cost of a traced run's command on this machine, without the recorder; *measured*, but for the model's cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Measured {
    /// Median CPU time of a run in nanoseconds.
    pub cpu_ns: u64,
    /// CPU time of the run that took least.
    pub least_ns: u64,
    /// CPU time of the run that took most.
    pub most_ns: u64,
    /// Number of runs.
    pub runs: u32,
    /// The CPU time is that of user mode alone, as the trace is.
    pub only_user: bool,
    /// Cycles of the median CPU time, at the clock of the machine that was modelled.
    pub cycles: u64,
    /// Cycles that the model gives the command.
    pub modelled_cycles: u64,
}

impl Measured {
    /// Modelled cycles by measured ones.
    pub fn ratio(&self) -> f64 {
        self.modelled_cycles as f64 / self.cycles.max(1) as f64
    }
}

/// Waits that none of the remedies explains.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Unexplained {
    /// The remedies that ran, as typed.
    #[serde(rename = "asked")]
    pub consulted: Vec<String>,
    /// Summary of the run: one sentence.
    pub why: String,
    /// The heaviest waits of the command, heaviest first.
    pub waits: Vec<Wait>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Name of the remedy, as typed.
    pub remedy: String,
    /// Kind of evidence of the symptom.
    pub known: EvidenceKind,
    /// Symptom, in one sentence with its numbers.
    pub symptom: String,
    /// Why it happens.
    pub cause: String,
    /// Evidence of the symptom.
    pub evidence: Evidence,
    /// Change, with its parameters, in one sentence.
    pub treatment: String,
    /// Reach of the remedy: from outside, or by the author alone.
    pub reach: Reach,
    /// Predicted gain.
    pub prediction: Prediction,
    /// Conditions under which it does not help.
    pub unless: Vec<String>,
    /// The argument vector of the command under the remedy; none where it cannot be applied from outside.
    pub apply: Option<Vec<String>>,
    /// The argument vector that measures whether it helps.
    pub verify: Option<Vec<String>>,
}

/// Kind of evidence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EvidenceKind {
    /// Counted exactly on the model of a machine.
    #[default]
    Modelled,
    /// Measured by a clock or a counter, or by the kernel's own events.
    Measured,
}

/// Place from which a remedy can be applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// nearmiss, on the program as it is.
    Outside,
    /// Only its author: why, and where to begin.
    Inside {
        /// Why not from outside.
        why: String,
        /// Change in the program.
        change: String,
    },
}

/// Evidence of a finding: as its remedy words it, and as figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// For people, in the order in which they are to be read.
    pub lines: Vec<EvidenceLine>,
    /// For machines, and for pages with room: the figures behind the lines.
    pub tables: Vec<Table>,
    /// Share of the command's cost that could be saved at the very most.
    pub most_gain: f64,
}

/// One or a few sentences under a label.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EvidenceLine {
    /// A word, such as `L1d` or `Calls`; empty where the label before goes on.
    pub label: String,
    /// Whole sentences.
    pub text: String,
}

impl EvidenceLine {
    /// Creates evidence: these sentences under this label.
    pub fn new(label: &str, text: String) -> Self {
        EvidenceLine { label: label.to_owned(), text }
    }
}

/// Range of the whole run's saving, as far as the sampled parts determine it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SavingRange {
    /// Least share of the run's cycles, with 95% confidence.
    pub low: f64,
    /// Most share of the run's cycles, with 95% confidence.
    pub high: f64,
    /// Largest share of the saving that one part makes.
    pub by_one_part: f64,
    /// Parts that save [`LEAST_GAIN`] of their own cycles.
    pub gaining_parts: usize,
}

/// Effect of a change; *predicted* by replaying the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prediction {
    /// Share saved.
    pub gain: f64,
    /// Least that the replays gave.
    pub low: f64,
    /// Most that the replays gave.
    pub high: f64,
    /// Range for the whole run, as far as the recorded parts determine it.
    #[serde(skip)]
    pub of_whole_run: Option<SavingRange>,
    /// Modelled cycles without the remedy, where it saves cycles; 0 in older records.
    #[serde(default, skip_serializing_if = "crate::schema::is_zero")]
    pub modelled_cycles: u64,
    /// Cycles that the gain is a share of, where the command was measured; else it is a share of the modelled ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_cycles: Option<u64>,
    /// Base of the share, as in `gain 5% of the cycles`.
    pub of: Base,
    /// Seeds of the page placements replayed; none where pages do not matter.
    pub placements: Vec<u64>,
    /// Share of a miss's latency that the machine is assumed to hide, where misses matter.
    pub overlap: Option<f64>,
    /// The function that gains most, where one is known.
    pub function: Option<FunctionGain>,
    /// Why the figures are not exact, one sentence each.
    pub approximate: Vec<String>,
    /// Moments of a longer run that the gain holds at, where the run was recorded at several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moments: Option<Moments>,
}

/// Moments of a run at which something was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Moments {
    /// Times from the start of the command, in nanoseconds, ascending.
    pub at_ns: Vec<u64>,
    /// Number of moments at which the run was recorded.
    pub of: u32,
    /// Share saved of the whole run, each moment standing for the stretches of it that ran the same functions.
    pub whole_gain: f64,
}

/// Base of a share that is saved. Records have its words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "String", into = "String")]
pub enum Base {
    /// The command's cycles.
    Cycles {
        /// By a counter or a clock, and not by the model.
        measured: bool,
        /// The share is an upper bound.
        at_most: bool,
    },
    /// A base that one remedy alone has, in its words.
    Other(String),
}

impl Base {
    /// The modelled cycles.
    pub const CYCLES: Base = Base::Cycles { measured: false, at_most: false };

    /// Returns the same base as measured, where it is one of cycles.
    pub fn measured(self) -> Self {
        match self {
            Base::Cycles { at_most, .. } => Base::Cycles { measured: true, at_most },
            other => other,
        }
    }

    /// A base in words of its own.
    pub fn other(words: &str) -> Self {
        Base::Other(words.to_owned())
    }
}

impl Default for Base {
    fn default() -> Self {
        Base::CYCLES
    }
}

const CYCLES: [(&str, bool, bool); 4] = [
    ("the cycles", false, false),
    ("the cycles at most", false, true),
    ("the measured cycles", true, false),
    ("the measured cycles at most", true, true),
];

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = CYCLES
            .iter()
            .find(|(_, measured, at_most)| *self == Base::Cycles { measured: *measured, at_most: *at_most });
        f.write_str(match (self, words) {
            (Base::Other(words), _) => words,
            (Base::Cycles { .. }, words) => words.map_or("the cycles", |(words, ..)| words),
        })
    }
}

impl From<String> for Base {
    fn from(text: String) -> Self {
        let known = CYCLES.iter().find(|(words, ..)| *words == text);
        known.map_or(Base::Other(text), |&(_, measured, at_most)| Base::Cycles { measured, at_most })
    }
}

impl From<Base> for String {
    fn from(base: Base) -> Self {
        base.to_string()
    }
}

/// Gain of one function.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionGain {
    /// Name of the function.
    pub name: String,
    /// Share of the function's cycles saved: median over the placements.
    pub gain: f64,
    /// Cycles without the remedy.
    pub cycles_before: u64,
    /// Cycles with the remedy.
    pub cycles_after: u64,
    /// Share of the function's cycles saved if none of a miss's latency were hidden: a walk in which each address
    /// depends on the one before.
    pub dependent_gain: f64,
}
