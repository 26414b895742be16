//! Data of a cache for each of its frames and sets.

/// Contents of a frame: half a line of this machine's cache, so that one miss brings it all.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(crate) struct Frame {
    /// Address of the frame's line.
    pub address: u64,
    /// History of the frame's line, or `NONE`: empty.
    pub line: u32,
    /// Number of the page of the frame's line.
    pub page: u32,
    /// Instruction that brought the line in.
    pub insn: u32,
    /// History of the line that the frame's line displaced, or `NONE`.
    pub displaced: u32,
    /// Instruction that missed on the displaced line since, or `NONE`.
    pub blamed: u32,
}

/// Final counts of a set.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(32))]
pub(crate) struct SetCounts {
    pub misses: u64,
    pub conflicts: u64,
    pub lines: u64,
}

/// State of a set that every reference reads; apart from its counts, which hits leave alone.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SetState {
    /// Word of the replacement.
    pub order: u64,
    /// Frames in use.
    pub used: u32,
    /// Frame of the latest reference.
    pub recent: u32,
}
