//! Entry of a function in a file, to be hit when a program reaches it.

use super::demangle::demangle;
use memmap2::Mmap;
use object::elf::{PT_LOAD, STT_FUNC};
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{LittleEndian, Object, ObjectSymbol, SymbolFlags};
use std::fs::File;
use std::path::Path;

/// The beginning of a function's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Offset in the file.
    pub file_offset: u64,
    /// The first eight bytes of its code, as they lie in memory.
    pub code: [u8; 8],
}

/// `cmp 0x10(%r14),%rsp`: a function of Go compares its stack with the limit in the structure of its goroutine, which is
/// in this register where arguments are in registers.
const COMPARES_WITH_G: [u8; 4] = [0x49, 0x3b, 0x66, 0x10];

/// The function `name` of an ELF file, as its symbol tables call it or, with `::` in it, demangled. `None`: the file
/// cannot be read or defines no such function.
pub fn entry(path: &Path, name: &str) -> Option<Entry> {
    let bytes = mapped(path)?;
    let parsed = ElfFile64::<LittleEndian>::parse(&*bytes).ok()?;
    of_parsed(&parsed, &bytes, name)
}

/// The function with which Go's runtime gives out all memory, of a program by Go 1.17 or later: its first argument comes
/// in a register. `None`: the file is no such program, or has no symbols.
pub fn managed_allocator(path: &Path) -> Option<Entry> {
    let bytes = mapped(path)?;
    let parsed = ElfFile64::<LittleEndian>::parse(&*bytes).ok()?;
    parsed.section_by_name(".go.buildinfo")?;
    of_parsed(&parsed, &bytes, "runtime.mallocgc").filter(|entry| entry.code.starts_with(&COMPARES_WITH_G))
}

fn mapped(path: &Path) -> Option<Mmap> {
    // To open a pipe would wait for its writer.
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let file = File::open(path).ok()?;
    // SAFETY: the mapping is read-only and private; a file that shrinks meanwhile would raise SIGBUS, as it would in the
    // programs that run it.
    unsafe { Mmap::map(&file) }.ok()
}

fn of_parsed(parsed: &ElfFile64<'_, LittleEndian>, bytes: &[u8], name: &str) -> Option<Entry> {
    let called = |symbol: &str| symbol == name || (name.contains("::") && demangle(symbol) == name);
    let address = parsed
        .symbols()
        .chain(parsed.dynamic_symbols())
        .filter(|s| {
            s.is_definition() && matches!(s.flags(), SymbolFlags::Elf { st_info, .. } if st_info.st_type() == STT_FUNC)
        })
        .find(|s| s.name().is_ok_and(called))?
        .address();
    let file_offset = offset_of(parsed, address)?;
    let at = usize::try_from(file_offset).ok()?;
    let code = bytes.get(at..at.checked_add(8)?)?.try_into().ok()?;
    Some(Entry { file_offset, code })
}

fn offset_of(parsed: &ElfFile64<'_, LittleEndian>, address: u64) -> Option<u64> {
    for segment in parsed.elf_program_headers() {
        let into = address.wrapping_sub(segment.p_vaddr(LittleEndian));
        if segment.p_type(LittleEndian) == PT_LOAD && into < segment.p_filesz(LittleEndian) {
            return segment.p_offset(LittleEndian).checked_add(into);
        }
    }
    None
}
