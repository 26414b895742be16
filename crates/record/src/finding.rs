//! `findings.json`: what is wrong with a run, what would remedy it, and what that would gain.
//!
//! Symptoms and evidence are *modelled*, gains are *predicted*; nothing here is measured.

use serde::{Deserialize, Serialize};

/// `nearmiss/findings/1`.
pub const SCHEMA: &str = "nearmiss/findings/1";

crate::run::is_record!(Findings);

/// A gain below this share is not shown unless asked for.
pub const LEAST_GAIN: f64 = 0.02;

/// All findings of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// [`SCHEMA`].
    pub schema: String,
    /// The machine that the run was modelled on.
    pub machine: String,
    /// The command.
    pub command: Vec<String>,
    /// Those worth showing come first: most predicted gain first.
    pub findings: Vec<Finding>,
    /// Why there is nothing to remedy, if so: one sentence.
    pub healthy: Option<String>,
    /// Facts a reader must know, one sentence each.
    pub notes: Vec<String>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Name of the remedy, as typed.
    pub remedy: String,
    /// What happens, in one sentence with its numbers; *modelled*.
    pub symptom: String,
    /// Why it happens.
    pub cause: String,
    /// What it is seen by; *modelled*.
    pub evidence: Evidence,
    /// What to change, with its parameters, in one sentence.
    pub treatment: String,
    /// Who can do it.
    pub reach: Reach,
    /// What it would gain.
    pub prediction: Prediction,
    /// What would have to be true for it not to help.
    pub unless: Vec<String>,
    /// The command line under the remedy; none where it cannot be applied from outside.
    pub apply: Option<String>,
    /// The command line that measures whether it helps.
    pub verify: Option<String>,
}

/// Who can apply a remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// nearmiss, on the program as it is.
    Outside,
    /// Only its author: why, and where to begin.
    Inside {
        /// Why not from outside.
        why: String,
        /// What to change in the program.
        change: String,
    },
}

/// What a finding is seen by.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// The objects, most misses first.
    pub objects: Vec<ObjectEvidence>,
    /// The levels at which they are in each other's way, nearest first; none where loads wait for stores instead.
    pub levels: Vec<LevelEvidence>,
    /// Functions that miss, with their misses, most first.
    pub functions: Vec<(String, u64)>,
    /// Share of the command's modelled cycles that wait for these misses: no remedy can gain more.
    pub cycles_share: f64,
}

/// Objects of one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ObjectEvidence {
    /// As in the report.
    pub name: String,
    /// Allocating call stack, outermost first, where there is one.
    pub allocated_at: Vec<String>,
    /// How many.
    pub count: u64,
    /// Bytes of one, where they are alike.
    pub size_bytes: Option<u64>,
    /// Their share of the misses of the heaviest level, or of the loads that wait.
    pub miss_share: f64,
}

/// What happens at one level.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LevelEvidence {
    /// `L1d`, `L2`, `L3`.
    pub cache: String,
    /// Sets that the objects press on at a time.
    pub sets: u64,
    /// Sets of the cache.
    pub of_sets: u64,
    /// Ways.
    pub ways: u32,
    /// Lines that compete for one set.
    pub lines_a_set: f64,
    /// Conflict misses of the objects on these sets.
    pub conflict_misses: u64,
    /// Their share of the level's misses.
    pub miss_share: f64,
    /// Whether the remedy can help at this level, and why or why not.
    pub verdict: String,
    /// The same as yes or no.
    pub helps: bool,
}

/// What a change would do; *predicted* by replaying the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Share of the command's cycles saved: median over the placements.
    pub gain: f64,
    /// Least over the placements.
    pub low: f64,
    /// Most over the placements.
    pub high: f64,
    /// Seeds of the page placements replayed.
    pub placements: Vec<u64>,
    /// Share of a miss's latency that the machine is assumed to hide.
    pub overlap: f64,
    /// The function that gains most, where one is known.
    pub function: Option<FunctionGain>,
    /// Why the figures are not exact, one sentence each.
    pub approximate: Vec<String>,
}

/// What one function gains.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FunctionGain {
    /// Its name.
    pub name: String,
    /// Share of its cycles saved: median over the placements.
    pub gain: f64,
    /// Cycles without the remedy.
    pub cycles_before: u64,
    /// Cycles with it.
    pub cycles_after: u64,
    /// Share of its cycles saved if none of a miss's latency were hidden: a walk in which each address depends on the
    /// one before.
    pub dependent_gain: f64,
}
