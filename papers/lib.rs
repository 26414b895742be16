//! The papers that nearmiss grew from: their tables and figures, and ours beside them.
//!
//! A paper is a folder: executable replicas of the data structures that it changed, run on the machine model; its
//! figures with page and table; a README with method and assumptions. Everything is deterministic: the same figures on
//! every machine, with any number of threads.

pub mod coloring;
pub mod parallel;
pub mod record;
pub mod text;

use record::{Here, PaperRecord};

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
    /// No such table.
    #[error("table {name}: there is none of this name; there are: {there}")]
    NoTable {
        /// As asked.
        name: String,
        /// Those that are.
        there: String,
    },
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
    /// Names of its tables.
    pub tables: &'static [&'static str],
    /// The same on this machine.
    pub here: Here,
    run: Run,
}

/// Which tables are wanted, and who hears how many of how many simulations are done.
type Run = fn(&dyn Fn(&str) -> bool, &(dyn Fn(usize, usize) + Sync)) -> Result<PaperRecord, PaperError>;

impl Paper {
    /// Computes its figures: one table's, or all. `progress` hears how many of how many simulations are done.
    ///
    /// Errors: a table that it does not have; a model that refuses.
    pub fn run(
        &self,
        table: Option<&str>,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<PaperRecord, PaperError> {
        if let Some(name) = table.filter(|t| !self.tables.contains(t)) {
            return Err(PaperError::NoTable { name: name.to_owned(), there: self.tables.join(", ") });
        }
        (self.run)(&|name| table.is_none_or(|t| t == name), progress)
    }
}

/// All papers that can be run.
pub const PAPERS: &[Paper] = &[Paper {
    name: "coloring",
    title: coloring::TITLE,
    what: "misses of the run-queue walk, colors against processes, lock contention and throughput over CPUs",
    tables: &["a", "b", "c"],
    here: coloring::HERE,
    run: coloring::run,
}];

/// The paper of this name.
pub fn paper(name: &str) -> Option<&'static Paper> {
    PAPERS.iter().find(|p| p.name == name)
}
