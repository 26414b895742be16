//! The shared memory between plugin and consumer: `native/include/nearmiss_tap.h`, mirrored.

use crate::symbols::CLEARING;
use bytemuck::{Pod, Zeroable};
use std::mem::offset_of;

/// `NM_ABI_MAGIC`: "NMSTAP01".
pub const MAGIC: u64 = 0x3130_5041_5453_4d4e;
/// `NM_ABI_VERSION`.
pub const VERSION: u32 = 10;
/// Most vCPUs a guest may have.
pub const MAX_VCPUS: usize = 64;
/// Most memory nodes a guest may have.
pub const MAX_NODES: usize = 8;
/// `NM_ALLOCATORS`.
pub const ALLOCATORS: usize = 8;
/// `NM_FROM_BEGIN`: the window is the whole command.
pub const FROM_BEGIN: u32 = 0;
/// `NM_FROM_MARK`: a mark of the program opens the window.
pub const FROM_MARK: u32 = 1;
/// `NM_FROM_CONSUMER`: the consumer opens the window.
pub const FROM_CONSUMER: u32 = 2;
/// `NM_FROM_SYMBOL`: the first execution of a function opens the window.
pub const FROM_SYMBOL: u32 = 3;
/// `NM_FROM_NEAR_MARK`: a mark opens the window soon, and until then the guest runs as in a pause.
pub const FROM_NEAR_MARK: u32 = 4;
/// A mark's record has the program's number plus this.
pub const FIRST_MARK: u64 = 16;
/// `NM_CHUNK_LAST`.
pub const CHUNK_LAST: u32 = 1;

/// `struct nm_chunk`: the head of a chunk of records.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct ChunkHeader {
    /// Recorded order of all chunks: 0, 1, 2, …
    pub seq: u64,
    /// Slice of its vCPU that this chunk belongs to; changes when another vCPU ran.
    pub slice: u64,
    /// vCPU that made these records.
    pub vcpu: u32,
    /// Records that follow, payload included.
    pub records: u32,
    /// Instructions this vCPU executed up to the end of this chunk, since the window opened.
    pub instructions: u64,
    /// Calling context at the chunk's start.
    pub context: u32,
    /// `CHUNK_*`.
    pub flags: u32,
    /// `task_struct` at the chunk's start.
    pub task: u64,
    /// Zero.
    pub reserved: [u64; 2],
}

/// `struct nm_control`: the first page of the shared memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Zeroable, Pod)]
pub struct ControlPage {
    /// [`MAGIC`].
    pub magic: u64,
    /// [`VERSION`].
    pub version: u32,
    /// vCPUs of the guest.
    pub vcpus: u32,
    /// Bytes of a chunk, header included.
    pub chunk_bytes: u32,
    /// Chunks in the ring.
    pub chunk_count: u32,
    /// Entries the instruction table can hold.
    pub insn_capacity: u32,
    /// Entries the context table can hold.
    pub ctx_capacity: u32,
    /// Offset of the ring in the file.
    pub chunks_offset: u64,
    /// Offset of the instruction table.
    pub insns_offset: u64,
    /// Offset of the context table.
    pub ctxs_offset: u64,
    /// log₂ of the filter's line size.
    pub filter_line_log2: u32,
    /// Lowest address bit of the filter's index.
    pub filter_index_low: u32,
    /// Bits of the filter's index; 0: the one-line filter.
    pub filter_index_bits: u32,
    /// 1: user mode only.
    pub only_user: u32,
    /// 1: a vCPU's filter is cleared when another vCPU ran in between.
    pub clear_on_slice: u32,
    /// 1: keep calling contexts.
    pub call_contexts: u32,
    /// 1: record instruction fetches.
    pub fetches: u32,
    /// Memory nodes.
    pub nodes: u32,
    /// Bytes of each node.
    pub node_bytes: [u64; MAX_NODES],
    /// 1 when the kernel facts below are valid.
    pub facts_ready: u32,
    /// Offsets in `task_struct`.
    pub task_pid_offset: u32,
    /// Offset of `tgid`.
    pub task_tgid_offset: u32,
    /// Offset of `comm`.
    pub task_comm_offset: u32,
    /// Offset of `mm`.
    pub task_mm_offset: u32,
    /// Zero.
    pub reserved0: u32,
    /// Virtual address of physical 0 in the kernel's direct map.
    pub direct_map_base: u64,
    /// Place of each CPU's current task.
    pub current_task_paddr: [u64; MAX_VCPUS],
    /// Entry point of the timer interrupt.
    pub timer_entry_vaddr: u64,
    /// Entry points of the other interrupts.
    pub irq_text_start: u64,
    /// End of the above.
    pub irq_text_end: u64,
    /// Physical address of each CPU's perf `data_head`, 0: none.
    pub perf_head_paddr: [u64; MAX_VCPUS],
    /// Bytes of a perf ring's data area.
    pub perf_ring_bytes: u64,
    /// Offset in the file of each ring's page list (`u64` physical addresses).
    pub perf_pages_offset: [u64; MAX_VCPUS],
    /// Event that opens the window inside the command: one of `FROM_*`.
    pub from_kind: u32,
    /// Closes the window, as a mark's record numbers it; 0: none does.
    pub until_mark: u32,
    /// [`FROM_MARK`], [`FROM_NEAR_MARK`]: the mark, as its record numbers it. [`FROM_SYMBOL`]: the symbol's virtual address, 0: unknown yet.
    pub from_value: u64,
    /// Closes the window once so many instructions were executed in it; 0: no limit.
    pub for_instructions: u64,
    /// Consumer: 1 opens the window now.
    pub start: u32,
    /// Plugin: 1 once the window opened.
    pub opened: u32,
    /// [`FROM_SYMBOL`]: the first 8 bytes of the symbol's code.
    pub from_code: u64,
    /// Ways of the first level of data that the tap is to run; 0: none. Its sets are the filter's.
    pub first_level_data_ways: u32,
    /// Ways of the first level of instructions that the tap is to run; 0: none. Its sets are the filter's.
    pub first_level_fetch_ways: u32,
    /// 1: its ways go by a tree of bits; 0: by least recent use.
    pub first_level_data_tree: u32,
    /// 1: the ways of the level of instructions go by a tree of bits; 0: by least recent use.
    pub first_level_fetch_tree: u32,
    /// 1: the level of instructions sends nothing but misses; 0: a use now and then too, and whether a line that goes
    /// was used again.
    pub first_level_misses_only: u32,
    /// 1: every store is sent, and its line is forgotten.
    pub ordered_stores: u32,
    /// 1: a vCPU's filter is cleared at each switch of tasks, and lines are shared by tasks.
    pub by_task: u32,
    /// 1: the filter drops no access to data.
    pub every_access: u32,
    /// 1: functions of languages' runtimes that give out memory are looked for.
    pub managed_heaps: u32,
    /// 1: branches are predicted, and those that were predicted wrongly are sent.
    pub branches: u32,
    /// Consumer: entries of the kernel's functions that clear a page; 0: none.
    pub clearing: [u64; CLEARING.len()],
    /// Plugin: chunks filled, ever.
    pub published: u64,
    /// Consumer: asleep on `published`.
    pub consumer_waits: u32,
    /// Plugin: instruction table entries in use.
    pub insns: u32,
    /// Plugin: context table entries in use.
    pub ctxs: u32,
    /// Plugin: [`State`].
    pub state: u32,
    /// Plugin: prefetch instructions executed.
    pub prefetches: u64,
    /// Plugin: device accesses.
    pub io_accesses: u64,
    /// Plugin: times that a line became shared: references of it that the filter dropped until then were not sent.
    pub lost_before_share: u64,
    /// Plugin: accesses of the heap shim, left out.
    pub skipped: u64,
    /// Plugin: why it gave up.
    pub error: [u8; 256],
    /// Plugin: the process that executed the trigger BEGIN.
    pub opened_by: u32,
    /// Plugin: the process that executed the trigger END; 0 where something else closed the window.
    pub closed_by: u32,
    /// Plugin: 1 between two parts of the run.
    pub paused: u32,
    /// Plugin: changes between parts and pauses, where it can time them itself, by the guest's clock.
    pub changes: u32,
    /// Plugin: the guest's clock at the last change, in nanoseconds.
    pub changed_ns: u64,
    /// Plugin: the guest's clock not long ago, in nanoseconds.
    pub now_ns: u64,
    /// Plugin: nanoseconds of the guest's clock that passed in parts, and in pauses, from the window's start to the last
    /// change.
    pub passed_ns: [u64; 2],
    /// Plugin: pages that the kernel cleared in parts, and in pauses, from the window's start on.
    pub cleared: [u64; 2],
    /// Padding to the consumer's cache line.
    pub padding1: [u32; 2],
    /// Consumer: chunks given back, ever.
    pub consumed: u64,
    /// Plugin: asleep on `consumed`.
    pub plugin_waits: u32,
    /// Consumer: 1 closes the window.
    pub stop: u32,
    /// Consumer: 1 pauses the recording, 0 goes on with it. The plugin writes it too, where it times parts itself.
    pub pause: u32,
    /// Consumer: 1 has calls followed in the next pause.
    pub follow: u32,
    /// Consumer: the next part ends after so many nanoseconds of the guest's clock; 0: when requested.
    pub part_ns: u64,
    /// Consumer: the next pause ends after so many nanoseconds of the guest's clock; 0: when requested.
    pub pause_ns: u64,
    /// Consumer: addresses and first 8 bytes of such functions; 0: none.
    pub allocators: [[u64; 2]; ALLOCATORS],
    /// Padding to 64 bytes.
    pub padding2: [u64; 3],
}

/// `enum nm_state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    /// The guest's kernel is not known; triggers are not seen.
    Booting = 0,
    /// Records flow.
    Recording = 1,
    /// The window has closed; every table is complete.
    Closed = 2,
    /// The plugin gave up; `error` has the reason.
    Failed = 3,
    /// Triggers are seen; the window has not opened.
    Attentive = 4,
}

const _: () = {
    assert!(size_of::<ChunkHeader>() == 64);
    assert!(size_of::<crate::reference::Usage>() == 48);
    assert!(size_of::<crate::side::Insn>() == 64);
    assert!(size_of::<crate::side::Context>() == 8);
    assert!(size_of::<crate::side::PlacedContext>() == 16);
    assert!(offset_of!(ControlPage, node_bytes) == 88);
    assert!(offset_of!(ControlPage, facts_ready) == 152);
    assert!(offset_of!(ControlPage, direct_map_base) == 176);
    assert!(offset_of!(ControlPage, timer_entry_vaddr) == 696);
    assert!(offset_of!(ControlPage, perf_ring_bytes) == 1232);
    assert!(offset_of!(ControlPage, from_kind) == 1752);
    assert!(offset_of!(ControlPage, from_code) == 1784);
    assert!(offset_of!(ControlPage, first_level_data_ways) == 1792);
    assert!(offset_of!(ControlPage, ordered_stores) == 1812);
    assert!(offset_of!(ControlPage, published) == 1856);
    assert!(offset_of!(ControlPage, error) == 1912);
    assert!(offset_of!(ControlPage, consumed) == 2240);
    assert!(offset_of!(ControlPage, stop) == 2252);
    assert!(offset_of!(ControlPage, pause) == 2256);
    assert!(offset_of!(ControlPage, managed_heaps) == 1824);
    assert!(offset_of!(ControlPage, clearing) == 1832);
    assert!(offset_of!(ControlPage, cleared) == 2216);
    assert!(offset_of!(ControlPage, allocators) == 2280);
    assert!(size_of::<ControlPage>() == 2432);
};
