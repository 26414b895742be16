//! The command's misses by cache set.

use crate::observer::Outcome;
use nearmiss_record::machine::Machine;
use nearmiss_record::model::{MissClass, SetMap};
use nearmiss_record::reference::{Kind, Record};

/// Misses by set of one level's data or unified cache.
#[derive(Clone, Debug, Default)]
struct Sets {
    misses: Vec<u64>,
    conflicts: Vec<u64>,
}

/// Sets by level, nearest first.
#[derive(Clone, Debug)]
pub(super) struct Pressure(Vec<Sets>);

impl Pressure {
    pub fn new(levels: usize) -> Self {
        Pressure(vec![Sets::default(); levels])
    }

    /// `record` missed, or caused traffic.
    #[inline]
    pub fn count(&mut self, record: Record, outcome: &Outcome) {
        // The first level has a cache of its own for instructions, which has no map.
        let nearest = usize::from(record.kind() == Some(Kind::Fetch));
        for level in nearest..self.0.len() {
            let Some(class) = outcome.missed[level] else { continue };
            let (sets, set) = (&mut self.0[level], outcome.set[level] as usize);
            if set >= sets.misses.len() {
                sets.misses.resize(set + 1, 0);
                sets.conflicts.resize(set + 1, 0);
            }
            sets.misses[set] += 1;
            sets.conflicts[set] += u64::from(class == MissClass::Conflict);
        }
    }

    /// The model's maps, with the command's misses instead of all.
    pub fn of_command(mut self, mut maps: Vec<SetMap>, machine: &Machine) -> Vec<SetMap> {
        for (level, sets) in self.0.iter_mut().enumerate() {
            let name = machine.data_cache(level + 1).map(|cache| cache.name());
            let Some(map) = maps.iter_mut().find(|map| name.as_ref() == Some(&map.cache)) else { continue };
            let count = map.misses.len();
            sets.misses.resize(count, 0);
            sets.conflicts.resize(count, 0);
            (map.misses, map.conflict_misses) = (std::mem::take(&mut sets.misses), std::mem::take(&mut sets.conflicts));
        }
        maps
    }
}
