//! Names for a run's instructions, resolved once at the end of recording while the files are those that ran.

use serde::{Deserialize, Serialize};

/// `symbols.json`: names by instruction id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Symbols {
    /// `nearmiss/symbols/1`.
    pub schema: String,
    /// Modules: program and library paths, `[kernel]`, kernel modules, `[jit]`, `[unknown]`.
    pub modules: Vec<String>,
    /// Functions; index 0 is the unknown function.
    pub functions: Vec<Function>,
    /// Source files; index 0 is the empty name.
    pub files: Vec<String>,
    /// By instruction id: function (index into `functions`), file (index into `files`), line (0: unknown).
    pub insns: Vec<(u32, u32, u32)>,
    /// Variables of the mapped files and of the kernel.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<ModuleData>,
}

/// Module name of the kernel, in [`ModuleData::module`] and [`Symbols::modules`].
pub const KERNEL_MODULE: &str = "[kernel]";

/// The variables of one file, or of the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleData {
    /// Path of the file, or [`KERNEL_MODULE`].
    pub module: String,
    /// What the loader maps, by file offset; empty for the kernel.
    pub segments: Vec<Segment>,
    /// By address, ascending, not overlapping.
    pub objects: Vec<DataObject>,
}

/// A loadable segment of an ELF file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// Offset in the file.
    pub file_offset: u64,
    /// Address it was linked for.
    pub vaddr: u64,
    /// Bytes in the file.
    pub file_bytes: u64,
    /// Bytes in memory; what is beyond `file_bytes` begins as zeros.
    pub memory_bytes: u64,
}

/// A variable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataObject {
    /// Demangled name.
    pub name: String,
    /// Address it was linked for.
    pub vaddr: u64,
    /// Size.
    pub bytes: u64,
}

impl ModuleData {
    /// The variable that holds the linked address `vaddr`: index into [`ModuleData::objects`].
    pub fn object_at(&self, vaddr: u64) -> Option<usize> {
        let index = self.objects.partition_point(|o| o.vaddr <= vaddr).checked_sub(1)?;
        (vaddr - self.objects[index].vaddr < self.objects[index].bytes).then_some(index)
    }
}

/// `nearmiss/symbols/1`.
pub const SCHEMA: &str = "nearmiss/symbols/1";

/// A function as the report names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// Demangled name; for stripped code `module+0x1234` (the nearest known point below).
    pub name: String,
    /// Index into [`Symbols::modules`].
    pub module: u32,
    /// Kernel code.
    pub kernel: bool,
    /// Name of the innermost inlined function at most of its instructions, when it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inlined: Option<String>,
}
