//! Stores whose lines push one another out before they are stored to.
//!
//! A core asks for the lines of the stores in its buffer ahead. Where more of them share a set than the set has ways, a line
//! that came is gone again when its store's turn is there, so that such stores go one by one.

use super::{Ticks, ticks};
use nearmiss_record::machine::{Core, Machine};

/// The latest stores that missed, by set of the first level.
#[derive(Clone, Debug, Default)]
pub(super) struct CrowdedStores {
    ways: usize,
    line_shift: u32,
    set_mask: u64,
    /// Stores so many instructions apart are in the buffer together.
    together: u64,
    takes: Ticks,
    /// By set: instructions at the latest stores, as many as there are ways, oldest first from `next` on.
    latest: Vec<u64>,
    next: Vec<u32>,
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
        }
    }

    /// What a store that missed takes behind the store before it, at least.
    pub fn takes(&mut self, vaddr: u64, instructions: u64) -> Ticks {
        let set = (vaddr >> self.line_shift & self.set_mask) as usize;
        let Some(next) = self.next.get_mut(set) else { return 0 };
        let oldest = &mut self.latest[set * self.ways + *next as usize];
        *next = (*next + 1) % self.ways as u32;
        // No store has happened before the first instruction.
        let crowded = *oldest > 0 && instructions - (*oldest).min(instructions) <= self.together;
        *oldest = instructions.max(1);
        if crowded { self.takes } else { 0 }
    }
}
