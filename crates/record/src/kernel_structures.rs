//! The record of `nearmiss report --kernel-structures`: which fields of the kernel's structures a run reads and writes,
//! and on how many lines they lie.
//!
//! All figures are counts of the references of a recording that kept every access.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `nearmiss/kernel-structures/1`.
pub const SCHEMA: &str = "nearmiss/kernel-structures/1";

crate::schema::is_record!(KernelStructures);

/// Bytes of a line.
pub const LINE_BYTES: u32 = 64;

/// The whole record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KernelStructures {
    /// [`SCHEMA`].
    pub schema: String,
    /// Release of the guest's kernel.
    pub kernel: String,
    /// References count during calls of these functions; empty: all references of the kernel count.
    pub during: Vec<String>,
    /// Structures in slabs, most references first.
    pub structures: Vec<StructureUse>,
}

/// Uses of the objects of one structure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StructureUse {
    /// Name of the structure.
    pub structure: String,
    /// Slab caches with such objects; none for network devices, which the kernel lists.
    pub caches: Vec<String>,
    /// Size of the structure in bytes.
    pub bytes: u32,
    /// Lines that the structure takes if it begins with one.
    pub lines: u32,
    /// Every object begins with a line.
    pub begins_lines: bool,
    /// Objects with references.
    pub objects: u64,
    /// Loads.
    pub reads: u64,
    /// Stores and atomics.
    pub writes: u64,
    /// Visits by the function that was called; one row, without a function, where none was chosen.
    pub visits: Vec<Visits>,
    /// Lines with references, ascending.
    pub by_line: Vec<LineUse>,
}

/// Visits of objects of a structure: the references to one object during one call of the function, without those during
/// calls that it makes of functions in `during`. Without a chosen function, the references to one object during
/// one stay of a CPU in the kernel, without a switch to another task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Visits {
    /// Function.
    pub during: Option<String>,
    /// Number of visits.
    pub count: u64,
    /// Median of the lines that a visit uses.
    pub median_lines: u32,
    /// Fewest lines of a visit.
    pub fewest_lines: u32,
    /// Most lines of a visit.
    pub most_lines: u32,
    /// Sets of lines that visits use, most frequent first; rare ones beyond a limit are left out.
    pub sets: Vec<LineSet>,
}

/// A set of lines of a structure that some visits use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LineSet {
    /// Lines, the first is 0.
    pub lines: Vec<u32>,
    /// Visits that use these lines and no others.
    pub visits: u64,
}

/// Uses of a line of a structure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LineUse {
    /// Number of the line, the first is 0.
    pub line: u32,
    /// Loads.
    pub reads: u64,
    /// Stores and atomics.
    pub writes: u64,
    /// Visits that use the line.
    pub visits: u64,
    /// Fields that begin on the line and have references, most references first.
    pub fields: Vec<KernelFieldUse>,
}

/// Uses of a field.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KernelFieldUse {
    /// Names of the members that lead to the field; empty for bytes between fields.
    pub name: String,
    /// First byte in the structure.
    pub from: u32,
    /// Size in bytes.
    pub bytes: u32,
    /// Loads.
    pub reads: u64,
    /// Stores and atomics.
    pub writes: u64,
    /// Functions with references to the field, most first; no more than eight.
    pub functions: Vec<FunctionUse>,
}

/// References of one function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionUse {
    /// Name of the function.
    pub function: String,
    /// Loads.
    pub reads: u64,
    /// Stores and atomics.
    pub writes: u64,
}
