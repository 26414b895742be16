//! `model.json`: counts of the machine model in a run.
//!
//! [`ModelRecord::totals`] are the command's, and the rows of a table sum to them unless the table specifies otherwise;
//! each has a row for the unattributed rest. Other tasks, idle and timer ticks have totals of their own: the four
//! together are all that the CPUs executed. All figures are *modelled*.

use crate::machine::Machine;
pub use crate::object_kind::ObjectKind;
use crate::policy::{Order, Policy};
use crate::units::Bytes;

pub use crate::shared_line::{LineSharing, SharedLineRow, Tenant};
pub use crate::stalls::{RecordedPart, ShareRange, StallRanges, StallSources};
pub use crate::tally::{BusTally, ByClass, LevelTally, MAX_LEVELS, MissClass, Tally};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `nearmiss/model/2`.
pub const SCHEMA: &str = "nearmiss/model/2";

crate::schema::is_record!(ModelRecord);

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
    /// Misses of this object in caches of other sizes, beside the other data of the command: of references that missed
    /// the first level, estimated from some of the lines. None where too few of them missed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve: Option<MissRatioCurve>,
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

impl MissRatioCurve {
    /// Returns the least capacity above `size` that has at most one in `by` of the misses that `size` has.
    pub fn least_dividing(&self, size: Bytes, by: u64) -> Option<Bytes> {
        let now = self.points.iter().rev().find(|(bytes, _)| *bytes <= size.0)?.1;
        let divides = |(bytes, count): &&(u64, u64)| *bytes > size.0 && count.saturating_mul(by) <= now;
        self.points.iter().find(divides).map(|(bytes, _)| Bytes(*bytes))
    }
}
