//! The record of `nearmiss trace --counts`: lookups and misses of each cache, without their reasons.
//!
//! All figures are *modelled*, and of one CPU.

use crate::machine::Machine;
use crate::model::{ByClass, LevelTally};
use crate::run::Filter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `nearmiss/counts/1`.
pub const SCHEMA: &str = "nearmiss/counts/1";

crate::schema::is_record!(CountsRecord);

/// References, or those of them that missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ByKind {
    /// Data loads; an atomic counts here.
    pub loads: u64,
    /// Data stores.
    pub stores: u64,
    /// Instructions; in outer caches, fetches of a line.
    pub fetches: u64,
}

/// Counts of one cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CacheCounts {
    /// `L1d`, `L1i`, `L2`, `L3`.
    pub name: String,
    /// 1 is nearest.
    pub level: u8,
    /// References that looked it up: in the first level all, in others those that missed the level before.
    pub references: ByKind,
    /// References of these that missed.
    pub misses: ByKind,
    /// Lines brought in.
    pub fills: u64,
    /// Modified lines that it gave up.
    pub dirty_evictions: u64,
}

/// The whole record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CountsRecord {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of nearmiss.
    pub nearmiss: String,
    /// The command with its arguments.
    pub command: Vec<String>,
    /// Exit status of the command, if it exited.
    pub exit_status: Option<i32>,
    /// Signal that ended it, if one did.
    pub signal: Option<i32>,
    /// Why the counts end before the command did, if so.
    pub cut: Option<String>,
    /// The machine modelled, as cut down to one CPU.
    pub machine: Machine,
    /// Only the command's own user-mode references.
    pub only_user: bool,
    /// The filter that the records came through.
    pub filter: Filter,
    /// Records modelled.
    pub records: u64,
    /// Wall time of the window in nanoseconds, *measured*.
    pub window_ns: u64,
    /// Instructions executed.
    pub instructions: u64,
    /// Counts by cache, nearest level first, data before instruction.
    pub caches: Vec<CacheCounts>,
    /// Facts for the reader, one sentence each.
    pub notes: Vec<String>,
}

impl From<&LevelTally> for ByKind {
    /// Misses of a level, their classes added up.
    fn from(level: &LevelTally) -> Self {
        let sum = |classes: &ByClass| classes.iter().sum();
        ByKind { loads: sum(&level.load_misses), stores: sum(&level.store_misses), fetches: sum(&level.fetch_misses) }
    }
}
