//! Record of a cell that has ended: a line of the journal.

use nearmiss_verify::{CPU, Sample, WALL};
use nearmiss_workload::{Finished, Status};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Figures that every cell has: times as the kernel measured them, the children's included.
pub(crate) const TIMES: [&str; 4] = [WALL, CPU, "user_s", "system_s"];

/// How a cell ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// The cell's command succeeded, and all figures are there.
    Done,
    /// The cell's command succeeded, and a figure is missing: those that are there count.
    Incomplete,
    /// The cell's command failed.
    Failed,
    /// The cell's time was over, and the cell was killed.
    TimedOut,
}

/// A cell that has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ended {
    /// Identifier of the cell, which is also the name of its directory.
    pub cell: String,
    /// Name of the cell's case.
    pub case: String,
    /// Name of the cell's workload.
    pub workload: String,
    /// The level of each axis that the workload takes.
    pub levels: BTreeMap<String, String>,
    /// Number of the repetition, counted from 1.
    pub repetition: u32,
    /// How the cell ended.
    pub how: Ending,
    /// The command's exit status; none: a signal ended it.
    pub exit: Option<u8>,
    /// The signal that ended the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// The fault, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Seconds that the cell took, with all that was done around its command.
    pub took_s: f64,
    /// The measured figures, by name.
    pub figures: Sample,
    /// Figures that are words.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub words: BTreeMap<String, String>,
}

impl Ended {
    /// Returns whether the cell's figures count, as far as they are there.
    pub fn counts(&self) -> bool {
        matches!(self.how, Ending::Done | Ending::Incomplete)
    }

    /// A figure, if it counts.
    pub fn figure(&self, metric: &str) -> Option<f64> {
        self.figures.get(metric).copied().filter(|_| self.counts())
    }
}

/// The times of a command, as figures.
pub(crate) fn times(finished: &Finished) -> Sample {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let values =
        [finished.wall_ns, finished.user_ns + finished.system_ns, finished.user_ns, finished.system_ns].map(seconds);
    TIMES.map(str::to_owned).into_iter().zip(values).collect()
}

/// The exit status and the signal.
pub(crate) fn ending(status: Status) -> (Option<u8>, Option<i32>) {
    match status {
        Status::Exited(code) => (Some(code), None),
        Status::Signaled(signal) => (None, Some(signal)),
    }
}
