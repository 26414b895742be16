//! Kinds of memory that a data object can lie in.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Kind of an object's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ObjectKind {
    /// malloc family, by allocating call stack.
    Heap,
    /// Objects of a language with a runtime of its own (Go), by allocating call stack.
    Managed,
    /// A mapping of a file.
    File,
    /// An anonymous mapping.
    Anonymous,
    /// A thread's stack.
    Stack,
    /// A global variable.
    Global,
    /// Kernel: slab object.
    Slab,
    /// Kernel: page cache.
    PageCache,
    /// Kernel: page tables.
    PageTable,
    /// Kernel: stack.
    KernelStack,
    /// Kernel: static data and per-CPU data.
    KernelData,
    /// Kernel: other memory.
    KernelOther,
    /// Instructions.
    Code,
    /// Could not be attributed.
    Unattributed,
}

impl ObjectKind {
    /// Whether the program decides where such objects lie, and not the kernel.
    pub fn is_the_programs(self) -> bool {
        use ObjectKind::{Anonymous, File, Global, Heap, Managed, Stack};
        matches!(self, Heap | Managed | Global | Anonymous | Stack | File)
    }
}
