use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// Why a remedy cannot engage in a command, known before the command has run.
///
/// A wrapper reports it with exit status 125: a remedy that silently does nothing is worse
/// than none.
#[derive(Debug, thiserror::Error)]
pub enum CannotEngage {
    /// The command itself cannot be launched.
    #[error(transparent)]
    Launch(#[from] nearmiss_workload::Error),
    /// A property of the program forbids the remedy.
    #[error("cannot engage in {}, because {why}", .program.display())]
    Program {
        /// The file that would be executed.
        program: PathBuf,
        /// Property that forbids the remedy, and the way out.
        why: String,
    },
    /// The parameters make no sense.
    #[error("{0}")]
    Parameters(String),
    /// The preparations failed.
    #[error("cannot {what}: {source}")]
    System {
        /// The step, as a verb and its object.
        what: &'static str,
        /// Error of the system.
        source: std::io::Error,
    },
}

impl CannotEngage {
    /// Error of a call of the system.
    pub fn system(what: &'static str, source: impl Into<std::io::Error>) -> Self {
        CannotEngage::System { what, source: source.into() }
    }

    /// The exit status of a wrapper that reports the error: 125, but 126 and 127 for a command that
    /// cannot be executed or found.
    pub fn exit_code(&self) -> u8 {
        match self {
            CannotEngage::Launch(error) => error.exit_code(),
            _ => 125,
        }
    }
}

/// The command ran, but the remedy was not in place: the run is invalid.
#[derive(Debug, thiserror::Error)]
#[error("the remedy did not engage in process {pid}: {why}")]
pub struct NotEngaged {
    /// The launched process.
    pub pid: i32,
    /// The missing part.
    pub why: String,
}

/// A remedy in place around a command, which may be launched many times under it.
///
/// Life of an engagement: `apply` has changed the workload (environment, affinity, memory policy) before; then, for
/// each launch, [`started`](Engagement::started) and [`confirm`](Engagement::confirm); at last
/// [`end`](Engagement::end). An engagement that is dropped must undo as much as `end` does. A guardian undoes the rest
/// when nearmiss is killed: files by [`GuardedFiles`](nearmiss_workload::GuardedFiles), from before the first is
/// written; settings by [`Workload::restore_if_killed`](nearmiss_workload::Workload::restore_if_killed). A helper
/// process is a `Workload` of its own, which ends with its launcher.
pub trait Engagement {
    /// The command was launched as process `pid`, and has not run an instruction of its own yet: a daemon may begin.
    fn started(&mut self, pid: i32) -> Result<(), CannotEngage> {
        let _ = pid;
        Ok(())
    }

    /// Returns the remedy's acts since the last call, or why the process `pid`, which has ended, ran without it.
    fn confirm(&mut self, pid: i32) -> Result<Engaged, NotEngaged>;

    /// Takes back all that applying the remedy left on the machine; no launch follows. Errors: what could not be taken
    /// back, and how to do it by hand.
    fn end(self: Box<Self>) -> Result<(), CannotEngage> {
        Ok(())
    }
}

/// How often a remedy acted on a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acts {
    /// Number of acts; 0: the command gave the remedy nothing to act on.
    Counted(u64),
    /// The remedy acts on all of the command, or cannot count.
    Uncounted,
}

/// Acts of a remedy on a command.
#[derive(Clone, Debug, PartialEq)]
pub struct Engaged {
    /// One or a few lines for people.
    pub text: String,
    /// Number of acts of the remedy; `verify` stops at once where there was nothing to act on.
    pub acts: Acts,
    /// Record for machines: an object with a schema.
    pub record: serde_json::Value,
}

impl Engaged {
    /// The acts in a remedy's own report.
    pub fn reported(report: &(impl fmt::Display + Serialize), acts: Acts) -> Self {
        // A report is plain numbers and names: it cannot fail.
        Engaged { text: report.to_string(), acts, record: serde_json::to_value(report).unwrap_or_default() }
    }
}
