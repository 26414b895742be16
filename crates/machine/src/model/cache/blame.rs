//! Blame for misses: pairs of instructions, counted many at a time.

use crate::model::quick_map::QuickMap;

/// Pairs that wait.
const WAITING: usize = 1024;

/// Misses by instruction on a line that a line of another, never reused, had displaced.
pub(crate) struct Blames {
    counts: QuickMap<u64, u64>,
    /// Not yet in `counts`: counted together, their visits to the map overlap.
    waiting: Vec<u64>,
}

impl Blames {
    pub fn new() -> Self {
        Blames { counts: QuickMap::default(), waiting: Vec::with_capacity(WAITING) }
    }

    #[inline]
    pub fn add(&mut self, polluter: u32, victim: u32) {
        self.waiting.push(u64::from(polluter) << 32 | u64::from(victim));
        if self.waiting.len() == WAITING {
            self.count();
        }
    }

    /// Counts those that wait.
    #[cold]
    pub fn count(&mut self) {
        for pair in self.waiting.drain(..) {
            *self.counts.entry(pair).or_insert(0) += 1;
        }
    }

    /// Polluter, victim and number of each pair; none may wait any more.
    pub fn counted(&self) -> impl Iterator<Item = (u32, u32, u64)> {
        self.counts.iter().map(|(&pair, &misses)| ((pair >> 32) as u32, pair as u32, misses))
    }
}
