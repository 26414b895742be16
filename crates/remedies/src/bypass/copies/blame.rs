//! Blame of copies: misses of others on lines that their lines evicted and that they never used again.

use super::way::{CopyWay, Ways};
use nearmiss_analysis::Traced;
use nearmiss_machine::model::Pollution;
use nearmiss_record::machine::Machine;
use nearmiss_record::model::{FunctionRow, Tally};
use nearmiss_record::policy::CallSite;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Misses by what they were misses of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Blame(BTreeMap<Kind, u64>);

/// A cache, the function with the line that pushed one out there, and the function that missed that one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    cache: String,
    polluter: u32,
    victim: u32,
}

impl Kind {
    fn level(&self) -> usize {
        self.cache.chars().find_map(|digit| digit.to_digit(10)).unwrap_or(1) as usize
    }
}

impl Blame {
    /// Adds so many misses in a cache, between two functions.
    pub fn add(&mut self, cache: &str, (polluter, victim): (u32, u32), misses: u64) {
        *self.0.entry(Kind { cache: cache.to_owned(), polluter, victim }).or_default() += misses;
    }

    /// Misses of all functions, by cache.
    pub fn by_cache(&self) -> impl Iterator<Item = (String, u64)> {
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        for (kind, misses) in &self.0 {
            *sums.entry(kind.cache.clone()).or_default() += misses;
        }
        sums.into_iter()
    }

    /// Misses of all caches.
    pub fn misses(&self) -> u64 {
        self.0.values().sum()
    }
}

impl<'a> Extend<&'a Blame> for Blame {
    fn extend<T: IntoIterator<Item = &'a Blame>>(&mut self, others: T) {
        for (kind, misses) in others.into_iter().flat_map(|other| &other.0) {
            *self.0.entry(kind.clone()).or_default() += misses;
        }
    }
}

/// Returns the blame of each way. Its loads count too: it is unknown here which of its instructions load.
pub(super) fn blame(ways: &Ways<'_>, pollution: &[Pollution]) -> FxHashMap<CopyWay, Blame> {
    let mut blamed: FxHashMap<CopyWay, Blame> = FxHashMap::default();
    let mut of_site: FxHashMap<CallSite, CopyWay> = FxHashMap::default();
    let mut way = |site: CallSite| *of_site.entry(site).or_insert_with(|| ways.of(site));
    for pair in pollution {
        let (polluter, victim) = (way(pair.polluter), way(pair.victim));
        if polluter != victim {
            let functions = (ways.function(pair.polluter.insn), ways.function(pair.victim.insn));
            blamed.entry(polluter).or_default().add(&pair.cache, functions, pair.misses);
        }
    }
    blamed
}

/// Most that stores past the caches could save the command. Each miss costs as much as the next level takes. A store
/// that missed pushed out one line at most, and what loads push out is pushed out all the same. A function saves no
/// more than it waits in all, since a core hides many of its misses.
pub(super) struct Costs<'a> {
    machine: &'a Machine,
    ways: Ways<'a>,
    /// Tallies by the function's file and name, which several functions may have.
    functions: FxHashMap<(&'a str, &'a str), Tally>,
}

impl<'a> Costs<'a> {
    pub fn of(case: &'a Traced, ways: Ways<'a>) -> Self {
        Self::by_function(case.machine(), ways, &case.model.functions)
    }

    fn by_function(machine: &'a Machine, ways: Ways<'a>, functions: &'a [FunctionRow]) -> Self {
        let mut sums: FxHashMap<_, Tally> = FxHashMap::default();
        for row in functions {
            *sums.entry((row.module.as_str(), row.name.as_str())).or_default() += &row.tally;
        }
        Costs { machine, ways, functions: sums }
    }

    /// Cycles of all that is blamed.
    pub fn most(&self, blame: &Blame) -> u64 {
        let mut by_victim: BTreeMap<u32, f64> = BTreeMap::new();
        for (kind, misses) in &blame.0 {
            let misses = (*misses).min(self.store_misses(kind.polluter, kind.level()));
            *by_victim.entry(kind.victim).or_default() += misses as f64 * self.of_one(kind.level());
        }
        let waits = |victim: u32| self.function(victim).map_or(0.0, |tally| tally.stall_cycles as f64);
        by_victim.into_iter().map(|(victim, cycles)| cycles.min(waits(victim))).sum::<f64>() as u64
    }

    fn function(&self, function: u32) -> Option<&Tally> {
        self.functions.get(&(self.ways.module(function), self.ways.name(function)))
    }

    fn store_misses(&self, function: u32, level: usize) -> u64 {
        let level = self.function(function).and_then(|tally| tally.levels.get(level.saturating_sub(1)));
        level.map_or(0, |level| level.store_misses.iter().sum())
    }

    fn of_one(&self, level: usize) -> f64 {
        let latency = &self.machine.latency;
        let next = latency.level_cycles.get(level).copied().unwrap_or(latency.memory_local_cycles);
        f64::from(next) * self.machine.shown_share()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearmiss_machine::describe::preset_or_file;
    use nearmiss_record::model::LevelTally;
    use nearmiss_record::symbols::{Function, Symbols};

    /// Two functions: one stores, the other waits.
    fn most(store_misses: u64, waits: u64, blamed: u64) -> u64 {
        let function = |name: &str| Function { name: name.into(), ..Function::default() };
        let symbols = Symbols {
            modules: vec!["/usr/bin/p".into()],
            functions: vec![function(""), function("copy"), function("walk")],
            ..Symbols::default()
        };
        let ways = Ways { symbols: &symbols, contexts: &[] };
        let row =
            |name: &str, tally| FunctionRow { name: name.into(), module: "/usr/bin/p".into(), kernel: false, tally };
        let stores = LevelTally { store_misses: [store_misses, 0, 0, 0, 0, 0], ..LevelTally::default() };
        // Two functions have each name, as static ones of two files may.
        let rows = [
            row("copy", Tally { levels: vec![stores], ..Tally::default() }),
            row("copy", Tally { levels: vec![LevelTally::default()], ..Tally::default() }),
            row("walk", Tally { stall_cycles: waits, ..Tally::default() }),
            row("walk", Tally::default()),
        ];
        let mut machine = preset_or_file("zen3-milan").unwrap_or_else(|why| panic!("{why}"));
        (machine.core, machine.overlap) = (None, 0.0);
        machine.latency.level_cycles[1] = 10;
        let mut blame = Blame::default();
        blame.add("L1d", (1, 2), blamed);
        Costs::by_function(&machine, ways, &rows).most(&blame)
    }

    #[test]
    fn a_cost_is_bound_by_misses_by_stores_and_by_waits() {
        assert_eq!(most(1000, 100_000, 50), 500);
        assert_eq!(most(20, 100_000, 50), 200);
        assert_eq!(most(1000, 300, 50), 300);
        assert_eq!(most(0, 100_000, 50), 0, "what loads push out");
    }
}
