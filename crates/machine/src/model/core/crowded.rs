//! Lines of the first level that push one another out of their set, and the cost of that.
//!
//! A core requests the lines of the stores in its buffer ahead, and its loads run ahead of its stores. If more of their
//! lines share a set than the set has ways, a line that came is gone again at its store's turn, so that such stores go
//! one by one. That holds for stores that hit a line which a load brought, too: the model handles a load and a store in
//! the order of the program, where the store hits. A load's line takes time as well, for its set takes one line after
//! another.
//!
//! Two things reduce the cost. With few lines that go round, some are requested again while they are on their way, or
//! before they are pushed out: the cost grows evenly from `ways` lines on. And sets work side by side: the latest fills
//! of the same set hold one up, those of other sets as far as the machine file has it. Cores differ in both: with 24
//! lines, a store takes half of the most on a Zen 5 and all of it on an Emerald Rapids, with sixteen sets in turn nothing
//! and a half (`experiments/cycles/crowded-lines*.txt`). Lines that are only loaded count less than those that are
//! stored to: beside nine of them, stores to eight lines cost nothing, those to twelve half of the most.
//!
//! A store behind a load of its line takes more than either: the line that the load pushes out is modified and must be
//! written back before the fill, and when the store's turn comes its own line must be brought once more.

use super::{Ticks, ticks};
use crate::hashing;
use nearmiss_record::machine::{Core, Machine};

/// Fills that still hold one another up if they are of one set.
const SIDE_BY_SIDE: usize = 16;
/// Lines of a set that go round, in ways, from which on no load's line comes for nothing; beyond the first ways.
const LOADED: f64 = 4.3;
/// A line that is stored to counts as so many that are only loaded: two to five on an Emerald Rapids, by their numbers
/// (`experiments/cycles/crowded-lines-emerald-rapids.txt`).
const LOADED_FOR_ONE: u32 = 4;
/// Lines of a set, in ways, at which a store takes half of the most, where the machine file has no figure.
const HALF_OF_STORES: f64 = 2.5;
/// Lines with a known latest miss; a line that shares its entry with a later one counts as one that was never there.
const REMEMBERED: usize = 1 << 12;

/// A line's latest miss.
#[derive(Clone, Copy, Debug)]
struct Missed {
    line: u64,
    /// Misses of the line's set up to the line's latest one.
    count: Count,
    /// Misses of the set between the line's two latest ones, the latest included.
    competing: Count,
    /// A store to it has missed since, or found its set crowded.
    stored: bool,
}

/// Misses of a set.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    lines: u32,
    /// Of those, lines that are stored to count as `LOADED_FOR_ONE`.
    weighed: u32,
}

impl Count {
    /// As many as a line that was never there competes with.
    const ENDLESS: Count = Count { lines: u32::MAX, weighed: u32::MAX };

    fn add(&mut self, stored: bool) {
        self.lines = self.lines.wrapping_add(1);
        self.weighed = self.weighed.wrapping_add(if stored { LOADED_FOR_ONE } else { 1 });
    }

    fn since(self, before: Count) -> Count {
        Count { lines: self.lines.wrapping_sub(before.lines), weighed: self.weighed.wrapping_sub(before.weighed) }
    }
}

const NOTHING_MISSED: Missed =
    Missed { line: u64::MAX, count: Count { lines: 0, weighed: 0 }, competing: Count::ENDLESS, stored: false };

/// The latest misses, by set of the first level.
#[derive(Clone, Debug, Default)]
pub(super) struct Crowded {
    ways: usize,
    line_shift: u32,
    set_mask: u64,
    /// Stores so many instructions apart are in the buffer together.
    together: u64,
    store_takes: Ticks,
    /// Cost of a store behind a load of its line.
    addition_takes: Ticks,
    /// Cost of a store among those of other sets.
    beside_takes: Ticks,
    load_takes: Ticks,
    /// Lines take turns where they come from.
    supplied: bool,
    /// Lines beyond the ways from which on no store comes for nothing.
    all_stores_wait: f64,
    /// Instructions at the latest misses by set, as many as there are ways, oldest first from `next` on.
    latest: Vec<u64>,
    next: Vec<u32>,
    /// Line that a store waited for last, by set; it is there for the stores behind it.
    stored: Vec<u64>,
    /// Misses by set.
    counts: Vec<Count>,
    missed: Vec<Missed>,
    /// Sets of the latest fills, and how many there were.
    fills: [u32; SIDE_BY_SIDE],
    filled: usize,
}

impl Crowded {
    pub fn new(machine: &Machine, core: &Core, together: u64, load_takes: Ticks) -> Self {
        let Some(cache) = machine.data_cache(1) else { return Crowded::default() };
        let (ways, line) = (u64::from(cache.ways).max(1), cache.line.0.max(1));
        let sets = (cache.size.0 / line / ways).max(1).next_power_of_two();
        Crowded {
            ways: ways as usize,
            line_shift: line.ilog2(),
            set_mask: sets - 1,
            together,
            store_takes: ticks(core.crowded_store_cycles.into()),
            addition_takes: ticks(core.crowded_addition().into()),
            beside_takes: ticks(core.crowded_beside_cycles.unwrap_or(0).into()),
            load_takes,
            supplied: core.second_level.is_some(),
            all_stores_wait: all_stores_wait(core, ways as f64),
            latest: vec![0; (sets * ways) as usize],
            next: vec![0; sets as usize],
            stored: vec![u64::MAX; sets as usize],
            counts: vec![Count::default(); sets as usize],
            missed: vec![NOTHING_MISSED; REMEMBERED],
            fills: [0; SIDE_BY_SIDE],
            filled: 0,
        }
    }

    /// A line comes into its set.
    pub fn filled(&mut self, vaddr: u64) {
        let (set, line) = (self.set(vaddr), self.line(vaddr));
        let Some(count) = self.counts.get_mut(set) else { return };
        let before = &mut self.missed[slot(line)];
        let known = before.line == line;
        // What a new line is for is not known yet.
        count.add(!known || before.stored);
        let competing = if known { count.since(before.count) } else { Count::ENDLESS };
        *before = Missed { line, count: *count, competing, stored: false };
        self.fills[self.filled % SIDE_BY_SIDE] = set as u32;
        self.filled += 1;
    }

    /// A store, or a load that runs ahead of stores, pushes out a line.
    pub fn pushes_out(&mut self, vaddr: u64, instructions: u64) {
        let set = self.set(vaddr);
        let Some(next) = self.next.get_mut(set) else { return };
        // No miss has happened before the first instruction.
        self.latest[set * self.ways + *next as usize] = instructions.max(1);
        *next = (*next + 1) % self.ways as u32;
    }

    /// Whether a set's latest misses, as many as fit, are in the window together, and no store waited for this line.
    #[inline]
    pub fn crowd(&self, vaddr: u64, instructions: u64) -> bool {
        let set = self.set(vaddr);
        let Some(next) = self.next.get(set).filter(|_| self.store_takes > 0) else { return false };
        let oldest = self.latest[set * self.ways + *next as usize];
        oldest > 0 && instructions - oldest.min(instructions) <= self.together && self.stored[set] != self.line(vaddr)
    }

    /// Returns the least cost of a store behind the store before it. `loaded`: a load has brought its line.
    pub fn store_takes(&mut self, vaddr: u64, instructions: u64, loaded: bool) -> Ticks {
        let (set, line) = (self.set(vaddr), self.line(vaddr));
        if let Some(known) = self.missed.get_mut(slot(line)) {
            known.stored |= known.line == line;
        }
        if !self.crowd(vaddr, instructions) {
            return 0;
        }
        self.stored[set] = line;
        let competing = self.competing(line);
        let lines = f64::from(competing.weighed) / f64::from(LOADED_FOR_ONE);
        let takes = self.alone_or_beside(self.of_its_set(set), loaded);
        (takes * self.part_that_waits(lines, self.all_stores_wait)).round() as Ticks
    }

    /// Returns the cost of a store between that among those of its own set and that among those of other sets.
    fn alone_or_beside(&self, of_its_set: f64, loaded: bool) -> f64 {
        let alone = if loaded { self.addition_takes } else { self.store_takes };
        if loaded && self.supplied {
            // With sixteen sets in turn it takes no longer than its line does (`experiments/cycles/banks.txt`).
            return alone as f64 * of_its_set.sqrt();
        }
        let beside = self.beside_takes.min(alone);
        beside as f64 + (alone - beside) as f64 * of_its_set
    }

    /// Returns the share of a line's requests that the level behind gets: with few lines that go round, the others find
    /// their line on its way.
    pub fn requested(&self, vaddr: u64) -> f64 {
        match self.competing(self.line(vaddr)).lines {
            u32::MAX => 1.0,
            lines => {
                let sets = 1.0 / self.of_its_set(self.set(vaddr)).max(1.0 / SIDE_BY_SIDE as f64);
                self.part_that_waits(f64::from(lines) * sets, LOADED * self.ways as f64)
            }
        }
    }

    /// Returns the core's time for the line that a load has just brought.
    pub fn load_takes(&self, vaddr: u64) -> Ticks {
        if self.load_takes == 0 {
            return 0;
        }
        let lines = f64::from(self.competing(self.line(vaddr)).lines);
        let waits = self.part_that_waits(lines, LOADED * self.ways as f64);
        (self.load_takes as f64 * self.of_its_set(self.set(vaddr)) * waits).round() as Ticks
    }

    fn competing(&self, line: u64) -> Count {
        let known = self.missed.get(slot(line)).filter(|known| known.line == line);
        known.map_or(Count::ENDLESS, |known| known.competing)
    }

    /// Returns the part of the lines that wait, of so many that compete: from `all_wait` on beyond the ways, all do.
    fn part_that_waits(&self, lines: f64, all_wait: f64) -> f64 {
        ((lines - self.ways as f64) / all_wait).clamp(0.0, 1.0)
    }

    /// Share of the latest fills that are of this set.
    fn of_its_set(&self, set: usize) -> f64 {
        let recent = &self.fills[..self.filled.min(SIDE_BY_SIDE)];
        let same = recent.iter().filter(|fill| **fill == set as u32).count();
        same as f64 / recent.len().max(1) as f64
    }

    fn line(&self, vaddr: u64) -> u64 {
        vaddr >> self.line_shift
    }

    fn set(&self, vaddr: u64) -> usize {
        (self.line(vaddr) & self.set_mask) as usize
    }
}

/// Returns the lines of a set beyond its ways from which on no store comes for nothing: the cost rises evenly up to there.
fn all_stores_wait(core: &Core, ways: f64) -> f64 {
    let half = core.crowded_half_lines.map_or(HALF_OF_STORES * ways, f64::from);
    (2.0 * (half - ways)).max(1.0)
}

fn slot(line: u64) -> usize {
    hashing::place(line, REMEMBERED.ilog2())
}

#[cfg(test)]
mod tests {
    use super::super::tests::core;
    use super::*;
    use crate::describe::preset;

    /// A first level of eight ways; a store takes nine cycles at most.
    fn crowded(crowded_beside_cycles: Option<u32>, crowded_half_lines: Option<u32>) -> Crowded {
        let machine = preset("zen4-genoa").unwrap().machine().unwrap();
        let core = Core { crowded_beside_cycles, crowded_half_lines, ..core() };
        Crowded::new(&machine, &core, 10_000, 0)
    }

    /// Cycles of a store in the long run, to so many lines of each of so many sets in turn.
    fn each(crowded_beside_cycles: Option<u32>, crowded_half_lines: Option<u32>, lines: u64, sets: u64) -> f64 {
        const STORES: u64 = 1920;
        let mut crowded = crowded(crowded_beside_cycles, crowded_half_lines);
        let mut store = |n: u64| {
            let vaddr = 0x10_0000 + n / sets % lines * 4096 + n % sets * 64;
            crowded.filled(vaddr);
            let takes = crowded.store_takes(vaddr, n, false);
            crowded.pushes_out(vaddr, n);
            takes
        };
        (0..STORES).for_each(|n| _ = store(n));
        (0..STORES).map(|n| store(STORES + n)).sum::<Ticks>() as f64 / STORES as f64 / 65536.0
    }

    #[test]
    fn the_cost_rises_evenly_to_the_lines_of_the_machine_file() {
        assert_eq!([12, 20, 32, 64].map(|lines| each(None, Some(20), lines, 1)), [1.5, 4.5, 9.0, 9.0]);
        assert_eq!([9, 12].map(|lines| each(None, Some(8), lines, 1)), [9.0, 9.0], "at once");
        assert_eq!(each(None, None, 20, 1), 4.5, "two and a half times the ways");
    }

    #[test]
    fn lines_that_are_only_loaded_count_a_quarter() {
        // Cycles of a store in the long run, to so many lines of a set of eight ways; all wait from twelve on.
        let each = |stored: u64, loaded: u64| {
            let mut crowded = crowded(None, Some(10));
            let mut turn = |turn: u64| {
                (0..stored + loaded)
                    .map(|line| {
                        let (vaddr, n) = (0x10_0000 + line * 4096, turn * 100 + line);
                        crowded.filled(vaddr);
                        let takes = if line < stored { crowded.store_takes(vaddr, n, false) } else { 0 };
                        crowded.pushes_out(vaddr, n);
                        takes
                    })
                    .sum::<Ticks>()
            };
            (0..3).for_each(|n| _ = turn(n));
            turn(3) as f64 / stored as f64 / 65536.0
        };
        assert_eq!([each(9, 0), each(10, 0), each(12, 0)], [2.25, 4.5, 9.0]);
        assert_eq!([each(6, 6), each(6, 12), each(8, 8)], [0.0, 2.25, 4.5]);
    }

    #[test]
    fn sets_in_turn_share_the_cost_as_far_as_the_machine_file_has_it() {
        assert_eq!([1, 2, 16].map(|sets| each(Some(5), Some(8), 32, sets)), [9.0, 7.0, 5.25]);
        assert_eq!([1, 2, 16].map(|sets| each(None, Some(8), 32, sets)), [9.0, 4.5, 0.5625]);
        assert_eq!(each(Some(20), Some(8), 32, 16), 9.0, "never more than alone");
    }
}
