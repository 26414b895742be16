//! Stores whose lines push one another out before they are stored to.
//!
//! A core asks for the lines of the stores in its buffer ahead, and its loads run ahead of its stores. Where more of their
//! lines share a set than the set has ways, a line that came is gone again when its store's turn is there, so that such
//! stores go one by one. That holds for stores that hit a line which a load brought, too: the model meets a load and a store
//! in the order of the program, where the store hits.

use super::{Ticks, ticks};
use nearmiss_record::machine::{Core, Machine};

/// The latest misses, by set of the first level.
#[derive(Clone, Debug, Default)]
pub(super) struct CrowdedStores {
    ways: usize,
    line_shift: u32,
    set_mask: u64,
    /// Stores so many instructions apart are in the buffer together.
    together: u64,
    takes: Ticks,
    /// By set: instructions at the latest misses, as many as there are ways, oldest first from `next` on.
    latest: Vec<u64>,
    next: Vec<u32>,
    /// By set: the line that a store waited for last, which is there for the stores behind it.
    stored: Vec<u64>,
}

impl CrowdedStores {
    pub fn new(machine: &Machine, core: &Core, together: u64) -> Self {
        let Some(cache) = machine.data_cache(1).filter(|_| core.crowded_store_cycles > 0) else {
            return CrowdedStores::default();
        };
        let (ways, line) = (u64::from(cache.ways).max(1), cache.line.0.max(1));
        let sets = (cache.size.0 / line / ways).max(1);
        CrowdedStores {
            ways: ways as usize,
            line_shift: line.ilog2(),
            set_mask: sets.next_power_of_two() - 1,
            together,
            takes: ticks(core.crowded_store_cycles.into()),
            latest: vec![0; (sets.next_power_of_two() * ways) as usize],
            next: vec![0; sets.next_power_of_two() as usize],
            stored: vec![u64::MAX; sets.next_power_of_two() as usize],
        }
    }

    /// A store, or a load that ran ahead of stores, missed.
    pub fn missed(&mut self, vaddr: u64, instructions: u64) {
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
        let Some(next) = self.next.get(set) else { return false };
        let oldest = self.latest[set * self.ways + *next as usize];
        oldest > 0 && instructions - oldest.min(instructions) <= self.together && self.stored[set] != self.line(vaddr)
    }

    /// What a store takes behind the store before it, at least.
    pub fn takes(&mut self, vaddr: u64, instructions: u64) -> Ticks {
        if !self.crowd(vaddr, instructions) {
            return 0;
        }
        let set = self.set(vaddr);
        self.stored[set] = self.line(vaddr);
        self.takes
    }

    fn line(&self, vaddr: u64) -> u64 {
        vaddr >> self.line_shift
    }

    fn set(&self, vaddr: u64) -> usize {
        (self.line(vaddr) & self.set_mask) as usize
    }
}
