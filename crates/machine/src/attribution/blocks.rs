//! A cache of heap blocks by line: most misses fall on blocks that missed before.

use super::spaces::Block;
use crate::hashing;

const ENTRIES: usize = 1 << 13;
const LINE_LOG2: u32 = 6;
/// Blocks of more lines are not taken out line by line.
const MAX_LINES: u64 = 64;

#[derive(Clone, Copy, Debug)]
struct Entry {
    epoch: u64,
    pid: u32,
    start: u64,
    block: Block,
}

/// Live blocks that were looked up lately.
#[derive(Debug)]
pub(super) struct BlockCache {
    entries: Vec<Option<Entry>>,
    /// Entries of an older one do not count.
    epoch: u64,
}

impl Default for BlockCache {
    fn default() -> Self {
        BlockCache { entries: vec![None; ENTRIES], epoch: 0 }
    }
}

fn slot(pid: u32, line: u64) -> usize {
    hashing::place(line ^ u64::from(pid) << 32, ENTRIES.ilog2())
}

impl BlockCache {
    #[inline]
    pub fn get(&self, pid: u32, address: u64) -> Option<(u64, Block)> {
        let entry = self.entries[slot(pid, address >> LINE_LOG2)].as_ref()?;
        let holds = address >= entry.start && address - entry.start < entry.block.bytes;
        (holds && entry.pid == pid && entry.epoch == self.epoch).then_some((entry.start, entry.block))
    }

    pub fn put(&mut self, pid: u32, address: u64, start: u64, block: Block) {
        self.entries[slot(pid, address >> LINE_LOG2)] = Some(Entry { epoch: self.epoch, pid, start, block });
    }

    /// Drops the lines of `start..start + bytes` of process `pid`, as their contents change.
    pub fn forget(&mut self, pid: u32, start: u64, bytes: u64) {
        let (first, last) = (start >> LINE_LOG2, start.saturating_add(bytes) >> LINE_LOG2);
        if last - first >= MAX_LINES {
            return self.forget_all();
        }
        (first..=last).for_each(|line| self.entries[slot(pid, line)] = None);
    }

    pub fn forget_all(&mut self) {
        self.epoch += 1;
    }
}
