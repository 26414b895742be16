//! The papers that nearmiss grew from: their tables and figures, and ours beside them.
//!
//! A paper is a folder: its figures with page and table; a README with method and assumptions; and what gives ours.
//! `coloring` has executable replicas of the data structures that it changed, run on the machine model: the same figures
//! on every machine, with any number of threads, and so has `pairing`. `pacing` measures programs of ours on the machine at
//! hand. `pollution` has both. `numa` has replicas, and servers recorded in guests.

pub mod coloring;
pub mod numa;
pub mod pacing;
pub mod pairing;
pub mod parallel;
pub mod pieces;
pub mod pollution;
pub mod random;
pub mod record;
pub mod text;

use nearmiss_machine::describe::preset;
use nearmiss_record::machine::Machine;
use pacing::plan::Scale;
use record::{Here, PaperRecord};
use std::path::{Path, PathBuf};

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
        /// Requested name.
        name: String,
        /// Names of the tables that are there.
        there: String,
    },
    /// A program of ours is not beside `nearmiss`.
    #[error("{path}: not there; build it in a clone of nearmiss: cargo build --release -p {package}", path = .path.display())]
    NoProgram {
        /// Path where it was looked for.
        path: PathBuf,
        /// Package of the program.
        package: String,
    },
    /// A program could not be run.
    #[error(transparent)]
    Workload(#[from] nearmiss_workload::Error),
    /// A program ended without the figures that it was run for.
    #[error("no figures: {0}")]
    NoFigures(String),
    /// Files or addresses for the programs.
    #[error("no place for what is measured: {0}")]
    Place(std::io::Error),
    /// A recorded run.
    #[error(transparent)]
    Run(#[from] nearmiss_record::run::RunError),
    /// Error of the trace.
    #[error(transparent)]
    Trace(#[from] nearmiss_record::trace::TraceError),
    /// No CPU can go on.
    #[error("the simulated server came to a stand: all its tasks sleep")]
    Stuck,
}

/// A paper that can be run.
#[derive(Clone, Copy)]
pub struct Paper {
    /// Name, as typed.
    pub name: &'static str,
    /// Title and year.
    pub title: &'static str,
    /// Output of `run`.
    pub what: &'static str,
    /// Names of its tables.
    pub tables: &'static [&'static str],
    /// The program for this machine, where the paper's figures are modelled.
    pub here: Option<Here>,
    /// Current work, for a progress line.
    pub doing: &'static str,
    run: fn(&PaperOptions<'_>) -> Result<PaperRecord, PaperError>,
}

/// Requested parts of a paper.
pub struct PaperOptions<'a> {
    /// Whether a table is requested.
    pub wanted: &'a dyn Fn(&str) -> bool,
    /// Takes how many of how many parts are done.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
    /// How much is measured, where something is.
    pub scale: Scale,
    /// The program `nearmiss`, beside which the others lie that measurements need.
    pub nearmiss: &'a Path,
}

impl Paper {
    /// Returns its figures: one table's, or all. `progress` takes how many of how many parts are done.
    ///
    /// Errors: a table that it does not have; a model that refuses; a program that cannot be run.
    pub fn run(
        &self,
        table: Option<&str>,
        scale: Scale,
        nearmiss: &Path,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<PaperRecord, PaperError> {
        if let Some(name) = table.filter(|t| !self.tables.contains(t)) {
            return Err(PaperError::NoTable { name: name.to_owned(), there: self.tables.join(", ") });
        }
        (self.run)(&PaperOptions { wanted: &|name| table.is_none_or(|t| t == name), progress, scale, nearmiss })
    }
}

/// All papers that can be run.
pub const PAPERS: &[Paper] = &[
    Paper {
        name: "coloring",
        title: coloring::TITLE,
        what: "misses of the run-queue walk, colors against processes, lock contention and throughput over CPUs",
        tables: &["a", "b", "c"],
        here: Some(coloring::HERE),
        doing: "simulating",
        run: |options| coloring::run(options.wanted, options.progress),
    },
    Paper {
        name: "pacing",
        title: pacing::TITLE,
        what: "response time and CPU of a web accelerator over the rate, without and with intervals (measured here)",
        tables: &["a", "b", "c"],
        here: None,
        doing: "measuring",
        run: pacing::run,
    },
    Paper {
        name: "numa",
        title: numa::TITLE,
        what: "the kernel's memory by node and CPU, bound processes, and servers recorded in guests of two nodes",
        tables: &["a", "b", "c", "d"],
        here: None,
        doing: "simulating and recording",
        run: numa::run,
    },
    Paper {
        name: "pollution",
        title: pollution::TITLE,
        what: "L3 misses of copies into the page cache, copies around the caches, and CPUs; pattern 9 measured here",
        tables: &["a", "b", "c"],
        here: None,
        doing: "measuring and simulating",
        run: pollution::run,
    },
    Paper {
        name: "pairing",
        title: pairing::TITLE,
        what: "run times, misses, placements and misjudged pairs of the product on hardware threads, four schedulers",
        tables: &["a", "b", "c", "d", "e"],
        here: None,
        doing: "simulating",
        run: pairing::run,
    },
];

/// A machine that comes with nearmiss.
pub fn machine(name: &str) -> Result<Machine, PaperError> {
    Ok(preset(name).ok_or_else(|| PaperError::NoMachine(name.to_owned()))?.machine()?)
}

/// The paper of this name.
pub fn paper(name: &str) -> Option<&'static Paper> {
    PAPERS.iter().find(|p| p.name == name)
}
