//! The cache levels of the modelled machine, as the report names and weighs them.

use nearmiss_record::machine::Index;
use nearmiss_record::model::{LevelTally, MissClass, ModelRecord, Tally};
use nearmiss_record::units::Bytes;
use nearmiss_record::waits::penalty_cycles;

/// Name of a miss class for people.
pub fn class_name(class: MissClass) -> &'static str {
    match class {
        MissClass::Compulsory => "compulsory",
        MissClass::TrueSharing => "true sharing",
        MissClass::FalseSharing => "false sharing",
        MissClass::InclusionVictim => "inclusion victim",
        MissClass::Conflict => "conflict",
        MissClass::Capacity => "capacity",
    }
}

/// Names a class in at most eight columns.
pub fn class_short(class: MissClass) -> &'static str {
    match class {
        MissClass::Compulsory => "compul.",
        MissClass::TrueSharing => "true sh",
        MissClass::FalseSharing => "false sh",
        MissClass::InclusionVictim => "inclus.",
        MissClass::Conflict => "conflict",
        MissClass::Capacity => "capacity",
    }
}

/// One level of the modelled machine.
#[derive(Clone, Debug)]
pub struct Level {
    /// `L1`, `L2`, …
    pub name: String,
    /// Index into [`Tally::levels`].
    pub index: usize,
    /// Capacity of one data or unified cache of this level.
    pub size: Option<Bytes>,
    /// Ways of one data or unified cache of this level.
    pub ways: Option<u32>,
    /// Index that picks the set.
    pub index_by: Index,
    /// Cycles that a miss here costs over a hit, when the next level has the line.
    pub penalty_cycles: u64,
}

/// The levels of a run's machine, nearest first: as many as the totals have.
pub fn levels(model: &ModelRecord) -> Vec<Level> {
    (0..model.totals.levels.len())
        .map(|index| {
            let cache = model.machine.data_cache(index + 1);
            Level {
                name: format!("L{}", index + 1),
                index,
                size: cache.map(|c| c.size),
                ways: cache.map(|c| c.ways),
                index_by: cache.map(|c| c.index).unwrap_or_default(),
                penalty_cycles: penalty_cycles(&model.machine, index, model.totals.levels.len()),
            }
        })
        .collect()
}

/// The tally of one level; empty when the row has none.
pub fn level(tally: &Tally, index: usize) -> LevelTally {
    tally.levels.get(index).copied().unwrap_or_default()
}

/// All misses of one level.
pub fn misses(tally: &Tally, index: usize) -> u64 {
    level(tally, index).misses()
}

/// Data references.
pub fn references(tally: &Tally) -> u64 {
    tally.loads.saturating_add(tally.stores)
}

/// The level and class in which the misses of a row weigh most, if it has any.
pub fn dominant(tally: &Tally, levels: &[Level]) -> Option<(usize, MissClass)> {
    levels
        .iter()
        .flat_map(|l| {
            MissClass::ALL
                .map(|class| (level(tally, l.index).class(class).saturating_mul(l.penalty_cycles), l.index, class))
        })
        .filter(|(weight, ..)| *weight > 0)
        .max_by_key(|(weight, index, class)| (*weight, *index, std::cmp::Reverse(*class)))
        .map(|(_, index, class)| (index, class))
}
