//! `model.json`: counts of the machine model in a run.
//!
//! [`ModelRecord::totals`] are the command's, and the rows of a table sum to them unless the table specifies otherwise;
//! each has a row for the unattributed rest. Other tasks, idle and timer ticks have totals of their own: the four
//! together are all that the CPUs executed. All figures are *modelled*.

use crate::machine::Machine;
pub use crate::object_kind::ObjectKind;
use crate::policy::{Order, Policy};

pub use crate::shared_line::{LineSharing, SharedLineRow, Tenant};
pub use crate::stalls::{RecordedPart, ShareRange, StallRanges, StallSources};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// `nearmiss/model/2`.
pub const SCHEMA: &str = "nearmiss/model/2";

crate::schema::is_record!(ModelRecord);

/// Why a line was not there; the first that fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum MissClass {
    /// First fill of the line into this cache since the window began.
    Compulsory = 0,
    /// Another CPU took the line, and the bytes missed on were written by others since.
    TrueSharing = 1,
    /// Another CPU took the line, but wrote other bytes of it.
    FalseSharing = 2,
    /// An inclusive outer cache evicted the line.
    InclusionVictim = 3,
    /// A fully associative LRU cache of the same size would have hit.
    Conflict = 4,
    /// Even a fully associative LRU cache of the same size would have missed.
    Capacity = 5,
}

impl MissClass {
    /// In the order of their numbers.
    pub const ALL: [MissClass; 6] = [
        MissClass::Compulsory,
        MissClass::TrueSharing,
        MissClass::FalseSharing,
        MissClass::InclusionVictim,
        MissClass::Conflict,
        MissClass::Capacity,
    ];

    /// Whether another CPU's store is the cause.
    pub fn is_sharing(self) -> bool {
        matches!(self, MissClass::TrueSharing | MissClass::FalseSharing)
    }
}

/// Misses by class, indexed by `MissClass as usize`.
pub type ByClass = [u64; 6];

/// Most cache levels a machine may have.
pub const MAX_LEVELS: usize = 4;

/// Misses of one level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LevelTally {
    /// Data loads that missed; an atomic counts here, as a load.
    pub load_misses: ByClass,
    /// Data stores that missed.
    pub store_misses: ByClass,
    /// Instruction fetches that missed.
    pub fetch_misses: ByClass,
}

impl LevelTally {
    /// Load and store misses of all classes.
    pub fn data_misses(&self) -> u64 {
        self.load_misses.iter().chain(&self.store_misses).sum()
    }

    /// All misses of one class.
    pub fn class(&self, class: MissClass) -> u64 {
        let i = class as usize;
        self.load_misses[i] + self.store_misses[i] + self.fetch_misses[i]
    }

    /// All misses.
    pub fn misses(&self) -> u64 {
        self.data_misses() + self.fetch_misses.iter().sum::<u64>()
    }
}

/// Transactions on the memory bus (P4's classes for reads).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BusTally {
    /// Reads of a remote node's memory (r).
    pub read_remote: u64,
    /// Local reads, no other CPU had the line (l-n).
    pub read_local_none: u64,
    /// Local reads, others had it clean (l-s).
    pub read_local_shared: u64,
    /// Local reads, modified in another CPU's cache (l-m).
    pub read_local_modified: u64,
    /// Modified lines written back.
    pub write_backs: u64,
    /// Invalidations sent to others without data (upgrades).
    pub invalidations: u64,
    /// Full write-combining lines.
    pub nt_full: u64,
    /// Partial write-combining transactions.
    pub nt_partial: u64,
}

impl BusTally {
    /// Reads of all classes.
    pub fn reads(&self) -> u64 {
        self.read_remote + self.read_local_none + self.read_local_shared + self.read_local_modified
    }

    /// All transactions.
    pub fn transactions(&self) -> u64 {
        self.reads() + self.write_backs + self.invalidations + self.nt_full + self.nt_partial
    }
}

/// Counts of the whole run and of each row of each table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tally {
    /// Instructions executed.
    pub instructions: u64,
    /// Data loads (references, not line accesses); an atomic is one load.
    pub loads: u64,
    /// Data stores; the store half of a plain read-modify-write is one, an atomic's is not.
    pub stores: u64,
    /// Line accesses of data references: a straddling reference has two.
    pub line_accesses: u64,
    /// Non-temporal stores, included in `stores`.
    pub nt_stores: u64,
    /// Tallies by level, nearest first.
    pub levels: Vec<LevelTally>,
    /// Transactions that left the outermost cache.
    pub bus: BusTally,
    /// Cycles: instructions × cycles an instruction + stalls.
    pub cycles: u64,
    /// Cycles of these that waited for data or instructions.
    pub stall_cycles: u64,
    /// Cycles of these that waited for memory by first touches: misses of the outermost cache that are compulsory.
    /// Repeated work does not pay them again. Older records do not have them.
    #[serde(default)]
    pub first_touch_cycles: u64,
    /// Stall cycles of these that waited for the way of a mispredicted branch: no miss is their reason. Older records do
    /// not have them.
    #[serde(default)]
    pub mispredicted_cycles: u64,
}

impl Tally {
    /// Stall cycles that waited for caches, memory or the bus.
    pub fn waits(&self) -> u64 {
        self.stall_cycles.saturating_sub(self.mispredicted_cycles)
    }
}

impl AddAssign<&Tally> for Tally {
    fn add_assign(&mut self, other: &Tally) {
        self.instructions += other.instructions;
        self.loads += other.loads;
        self.stores += other.stores;
        self.line_accesses += other.line_accesses;
        self.nt_stores += other.nt_stores;
        self.cycles += other.cycles;
        self.stall_cycles += other.stall_cycles;
        self.first_touch_cycles += other.first_touch_cycles;
        self.mispredicted_cycles += other.mispredicted_cycles;
        if self.levels.len() < other.levels.len() {
            self.levels.resize(other.levels.len(), LevelTally::default());
        }
        for (mine, theirs) in self.levels.iter_mut().zip(&other.levels) {
            for class in 0..6 {
                mine.load_misses[class] += theirs.load_misses[class];
                mine.store_misses[class] += theirs.store_misses[class];
                mine.fetch_misses[class] += theirs.fetch_misses[class];
            }
        }
        let (b, o) = (&mut self.bus, &other.bus);
        b.read_remote += o.read_remote;
        b.read_local_none += o.read_local_none;
        b.read_local_shared += o.read_local_shared;
        b.read_local_modified += o.read_local_modified;
        b.write_backs += o.write_backs;
        b.invalidations += o.invalidations;
        b.nt_full += o.nt_full;
        b.nt_partial += o.nt_partial;
    }
}

/// The whole record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelRecord {
    /// [`SCHEMA`].
    pub schema: String,
    /// The machine modelled, as cut down to the guest's CPUs.
    pub machine: Machine,
    /// The policy replayed.
    pub policy: Policy,
    /// Order of the records behind every coherence figure.
    pub order: Order,
    /// Only the command's own user-mode references.
    pub only_user: bool,
    /// Facts for the reader, one sentence each (approximate figures, filter, unseen parts).
    pub notes: Vec<String>,
    /// Totals of the command: its tasks in user mode, and the kernel while one of them is current.
    pub totals: Tally,
    /// Sources of the stall cycles of `totals`.
    #[serde(default)]
    pub stalls: StallSources,
    /// Recorded parts, if there were several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<RecordedPart>,
    /// How far the shares of `stalls` hold for the whole run, if parts of it were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranges: Option<StallRanges>,
    /// Other tasks: the kernel's own threads, the guest's init, and interrupts on idle CPUs; not part of `totals`.
    pub others: Tally,
    /// Idle loops of the guest's CPUs; not part of `totals`.
    pub idle: Tally,
    /// Timer ticks, whichever task they interrupt; not part of `totals`.
    pub ticks: Tally,
    /// Rows of the command by function, most stall cycles first.
    pub functions: Vec<FunctionRow>,
    /// Rows of other tasks by function, most stall cycles first: sums to `others`.
    pub other_functions: Vec<FunctionRow>,
    /// Rows of the command by source line, where one is known.
    pub lines: Vec<LineRow>,
    /// Rows of the command by instruction, of the functions with the most cycles; a function's rows add up to the
    /// function's.
    #[serde(default)]
    pub instructions: Vec<InstructionRow>,
    /// Rows of the command by call stack; see [`StackRow`].
    pub stacks: Vec<StackRow>,
    /// Functions of the program by the kernel's waits on their behalf, most first; of the command's kernel waits, those
    /// of which a caller is known.
    #[serde(default)]
    pub callers: Vec<CallerRow>,
    /// Rows of the command by data object.
    pub objects: Vec<ObjectRow>,
    /// Rows by task: the command's sum to `totals`, the others' to `others`.
    pub tasks: Vec<TaskRow>,
    /// Tallies of the command by CPU.
    pub cpus: Vec<Tally>,
    /// Tallies of the command by memory node of the data (data references that missed the first level only).
    pub nodes: Vec<Tally>,
    /// The command's bus transactions by offset within the page.
    pub page_offsets: PageOffsets,
    /// Pressure on each set of each data or unified cache level (instances added up): of the command.
    pub sets: Vec<SetMap>,
    /// Evictors and victims, of all that the CPUs executed, since the command also misses lines that others evict.
    pub blame: Vec<BlameRow>,
    /// Lines with the most coherence misses of the command.
    pub shared_lines: Vec<SharedLineRow>,
    /// Misses over cache sizes, from one pass over all that the CPUs executed.
    pub curve: Option<MissRatioCurve>,
    /// Address translation of data, of all that the CPUs executed; `None`: the machine's cores do not describe it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub translation: Option<Translation>,
}

impl ModelRecord {
    /// Threads of the command that are known.
    pub fn tasks_of_command(&self) -> usize {
        self.tasks.iter().filter(|task| task.of_command && task.tid != 0).count()
    }
}

/// Counts of the address translation of data. References that the trace's filter dropped looked nothing up: all their
/// pages had been used shortly before. A filter of several lines may drop them in another order than pages age.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Translation {
    /// Look-ups that missed the first level.
    pub first_misses: u64,
    /// Misses of these that were walks to small pages (4 KiB).
    pub walks: u64,
    /// Misses of these that were walks to large pages (2 MiB).
    pub large_walks: u64,
}

impl std::ops::AddAssign for Translation {
    fn add_assign(&mut self, other: Self) {
        self.first_misses += other.first_misses;
        self.walks += other.walks;
        self.large_walks += other.large_walks;
    }
}

/// A row of the function table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionRow {
    /// Name, `[unattributed]` for the rest.
    pub name: String,
    /// Module path or `[kernel]`.
    pub module: String,
    /// Kernel code.
    pub kernel: bool,
    /// Tally of its own instructions (callees not included).
    pub tally: Tally,
}

/// A row of the source line table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LineRow {
    /// Function name.
    pub function: String,
    /// Module path of the function or `[kernel]`; empty in older records.
    #[serde(default)]
    pub module: String,
    /// Source file.
    pub file: String,
    /// Line number.
    pub line: u32,
    /// Tally of the line.
    pub tally: Tally,
}

/// A row of the instruction table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InstructionRow {
    /// Function name.
    pub function: String,
    /// Module path or `[kernel]`.
    pub module: String,
    /// Address that the file was linked for, or the kernel's virtual one; `None`: all other instructions of the function.
    pub address: Option<u64>,
    /// Source file, where known; of the innermost inlined function.
    pub file: String,
    /// Line number, 0 where unknown.
    pub line: u32,
    /// Tally of the instruction.
    pub tally: Tally,
    /// Cycles that the instruction waited for data at an address that an earlier access of the same walk had loaded, as
    /// along a list.
    #[serde(default, skip_serializing_if = "crate::schema::is_zero")]
    pub chained_cycles: u64,
    /// Walks of the instruction down columns, where it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<Columns>,
}

/// Misses of an instruction that walks down columns that lie side by side, each a part of the same lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Columns {
    /// Misses of the walks.
    pub misses: u64,
    /// Cycles that the walks waited.
    pub stall_cycles: u64,
    /// Bytes from one element of a column to the next.
    pub stride_bytes: u64,
    /// Bytes from one column to the next: less than a line.
    pub step_bytes: u64,
}

impl std::ops::AddAssign for Columns {
    /// Sums both; distances are those of the added walks.
    fn add_assign(&mut self, more: Columns) {
        let (misses, stall_cycles) = (self.misses + more.misses, self.stall_cycles + more.stall_cycles);
        *self = Columns { misses, stall_cycles, ..more };
    }
}

/// A row of the call-stack table. Rows of older records are of stacks with misses alone, and have no cycles.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StackRow {
    /// Function names, outermost first; the last is the function that missed or computed.
    pub frames: Vec<String>,
    /// Misses by level (data and fetch).
    pub misses: Vec<u64>,
    /// Stall cycles.
    pub stall_cycles: u64,
    /// Cycles, stalls included. A function's are exact; how its computing is split over the stacks that lead to it is
    /// estimated from the references that were kept under each.
    #[serde(default)]
    pub cycles: u64,
}

/// A function of the program, and the kernel's waits on its behalf.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallerRow {
    /// Name: the innermost function that no library holds, where there is one.
    pub function: String,
    /// Module path.
    pub module: String,
    /// Stall cycles of kernel mode between its system calls, its faults, and the next instruction of user mode.
    pub kernel_stall_cycles: u64,
}

/// A row of the object table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectRow {
    /// Kind of memory.
    pub kind: ObjectKind,
    /// For people: `run_queue.c:41 new_task`, `stack of thread 3`, `vm_area_struct`.
    pub name: String,
    /// Allocating call stack, outermost first, where there is one.
    pub allocated_at: Vec<String>,
    /// Objects seen under this name.
    pub count: u64,
    /// Bytes of one object, when they are all alike.
    pub size_bytes: Option<u64>,
    /// Largest power of two that divides every object's address.
    pub alignment_bytes: Option<u64>,
    /// Tally of its references (data only).
    pub tally: Tally,
}

/// A row of the task table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskRow {
    /// Thread id in the guest.
    pub tid: u32,
    /// Process id in the guest.
    pub pid: u32,
    /// Command name.
    pub comm: String,
    /// Belongs to the command (its own process or a descendant).
    pub of_command: bool,
    /// User-mode part.
    pub user: Tally,
    /// Kernel-mode part.
    pub kernel: Tally,
}

/// Bus transactions against the offset within the page: the first paper's figure 2.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PageOffsets {
    /// Bytes a bin.
    pub bin_bytes: u32,
    /// Transactions by bin caused by user mode.
    pub user: Vec<u64>,
    /// Transactions by bin caused by kernel mode.
    pub kernel: Vec<u64>,
}

/// Pressure on the sets of one level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SetMap {
    /// `L1d`, `L2`, `L3`.
    pub cache: String,
    /// Ways a set.
    pub ways: u32,
    /// Misses by set (instances added up).
    pub misses: Vec<u64>,
    /// Conflict misses of these.
    pub conflict_misses: Vec<u64>,
    /// Distinct lines that ever mapped to each set, touched by any task.
    pub lines: Vec<u64>,
}

/// Misses on a line displaced by a line that was never reused: pollution blame.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlameRow {
    /// Cache.
    pub cache: String,
    /// Function that brought in the line that evicted.
    pub evictor: String,
    /// The call that led there: source line and function; empty where it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub evictor_called_at: String,
    /// Function that then missed.
    pub victim: String,
    /// The call that led there.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub victim_called_at: String,
    /// Number of misses.
    pub misses: u64,
}

/// Misses of fully associative LRU data caches of many sizes, from one pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MissRatioCurve {
    /// Exact, or why not.
    pub exact: bool,
    /// References in the pass.
    pub references: u64,
    /// `(capacity in bytes, misses)`, ascending.
    pub points: Vec<(u64, u64)>,
}
