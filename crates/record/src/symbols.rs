//! Names for a run's instructions, resolved once at the end of recording while the files are those that ran.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

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
    /// Function (index into `functions`), file (index into `files`) and line (0: unknown), by instruction id.
    pub insns: Vec<(u32, u32, u32)>,
    /// Instruction id, file and line of the program's own code, where it and its language's library were inlined into one
    /// another; ascending by id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inlined_at: Vec<(u32, u32, u32)>,
    /// Variables of the mapped files and of the kernel.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<ModuleData>,
    /// Variables in frames of first threads, by address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<StackVariable>,
    /// Places of the kernel's data.
    #[serde(default)]
    pub kernel_layout: KernelLayout,
    /// Uses of guest memory at the end of the window.
    #[serde(default)]
    pub kernel_pages: KernelPages,
    /// Structures of the kernel's with known objects; kept where the trace has every access.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernel_structures: Vec<KernelStructure>,
}

/// Module name of the kernel, in [`ModuleData::module`] and [`Symbols::modules`].
pub const KERNEL_MODULE: &str = "[kernel]";
/// Function of the kernel with which each page fault begins.
pub const PAGE_FAULT: &str = "asm_exc_page_fault";
/// Functions with which Linux clears a page for user mode, 8 bytes a store (arch/x86/lib/clear_page_64.S).
pub const CLEARING: [&str; 3] = ["clear_page_orig", "clear_page_rep", "clear_page_erms"];

/// The variables of one file, or of the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleData {
    /// Path of the file, or [`KERNEL_MODULE`].
    pub module: String,
    /// Build id from the linker, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
    /// Segments that the loader maps, by file offset; empty for the kernel.
    pub segments: Vec<Segment>,
    /// Variables by address, ascending, not overlapping.
    pub objects: Vec<DataObject>,
}

/// A variable in a frame of the first thread's stack, where the frame lay the first time.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StackVariable {
    /// Virtual address.
    pub start: u64,
    /// Size.
    pub bytes: u64,
    /// Name of the variable.
    pub name: String,
    /// Name of the function that has the frame.
    pub function: String,
}

/// Source of variables for attribution: the files while recording, the run's symbols later. Both must return the same,
/// or a replay would not repeat the run.
pub trait DataSymbols {
    /// Variables of the file at `path`, if it is one that has some.
    fn module(&mut self, path: &str) -> Option<Arc<ModuleData>>;
    /// Variables of the kernel.
    fn kernel(&mut self) -> Option<Arc<ModuleData>>;
    /// Returns the places of the kernel's data; not called before the guest has booted.
    fn layout(&mut self) -> KernelLayout;
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
    /// Bytes in memory; those beyond `file_bytes` begin as zeros.
    pub memory_bytes: u64,
}

impl Segment {
    /// Linked address of the byte at this offset in the file, if it is one of the segment's.
    pub fn linked_address(&self, file_offset: u64) -> Option<u64> {
        let into = file_offset.checked_sub(self.file_offset).filter(|into| *into < self.file_bytes)?;
        Some(self.vaddr.wrapping_add(into))
    }
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

impl Symbols {
    /// Source file and line of the program's own code, where it and its language's library were inlined into one another.
    pub fn own_line(&self, insn: u32) -> Option<(&str, u32)> {
        let at = self.inlined_at.binary_search_by_key(&insn, |(id, ..)| *id).ok()?;
        let (_, file, line) = self.inlined_at[at];
        Some((self.files.get(file as usize)?, line))
    }
}

impl ModuleData {
    /// Linked address of the byte at this offset in the file.
    pub fn linked_address(&self, file_offset: u64) -> Option<u64> {
        self.segments.iter().find_map(|segment| segment.linked_address(file_offset))
    }

    /// The variable that holds the linked address `vaddr`: index into [`ModuleData::objects`].
    pub fn object_at(&self, vaddr: u64) -> Option<usize> {
        let index = self.objects.partition_point(|o| o.vaddr <= vaddr).checked_sub(1)?;
        (vaddr - self.objects[index].vaddr < self.objects[index].bytes).then_some(index)
    }
}

/// `nearmiss/symbols/1`.
pub const SCHEMA: &str = "nearmiss/symbols/1";

crate::schema::is_record!(Symbols);

/// A function with the name that the report uses.
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

/// Places of the guest kernel's data, as far as its addresses do not show them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelLayout {
    /// Virtual address of physical 0.
    pub direct_map_base: u64,
    /// Offset added to a per-CPU symbol's address, by CPU.
    pub per_cpu_bases: Vec<u64>,
}

/// Use of a physical page, as last seen.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PageUse {
    /// Objects of a slab cache.
    Slab {
        /// Name of the cache.
        cache: String,
        /// Bytes of one object, 0: unknown.
        object_bytes: u32,
        /// Bytes from one object to the next, 0: unknown. Then a run is one slab, and its first object begins with it.
        #[serde(default, skip_serializing_if = "crate::schema::is_zero")]
        stride_bytes: u32,
        /// Further caches of objects of about this size have their objects here.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_shared: bool,
    },
    /// File contents.
    PageCache,
    /// Page tables.
    PageTable,
    /// A task's kernel stack.
    KernelStack,
    /// Memory of user processes, reached through the kernel's direct map.
    User,
    /// Anything else.
    Other,
}

/// A structure of the kernel's, as its own types declare it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelStructure {
    /// Name of the structure, such as `tcp_sock`.
    pub name: String,
    /// Names of the slab caches that hold such objects.
    pub caches: Vec<String>,
    /// Physical addresses (offsets in guest RAM) of objects that lie elsewhere, ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<u64>,
    /// Size in bytes, up to the end of the last field.
    pub bytes: u32,
    /// Fields by offset, not overlapping.
    pub fields: Vec<KernelField>,
}

/// A field of a structure of the kernel's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelField {
    /// Names of the members that lead to the field, with dots between; bit fields that share bytes with `|` between.
    pub name: String,
    /// First byte.
    pub from: u32,
    /// Size in bytes.
    pub bytes: u32,
}

/// Uses of the pages of guest memory; pages not named are unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelPages {
    /// Uses, each once.
    pub uses: Vec<PageUse>,
    /// `(first page, pages, index into uses)`, ascending, not overlapping.
    pub runs: Vec<(u64, u64, u32)>,
}

impl KernelPages {
    /// Returns the use of physical page number `page`.
    pub fn page(&self, page: u64) -> Option<&PageUse> {
        let (_, _, used) = self.runs.get(self.run(page)?)?;
        self.uses.get(*used as usize)
    }

    /// Returns the index in `runs` of the run with physical page number `page`.
    pub fn run(&self, page: u64) -> Option<usize> {
        let index = self.runs.partition_point(|run| run.0 <= page).checked_sub(1)?;
        let (first, pages, _) = *self.runs.get(index)?;
        (page - first < pages).then_some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_found_in_its_run_only() {
        let pages =
            KernelPages { uses: vec![PageUse::PageCache, PageUse::PageTable], runs: vec![(2, 3, 0), (9, 1, 1)] };
        let seen: Vec<_> = [1, 2, 4, 5, 9, 10].map(|p| pages.page(p).cloned()).to_vec();
        use PageUse::{PageCache, PageTable};
        assert_eq!(seen, [None, Some(PageCache), Some(PageCache), None, Some(PageTable), None]);
    }

    #[test]
    fn an_address_is_in_a_variable_or_between_two() {
        let object = |vaddr, bytes| DataObject { name: String::new(), vaddr, bytes };
        let data = ModuleData { objects: vec![object(16, 8), object(32, 4)], ..ModuleData::default() };
        assert_eq!([15, 16, 23, 24, 35, 36].map(|a| data.object_at(a)), [None, Some(0), Some(0), None, Some(1), None]);
    }
}
