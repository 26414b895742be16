//! What a cache keeps of each of its frames and sets.

/// What a frame holds besides its tag: half a line of this machine's cache, so that one miss brings it all.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(crate) struct Frame {
    /// Its line's history.
    pub line: u32,
    /// Number of its line's page.
    pub page: u32,
    /// Instruction that brought the line in.
    pub insn: u32,
    /// History of the line it displaced, or `NONE`.
    pub displaced: u32,
    /// Instruction that missed on the displaced line since, or `NONE`.
    pub blamed: u32,
    /// Its line's node in the shadow, if the shadow still holds it there.
    pub node: u32,
    pub flags: u8,
}

/// What is told of a set, side by side.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(32))]
pub(crate) struct SetCounts {
    pub misses: u64,
    pub conflicts: u64,
    pub lines: u64,
    /// Frames in use.
    pub used: u16,
    /// Way of the latest reference.
    pub recent: u16,
}
