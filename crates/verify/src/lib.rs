//! Is one of two sides better: a command with a remedy (B) than without (A), or one command than
//! another? Measured by interleaved runs, and judged so that the error rate stands.
//!
//! - Runs come in pairs AB or BA, each as a coin of its own falls, from a printed seed: what drifts or bursts favours
//!   neither side, and the pairs are independent.
//! - The quantity is the ratio B/A of each pair; the figure given is their middle (Hodges and Lehmann), with an
//!   interval from signed ranks. Under no difference the coin alone makes the error rate stand, with any noise.
//! - Wall time decides, or the CPU time where only that separates the sides and the wall time's interval has room for
//!   the same change: on a machine with other work the CPU time is several times as steady. Each has half of the error.
//! - Results are looked at after numbers of pairs that were fixed before the first of them, and each look spends a
//!   part of the 2% error allowed in all (Lan and DeMets' spending, the parts added up), so stopping early costs no
//!   honesty. The other metrics' intervals pay for the looks alike.
//! - A verdict of *no difference* states the difference that would have been seen; if that is larger than the requested
//!   resolution, the verdict is *too noisy* instead.
//! - A remedy that did nothing in the first runs under it ends the comparison: *nothing to act on*. The cost of the
//!   remedy's start is measured apart, and a loss that is no larger is not called one.
//!
//! - A server is started for each run, put [under a load](UnderLoad) and charged with its CPU time meanwhile. The rates
//!   that the load offered and got stand beside the verdict; a rate that was missed makes it void.
//!
//! [`compare`] drives any source of samples; [`Commands`] is the one that runs commands. The verdict is a record
//! ([`nearmiss_record::verdict`]); `nearmiss-report` puts it into words.

mod commands;
mod compare;
mod interval;
mod loads;
mod looks;
mod metric;
mod order;
mod pairs;
mod probe;
mod rates;
mod recordings;
mod side_command;
mod start;
mod under_load;

pub use commands::Commands;
pub use compare::{LEAST_PAIRS, Plan, Source, compare};
pub use loads::{Offered, Reading};
pub use metric::{Metric, Printed};
pub use nearmiss_record::verdict::{Better, Comparison, Outcome, Rates, Sample, SideRate, Stopped, Summary, Verdict};
pub use order::Side;
pub use pairs::{of_pairs, summary};
pub use probe::Probe;
pub use recordings::{RECORDINGS, compare_recordings};
pub use side_command::SideCommand;
pub use under_load::{CPU_PER_WORK, UnderLoad};

/// The wall time of a run, from its start to its end.
pub const WALL: &str = "wall_s";
/// The time that a run spent on CPUs, its children's included.
pub const CPU: &str = "cpu_s";

/// Why a comparison could not be finished.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A command could not be launched.
    #[error(transparent)]
    Launch(#[from] nearmiss_workload::Error),
    /// A run ended in failure, so its figures mean nothing.
    #[error("run {run} ({side}) {how}; its output is {output}")]
    RunFailed {
        /// Which run, counted from 1.
        run: usize,
        /// Name of its side.
        side: String,
        /// How it ended.
        how: String,
        /// Path of its output.
        output: String,
    },
    /// A server could not be put under its load.
    #[error("run {run} ({side}): {how}; the output is in {output}")]
    NotServed {
        /// Which run, counted from 1.
        run: usize,
        /// Name of its side.
        side: String,
        /// The failure.
        how: String,
        /// Path of the failed command's output.
        output: String,
    },
    /// The remedy was not in place in a run that should have had it.
    #[error("run {run}: {source}")]
    NotEngaged {
        /// Which run, counted from 1.
        run: usize,
        /// The missing part.
        source: nearmiss_analysis::NotEngaged,
    },
    /// The remedy could not begin beside a run, or could not be taken back.
    #[error(transparent)]
    Engagement(#[from] nearmiss_analysis::CannotEngage),
    /// The metric could not be read from a run.
    #[error("run {run} ({side}): {why}; the output is in {output}")]
    NoMetric {
        /// Which run, counted from 1.
        run: usize,
        /// Name of its side.
        side: String,
        /// The missing part.
        why: String,
        /// Path of the output.
        output: String,
    },
    /// The output of a run could not be kept or read.
    #[error("{}: {source}", .path.display())]
    Output {
        /// The file.
        path: std::path::PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// A request to stop ended the runs.
    #[error("interrupted after {runs} {}: no verdict", if *runs == 1 { "run" } else { "runs" })]
    Interrupted {
        /// Runs that ended.
        runs: usize,
    },
    /// Parameters that make no sense.
    #[error("{0}")]
    Parameters(String),
}

impl Error {
    /// Whether the error names output of the runs for the user to read.
    pub fn names_output(&self) -> bool {
        matches!(self, Error::RunFailed { .. } | Error::NotServed { .. } | Error::NoMetric { .. })
    }
}
