//! The tables beside a trace's stream: instructions and calling contexts.

use bytemuck::{Pod, Zeroable};

/// `struct nm_insn`: a translated instruction that references or fetches can be charged to.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Insn {
    /// Virtual address.
    pub vaddr: u64,
    /// Physical address of its first byte, or `u64::MAX`.
    pub paddr: u64,
    /// `INSN_*`.
    pub flags: u32,
    /// Instructions that one execution adds to the count: from here to the end of the line or block; 0 if this
    /// instruction is not the first of its line.
    pub run: u32,
    /// `task_struct` that ran when it was translated.
    pub task: u64,
    /// Executions (counted where `run` is not 0).
    pub executions: u64,
    /// Loads the filter dropped.
    pub load_hits: u64,
    /// Stores the filter dropped.
    pub store_hits: u64,
    /// Second halves of straddling references the filter dropped.
    pub cont_hits: u64,
}

/// Kernel code.
pub const INSN_KERNEL: u32 = 1;
/// A call.
pub const INSN_CALL: u32 = 2;
/// A return.
pub const INSN_RET: u32 = 4;
/// A locked read-modify-write.
pub const INSN_ATOMIC: u32 = 8;
/// A non-temporal store.
pub const INSN_NT: u32 = 16;
/// A prefetch.
pub const INSN_PREFETCH: u32 = 32;
/// A plain read-modify-write: the stores dropped of it are store halves.
pub const INSN_RMW: u32 = 64;

/// A node of the calling-context tree; node 0 is the root.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Context {
    /// Context id of the caller.
    pub parent: u32,
    /// Instruction id of the call.
    pub call: u32,
}

/// `struct nm_ctx`: a calling context as the tap keeps it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct PlacedContext {
    /// Node of the calling-context tree.
    pub context: Context,
    /// Address at which the context's call stored the return address, the first time.
    pub slot: u64,
}

/// Everything beside the stream that a model or a report needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SideTables {
    /// Instructions by id.
    pub insns: Vec<Insn>,
    /// Contexts by id.
    pub contexts: Vec<Context>,
    /// Prefetch instructions executed.
    pub prefetches: u64,
    /// Device accesses.
    pub io_accesses: u64,
    /// Times that a line became shared: references of it that the filter dropped until then were not sent.
    pub lost_before_share: u64,
    /// Accesses of the heap shim, left out.
    pub skipped: u64,
}
