//! The papers that nearmiss grew from: their tables and figures, and ours beside them.
//!
//! A paper is a folder: executable replicas of the data structures that it changed, run on the machine model; its
//! figures with page and table; a README with method and assumptions. Everything is deterministic: the same figures on
//! every machine, with any number of threads.

pub mod coloring;
pub mod parallel;
pub mod plot;
pub mod record;
pub mod text;

use record::PaperRecord;

/// Why a paper's figures could not be computed.
#[derive(Debug, thiserror::Error)]
pub enum PaperError {
    /// The model refused.
    #[error("machine model: {0}")]
    Model(#[from] nearmiss_machine::model::ModelError),
    /// A machine file.
    #[error(transparent)]
    Machine(#[from] nearmiss_machine::describe::DescribeError),
    /// No such machine.
    #[error("machine {0}: not among those that come with nearmiss")]
    NoMachine(String),
    /// A number of colors that cannot be.
    #[error("{0} colors: a stack of 8 KB takes 1, 2, 4, … 128 colors of 32 bytes")]
    Colors(u32),
    /// No CPU can go on.
    #[error("the simulated server came to a stand: all its tasks sleep")]
    Stuck,
}

/// A paper that can be run.
#[derive(Clone, Copy)]
pub struct Paper {
    /// As typed.
    pub name: &'static str,
    /// Its title and year.
    pub title: &'static str,
    /// What `run` prints.
    pub what: &'static str,
    /// Computes its figures; tells how many of how many parts are done.
    pub run: fn(&(dyn Fn(usize, usize) + Sync)) -> Result<PaperRecord, PaperError>,
}

/// All papers that can be run.
pub const PAPERS: &[Paper] = &[Paper {
    name: "coloring",
    title: coloring::TITLE,
    what: "misses of the run-queue walk, colors against processes, lock contention and throughput over CPUs",
    run: coloring::run,
}];

/// The paper of this name.
pub fn paper(name: &str) -> Option<&'static Paper> {
    PAPERS.iter().find(|p| p.name == name)
}
