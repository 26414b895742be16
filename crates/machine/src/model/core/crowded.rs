//! Lines of the first level that push one another out of their set, and the cost of that.
//!
//! A core requests the lines of the stores in its buffer ahead, and its loads run ahead of its stores. If more of their
//! lines share a set than the set has ways, a line that came is gone again at its store's turn, so that such stores go
//! one by one. That holds for stores that hit a line which a load brought, too: the model handles a load and a store in
//! the order of the program, where the store hits. A load's line takes time as well, for its set takes one line after
//! another.
//!
//! Two things reduce the cost. With few lines that go round, some are requested again while they are on their way, or
//! before they are pushed out: from `ways` to some times as many lines the cost grows evenly. And sets work side by
//! side: only the latest fills of the same set hold one up. Both were measured on a Zen 5
//! (`experiments/cycles/crowded-lines.txt`).
//!
//! A store behind a load of its line takes more than either: the line that the load pushes out is modified and must be
//! written back before the fill, and when the store's turn comes its own line must be brought once more.

use super::{Ticks, ticks};
use nearmiss_record::machine::{Core, Machine};

/// Fills that still hold one another up if they are of one set.
const SIDE_BY_SIDE: usize = 16;
/// Lines of a set that go round, in ways, from which on none comes for nothing; beyond the first ways.
const STORED: u64 = 3;
const LOADED: f64 = 4.3;
/// Lines with a known latest miss; a line that shares its entry with a later one counts as one that was never there.
const REMEMBERED: usize = 1 << 12;

/// A line's latest miss.
#[derive(Clone, Copy, Debug)]
struct Missed {
    line: u64,
    /// Misses of its set up to then.
    count: u32,
    /// Lines that missed in its set since the one before.
    competing: u32,
}

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
    load_takes: Ticks,
    /// Instructions at the latest misses by set, as many as there are ways, oldest first from `next` on.
    latest: Vec<u64>,
    next: Vec<u32>,
    /// Line that a store waited for last, by set; it is there for the stores behind it.
    stored: Vec<u64>,
    /// Misses by set.
    counts: Vec<u32>,
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
            load_takes,
            latest: vec![0; (sets * ways) as usize],
            next: vec![0; sets as usize],
            stored: vec![u64::MAX; sets as usize],
            counts: vec![0; sets as usize],
            missed: vec![Missed { line: u64::MAX, count: 0, competing: 0 }; REMEMBERED],
            fills: [0; SIDE_BY_SIDE],
            filled: 0,
        }
    }

    /// A line comes into its set.
    pub fn filled(&mut self, vaddr: u64) {
        let (set, line) = (self.set(vaddr), self.line(vaddr));
        let Some(count) = self.counts.get_mut(set) else { return };
        *count = count.wrapping_add(1);
        let before = &mut self.missed[slot(line)];
        let competing = if before.line == line { count.wrapping_sub(before.count) } else { u32::MAX };
        *before = Missed { line, count: *count, competing };
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
        if !self.crowd(vaddr, instructions) {
            return 0;
        }
        let set = self.set(vaddr);
        self.stored[set] = self.line(vaddr);
        let takes = if loaded { self.addition_takes } else { self.store_takes };
        self.share(vaddr, (STORED * self.ways as u64) as f64, takes)
    }

    /// Returns the core's time for the line that a load has just brought.
    pub fn load_takes(&self, vaddr: u64) -> Ticks {
        if self.load_takes == 0 { 0 } else { self.share(vaddr, LOADED * self.ways as f64, self.load_takes) }
    }

    /// Returns the part of `ticks` left for the lines that compete with this one, and the sets that work beside its
    /// own.
    fn share(&self, vaddr: u64, all_come: f64, ticks: Ticks) -> Ticks {
        let (set, line) = (self.set(vaddr), self.line(vaddr));
        let Some(known) = self.missed.get(slot(line)) else { return 0 };
        let competing = if known.line == line { known.competing } else { u32::MAX };
        let beyond = f64::from(competing) - self.ways as f64;
        let recent = &self.fills[..self.filled.min(SIDE_BY_SIDE)];
        let same = recent.iter().filter(|fill| **fill == set as u32).count();
        let share = (beyond / all_come).clamp(0.0, 1.0) * same as f64 / recent.len().max(1) as f64;
        (ticks as f64 * share).round() as Ticks
    }

    fn line(&self, vaddr: u64) -> u64 {
        vaddr >> self.line_shift
    }

    fn set(&self, vaddr: u64) -> usize {
        (self.line(vaddr) & self.set_mask) as usize
    }
}

/// Returns the slot of a line by Fibonacci hashing (Knuth, TAOCP 6.4): lines of equal spacing spread.
fn slot(line: u64) -> usize {
    (line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - REMEMBERED.ilog2())) as usize
}
