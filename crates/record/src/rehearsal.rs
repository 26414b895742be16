//! `rehearsals.json`: what a run would have cost under a remedy; *predicted* by replaying it.

use serde::{Deserialize, Serialize};

/// `nearmiss/rehearsals/1`.
pub const SCHEMA: &str = "nearmiss/rehearsals/1";

crate::run::is_record!(Rehearsals);

/// One remedy rehearsed on one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rehearsals {
    /// [`SCHEMA`].
    pub schema: String,
    /// The machine.
    pub machine: String,
    /// Each subject of the remedy with its table.
    pub tables: Vec<Rehearsal>,
    /// Facts a reader must know, one sentence each.
    pub notes: Vec<String>,
}

/// One table: the same objects under parameters that grow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rehearsal {
    /// Name of the remedy, as typed.
    pub remedy: String,
    /// What is changed, in a few words.
    pub subject: String,
    /// Names of the cache levels, nearest first.
    pub levels: Vec<String>,
    /// Seeds of the page placements replayed.
    pub placements: Vec<u64>,
    /// Share of a miss's latency that the machine is assumed to hide.
    pub overlap: f64,
    /// Exact, or why not.
    pub exactness: String,
    /// The first is the run as it was.
    pub rows: Vec<RehearsalRow>,
}

/// One parameter. Medians over the placements.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RehearsalRow {
    /// Colors, or whatever the remedy counts; the first row's is 1.
    pub parameter: u64,
    /// Data misses by level, nearest first.
    pub misses: Vec<u64>,
    /// Bus transactions on the changed objects.
    pub transactions_on_objects: u64,
    /// All other bus transactions.
    pub transactions_elsewhere: u64,
    /// Cycles of the command.
    pub cycles: u64,
    /// Least over the placements.
    pub cycles_low: u64,
    /// Most over the placements.
    pub cycles_high: u64,
    /// Bytes of memory that the change costs.
    pub memory_bytes: u64,
}
