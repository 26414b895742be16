//! Functions and variables of an ELF file.

use super::code::Code;
use super::debug;
use super::demangle::demangle;
use super::plt;
use super::unwind;
use memmap2::Mmap;
use nearmiss_record::symbols::{DataObject, ModuleData, Segment};
use object::elf::{self, FileHeader64, SHN_UNDEF, STB_GLOBAL, STB_WEAK};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader, Sym};
use object::{LittleEndian, Object, ObjectSection};
use std::cell::OnceCell;
use std::fs::File;
use std::path::Path;

/// An ELF file, mapped.
pub struct Elf {
    bytes: Mmap,
    pub(crate) segments: Vec<Segment>,
    /// Functions by start.
    functions: Vec<Code>,
    stubs: Vec<Code>,
    /// `(start, bytes)` by start: functions of which only the extent is known.
    extents: OnceCell<Vec<(u64, u64)>>,
    /// `(start, end)` of sections that hold code.
    code_sections: Vec<(u64, u64)>,
    has_debug_info: bool,
}

type Parsed<'a> = ElfFile64<'a, LittleEndian>;

impl Elf {
    /// `None` when it is no 64-bit little-endian ELF file that can be read.
    pub fn open(path: &Path) -> Option<Self> {
        // To open a pipe would wait for its writer.
        if !path.metadata().ok()?.is_file() {
            return None;
        }
        let file = File::open(path).ok()?;
        // SAFETY: the mapping is read-only and private; a file that shrinks meanwhile would raise SIGBUS, as it would in
        // the programs that run it.
        let bytes = unsafe { Mmap::map(&file) }.ok()?;
        let parsed = Parsed::parse(&*bytes).ok()?;
        let segments = segments(&parsed)?;
        let functions = functions(&parsed);
        let stubs = plt::stubs(&parsed);
        let code_sections = parsed
            .sections()
            .filter(|s| s.kind() == object::SectionKind::Text && s.size() > 0)
            .map(|s| (s.address(), s.address().saturating_add(s.size())))
            .collect();
        let has_debug_info = debug::has_lines(&parsed, path);
        Some(Elf { segments, functions, stubs, extents: OnceCell::new(), code_sections, has_debug_info, bytes })
    }

    /// Whether the file, or a file beside it, has source lines.
    pub fn has_debug_info(&self) -> bool {
        self.has_debug_info
    }

    /// Returns the linker's build id of the file, in hexadecimal digits.
    pub fn build_id(&self) -> Option<String> {
        let parsed = Parsed::parse(&*self.bytes).ok()?;
        let id = parsed.build_id().ok()??;
        Some(id.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Up to so many bytes of the file from this linked address on.
    pub fn bytes_at(&self, address: u64, most: u64) -> Option<&[u8]> {
        let holds = |s: &&Segment| address >= s.vaddr && address - s.vaddr < s.file_bytes;
        let segment = self.segments.iter().find(holds)?;
        let into = address - segment.vaddr;
        let from = usize::try_from(segment.file_offset.checked_add(into)?).ok()?;
        let bytes = self.bytes.get(from..)?;
        let most = usize::try_from(most.min(segment.file_bytes - into)).ok()?;
        Some(&bytes[..most.min(bytes.len())])
    }

    /// Linked address of the byte at this offset in the file.
    pub fn address(&self, file_offset: u64) -> Option<u64> {
        self.segments.iter().find_map(|segment| segment.linked_address(file_offset))
    }

    /// Name of the function at a linked address; failing a symbol, the start of the function or of its section, after
    /// `module`.
    pub fn name(&self, module: &str, address: u64) -> String {
        if let Some(function) = find(&self.functions, address).filter(|f| f.holds(address)) {
            return demangle(&function.symbol);
        }
        if let Some(stub) = find(&self.stubs, address).filter(|f| f.holds(address)) {
            let (name, suffix) = stub.symbol.split_at(stub.symbol.len().saturating_sub("@plt".len()));
            return demangle(name) + suffix;
        }
        let section = self.code_sections.iter().find(|s| (s.0..s.1).contains(&address));
        let start = self.extent(address).map(|e| e.0).or(section.map(|s| s.0));
        // Symbols without a size name the bytes behind them, up to the next known start.
        let from = start.unwrap_or(address);
        let unsized_symbol = self.functions[..self.functions.partition_point(|f| f.start <= address)]
            .iter()
            .rev()
            .take_while(|f| f.start >= from)
            .find(|f| f.bytes == 0);
        match unsized_symbol {
            Some(symbol) => demangle(&symbol.symbol),
            None => format!("{module}+{from:#x}"),
        }
    }

    /// Returns the start and the bytes of the function at a linked address, by the tables for unwinding.
    pub fn extent(&self, address: u64) -> Option<(u64, u64)> {
        let extents = self.extents.get_or_init(|| match Parsed::parse(&*self.bytes) {
            Ok(parsed) => unwind::extents(&parsed),
            Err(_) => Vec::new(),
        });
        let extent = extents.partition_point(|e| e.0 <= address).checked_sub(1).map(|i| extents[i]);
        extent.filter(|(start, bytes)| address - start < *bytes)
    }

    /// Returns the variables of the file, and where the loader puts them.
    pub fn data(&self, module: &str) -> ModuleData {
        let mut objects = Vec::new();
        if let Ok(parsed) = Parsed::parse(&*self.bytes) {
            each_symbol(&parsed, |kind, symbol| {
                if kind == elf::STT_OBJECT && symbol.bytes > 0 {
                    objects.push(symbol);
                }
            });
        }
        sort_by_preference(&mut objects);
        let mut end = 0;
        objects.retain(|o| {
            let free = o.start >= end;
            if free {
                end = o.start.saturating_add(o.bytes);
            }
            free
        });
        let variable = |o: Code| DataObject { name: demangle(&o.symbol), vaddr: o.start, bytes: o.bytes };
        ModuleData {
            module: module.to_owned(),
            build_id: self.build_id(),
            segments: self.segments.clone(),
            objects: objects.into_iter().map(variable).collect(),
        }
    }
}

/// Whether the file at `path` has a table of its symbols: no program has that was stripped, as those of distributions are.
pub fn has_symbol_table(path: &Path) -> bool {
    let table = |elf: &Elf| Some(Parsed::parse(&*elf.bytes).ok()?.section_by_name(".symtab").is_some());
    Elf::open(path).and_then(|elf| table(&elf)).unwrap_or(false)
}

/// The last entry that begins at or below `address` and holds it; failing that, the last that begins there.
fn find(sorted: &[Code], address: u64) -> Option<&Code> {
    /// Symbols nest rarely, and no deeper than this.
    const LOOK_BACK: usize = 16;
    let below = &sorted[..sorted.partition_point(|c| c.start <= address)];
    below.iter().rev().take(LOOK_BACK).find(|c| c.holds(address)).or(below.last())
}

fn segments(parsed: &Parsed<'_>) -> Option<Vec<Segment>> {
    let header: &FileHeader64<LittleEndian> = parsed.elf_header();
    let headers = header.program_headers(LittleEndian, parsed.data()).ok()?;
    let loaded = headers.iter().filter(|h| h.p_type(LittleEndian) == elf::PT_LOAD);
    let segment = |h: &elf::ProgramHeader64<LittleEndian>| Segment {
        file_offset: h.p_offset(LittleEndian),
        vaddr: h.p_vaddr(LittleEndian),
        file_bytes: h.p_filesz(LittleEndian),
        memory_bytes: h.p_memsz(LittleEndian),
    };
    Some(loaded.map(segment).collect())
}

fn functions(parsed: &Parsed<'_>) -> Vec<Code> {
    let mut functions = Vec::new();
    each_symbol(parsed, |kind, symbol| {
        if kind == elf::STT_FUNC || kind == elf::STT_GNU_IFUNC || (kind == elf::STT_NOTYPE && symbol.symbol == "_start")
        {
            functions.push(symbol);
        }
    });
    sort_by_preference(&mut functions);
    // Aliases: the best name of each extent is first.
    functions.dedup_by_key(|f| (f.start, f.bytes));
    functions
}

/// Passes type and extent of every defined, named symbol of both tables to `sink`.
fn each_symbol(parsed: &Parsed<'_>, mut sink: impl FnMut(elf::SymbolType, Code)) {
    for table in [parsed.elf_symbol_table(), parsed.elf_dynamic_symbol_table()] {
        for symbol in table.iter() {
            let name = symbol.name(LittleEndian, table.strings());
            let name = name.ok().and_then(|n| std::str::from_utf8(n).ok()).filter(|n| !n.is_empty());
            if symbol.st_shndx(LittleEndian) == SHN_UNDEF {
                continue;
            }
            if let Some(name) = name {
                let rank = match symbol.st_bind() {
                    STB_GLOBAL => 'a',
                    STB_WEAK => 'b',
                    _ => 'c',
                };
                // The rank rides in front of the name until the sort.
                let code = Code {
                    start: symbol.st_value(LittleEndian),
                    bytes: symbol.st_size(LittleEndian),
                    symbol: format!("{rank}{name}"),
                };
                sink(symbol.st_type(), code);
            }
        }
    }
}

/// Sorts by address; of several names of one place the public, plain, short one is first. Removes the ranks.
fn sort_by_preference(symbols: &mut [Code]) {
    let key = |c: &Code| {
        let name = &c.symbol[1..];
        let underscores = name.len() - name.trim_start_matches('_').len();
        (c.start, std::cmp::Reverse(c.bytes), underscores, c.symbol.as_bytes()[0], name.len(), name.to_owned())
    };
    symbols.sort_by_cached_key(key);
    for symbol in symbols {
        symbol.symbol.remove(0);
    }
}
