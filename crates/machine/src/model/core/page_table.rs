//! Lines of page tables in the caches: what a walk takes beyond one that finds its entries near.
//!
//! Entries of neighbouring pages share a line. Such a line is fetched by walks alone, so it goes out when others have
//! come in: after as many fills of a level as the level has lines, it has left that level. A machine's walk is measured
//! with entries in the second level, which therefore costs nothing more here. A line that no walk needed before was
//! written by the kernel, in a page fault that the recording may not have, and lies in the outermost cache.

use super::{Ticks, ticks};
use nearmiss_record::machine::Machine;
use nearmiss_record::model::MAX_LEVELS;
use rustc_hash::FxHashMap;

/// Bytes of an entry; entries of this size fill a line.
const ENTRY_BYTES: u64 = 8;

/// Lines that came into each level, from the second on.
type Fills = [u64; MAX_LEVELS];

/// Page-table lines of one core's walks.
#[derive(Clone, Debug)]
pub(super) struct PageTable {
    entries_log2: u32,
    /// Lines of each level from the second on.
    lines: Vec<u64>,
    /// Ticks beyond an entry in the second level, by level from the second on; memory comes last.
    beyond: Vec<Ticks>,
    fills: Fills,
    /// Fills at the latest walk that needed the line.
    latest: FxHashMap<u64, Fills>,
}

impl PageTable {
    pub fn new(machine: &Machine) -> Self {
        let caches: Vec<_> = (2..).map_while(|level| machine.data_cache(level)).collect();
        let latencies = machine.latency.level_cycles.iter().skip(1).take(caches.len());
        let latencies = latencies.chain([&machine.latency.memory_local_cycles]);
        let near = latencies.clone().next().copied().unwrap_or_default();
        let line_bytes = caches.first().map_or(64, |cache| cache.line.0.max(ENTRY_BYTES));
        PageTable {
            entries_log2: (line_bytes / ENTRY_BYTES).ilog2(),
            lines: caches.iter().map(|cache| cache.size.0 / cache.line.0.max(1)).collect(),
            beyond: latencies.map(|cycles| ticks(cycles.saturating_sub(near).into())).collect(),
            fills: Fills::default(),
            latest: FxHashMap::default(),
        }
    }

    /// A reference of the core missed these levels, a bit each.
    #[inline]
    pub fn fills(&mut self, missed: u8) {
        for (level, fills) in self.fills.iter_mut().enumerate() {
            *fills += u64::from(missed >> (level + 1) & 1);
        }
    }

    /// Returns the ticks that a walk to this entry waits for the entry's line, beyond one in the second level.
    pub fn walk(&mut self, entry: u64) -> Ticks {
        let line = entry >> self.entries_log2;
        let outermost = self.lines.len().saturating_sub(1);
        let latest = self.latest.get(&line);
        let found = latest.map_or(outermost, |then| {
            let has = |level: &usize| self.fills[*level] - then[*level] < self.lines[*level];
            (0..self.lines.len()).find(has).unwrap_or(self.lines.len())
        });
        self.fills[..found].iter_mut().for_each(|fills| *fills += 1);
        self.latest.insert(line, self.fills);
        self.beyond.get(found).copied().unwrap_or_default()
    }
}

#[cfg(test)]
#[path = "page_table_tests.rs"]
mod tests;
