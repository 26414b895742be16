//! How a run ends: exit codes, and errors in one line.

use crate::engine::CannotRun;
use std::fmt::Display;
use std::process::ExitCode;

/// Result of a run that took place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The rate was held and every answer was right.
    Good,
    /// Fewer answers came than were requested, and those that came are right.
    MissedRate,
    /// Some answers are wrong or broken; or the rate was held, and some answers never came.
    Faults,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The user's input cannot be meant.
    #[error("{0}")]
    Input(String),
    /// The run could not take place.
    #[error("{0}")]
    Run(String),
}

impl From<CannotRun> for Problem {
    fn from(error: CannotRun) -> Problem {
        Problem::Run(error.to_string())
    }
}

/// Prints text on standard output.
pub fn print(text: impl Display) -> Result<(), Problem> {
    nearmiss_usage::print(text).map_err(|error| Problem::Run(format!("standard output: not written: {error}")))
}

/// The exit code of a run: 0 good, 1 no run, 2 bad input, 3 missed rate, 4 faults.
pub fn code(done: &Result<Outcome, Problem>) -> ExitCode {
    ExitCode::from(match done {
        Ok(Outcome::Good) => 0,
        Err(Problem::Run(_)) => 1,
        Err(Problem::Input(_)) => 2,
        Ok(Outcome::MissedRate) => 3,
        Ok(Outcome::Faults) => 4,
    })
}
