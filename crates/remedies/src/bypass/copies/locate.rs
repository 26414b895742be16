//! Place of an instruction in its file, as a debugger and the preloaded library count.

use nearmiss_record::maps::Mapping;
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, elf};
use std::cell::RefCell;
use std::collections::HashMap;

/// Executable segments: offset in the file, address it was linked for, bytes.
type Segments = Vec<(u64, u64, u64)>;

/// Looks places up; reads each file once.
pub(super) struct Locator {
    mappings: Vec<Mapping>,
    files: RefCell<HashMap<String, Segments>>,
}

impl Locator {
    /// Among the executable mappings of files in a run.
    pub fn new(mappings: Vec<Mapping>) -> Self {
        Locator { mappings, files: RefCell::default() }
    }

    /// The address for which an instruction of this file was linked; `None` where the file is no longer there.
    pub fn linked(&self, path: &str, vaddr: u64) -> Option<u64> {
        let holds = |mapping: &&Mapping| mapping.path == path && (mapping.start..mapping.end).contains(&vaddr);
        let mapping = self.mappings.iter().rev().find(holds)?;
        let offset = mapping.file_offset + (vaddr - mapping.start);
        let mut files = self.files.borrow_mut();
        let segments = files.entry(path.to_owned()).or_insert_with(|| segments(path).unwrap_or_default());
        let of = segments.iter().find(|(from, _, bytes)| offset.checked_sub(*from).is_some_and(|at| at < *bytes))?;
        Some(of.1 + (offset - of.0))
    }
}

fn segments(path: &str) -> Option<Segments> {
    let file = std::fs::File::open(path).ok()?;
    // SAFETY: a read-only private mapping; a file changed under it can only fail the parse.
    let data = unsafe { memmap2::Mmap::map(&file) }.ok()?;
    let header = elf::FileHeader64::<Endianness>::parse(&*data).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, &*data).ok()?;
    let loaded = segments.iter().filter(|segment| segment.p_type(endian) == elf::PT_LOAD);
    Some(loaded.map(|s| (s.p_offset(endian), s.p_vaddr(endian), s.p_filesz(endian))).collect())
}
