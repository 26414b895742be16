//! Counts of a replay.

use nearmiss_record::model::{BusTally, ByClass, LevelTally, SetMap, Tally, Translation};
use nearmiss_record::policy::CallSite;

/// Everything the model counted. Equal input gives equal totals, order of rows included.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelTotals {
    /// Tallies by guest CPU. `cycles` = instructions × cycles an instruction (rounded down) + `stall_cycles`.
    pub cpus: Vec<Tally>,
    /// Totals by cache instance, nearest level first, data before instruction, then by instance.
    pub caches: Vec<CacheTotals>,
    /// Bus transactions by memory node of the line that moved.
    pub nodes: Vec<BusTally>,
    /// Pressure on the sets of each data or unified cache, instances added up.
    pub sets: Vec<SetMap>,
    /// Lines with the most coherence misses, most first; at most [`SHARED_LINES`].
    pub shared_lines: Vec<SharedLine>,
    /// Pollution blame: every pair, most misses first.
    pub pollution: Vec<Pollution>,
    /// Address translation of data, if the machine's cores describe it.
    pub translation: Option<Translation>,
    /// Records replayed: references and fetches, not control records.
    pub records: u64,
}

impl ModelTotals {
    /// All CPUs together.
    pub fn sum(&self) -> Tally {
        let mut sum = Tally::default();
        self.cpus.iter().for_each(|cpu| sum += cpu);
        sum
    }
}

/// Most rows of [`ModelTotals::shared_lines`].
pub const SHARED_LINES: usize = 256;

/// Counts of one instance of a cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheTotals {
    /// `L1d`, `L1i`, `L2`, `L3`.
    pub name: String,
    /// 1 is nearest.
    pub level: u8,
    /// Number among its kind.
    pub instance: u32,
    /// Guest CPUs that use the cache.
    pub cpus: Vec<u32>,
    /// Line accesses: each looks up one line.
    pub accesses: u64,
    /// Lookups that found the line.
    pub hits: u64,
    /// Lines brought in.
    pub fills: u64,
    /// Modified lines that the cache gave up.
    pub dirty_evictions: u64,
    /// Lookups that missed, second halves of straddling references that missed with their first included.
    pub line_misses: ByClass,
    /// References that missed.
    pub references: LevelTally,
}

/// A line that moved between CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedLine {
    /// Recorded physical address of the first-level line.
    pub line_paddr: u64,
    /// References that missed on bytes others had written.
    pub true_sharing: u64,
    /// References that missed on bytes others had not written.
    pub false_sharing: u64,
}

/// Misses on lines that were evicted by a line that was never reused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pollution {
    /// `L1d`, `L1i`, `L2`, `L3`.
    pub cache: String,
    /// Call site that had brought in the line that evicted.
    pub polluter: CallSite,
    /// Call site that then missed.
    pub victim: CallSite,
    /// Number of misses.
    pub misses: u64,
}
