//! Lines of page tables in the caches: what a walk takes beyond one that finds its entries near.
//!
//! Entries of neighbouring pages share a line. Such a line is fetched by walks alone, so it goes out when others have
//! come in: after as many fills of a level as the level has lines, it has left that level. A machine's walk is measured
//! with entries in the second level, which therefore costs nothing more here. A line that no walk needed before was
//! written by the kernel, in a page fault that the recording may not have, and lies in the outermost cache.

use super::translation::TlbLevel;
use super::{Ticks, ticks};
use nearmiss_record::machine::Machine;
use nearmiss_record::model::MAX_LEVELS;
use rustc_hash::FxHashMap;

/// Bytes of an entry; entries of this size fill a line.
const ENTRY_BYTES: u64 = 8;

/// log₂ of the entries of a table.
const TABLE_LOG2: u32 = 9;
/// Tables that a core holds the way to. Walks to 64 tables take longer than to 32 in a virtual machine of an Emerald
/// Rapids (`experiments/huge/tables.txt`), where the pages of 16 have 16 more in the hypervisor's tables. Pages that lie
/// side by side have as many there as here, and walks to 32 tables of them take longer than to 16 (measured by hand).
const TABLES: u32 = 16;

/// A walk's way to its entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Way {
    /// Wait beyond a walk with its entry in the second level, and its table at hand.
    pub wait: Ticks,
    /// The table was not walked to for long.
    pub is_far: bool,
}

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
    /// Tables of small pages that were walked to last, where walks to others take longer.
    tables: Option<TlbLevel>,
    /// Ticks of such a walk beyond others.
    far: Ticks,
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
        let second = machine.tlb.and_then(|tlb| tlb.second).filter(|second| second.far_walk_cycles > 0);
        PageTable {
            tables: second.map(|_| TlbLevel::new(TABLES, 0)),
            far: second.map_or(0, |second| ticks(second.far_walk_cycles.saturating_sub(second.walk_cycles).into())),
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

    /// Returns the way of a walk to this entry, of a small page or a large one.
    pub fn walk(&mut self, entry: u64, is_large: bool) -> Way {
        let table = entry >> TABLE_LOG2;
        let is_far = !is_large && self.tables.as_mut().is_some_and(|tables| !tables.access(table, table));
        Way { wait: self.line(entry) + if is_far { self.far } else { 0 }, is_far }
    }

    /// Returns the ticks that a walk to this entry waits for the entry's line, beyond one in the second level.
    fn line(&mut self, entry: u64) -> Ticks {
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
