//! Debug information of a file (DWARF 5): its units, and the types and names of their entries.

use super::demangle::demangle;
use gimli::{
    AttributeValue, DebuggingInformationEntry, DwAt, Dwarf, EndianSlice, LittleEndian as Little, Unit, UnitOffset,
};
use memmap2::Mmap;
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection};
use std::borrow::Cow;
use std::fs::File;
use std::path::Path;

/// Types of types that are followed to a name, at most: a damaged file may have a ring.
pub(super) const MOST_TYPES: usize = 32;
/// Bytes of a pointer.
const POINTER: u64 = 8;

pub(super) type Bytes<'a> = EndianSlice<'a, Little>;
pub(super) type Entry<'a> = DebuggingInformationEntry<Bytes<'a>>;

/// Calls `visit` with each unit of compilation of the file at `path`. Debug information that cannot be read ends the
/// walk. Returns nothing where the file is none that can have units.
pub(super) fn each_unit(
    path: &Path,
    visit: &mut dyn FnMut(&ElfFile64<'_, LittleEndian>, InUnit<'_, '_>),
) -> Option<()> {
    // To open a pipe would wait for its writer.
    let file = path.metadata().ok()?.is_file().then(|| File::open(path).ok())??;
    // SAFETY: the mapping is read-only and private; a file that shrinks meanwhile would raise SIGBUS, as it would in the
    // programs that run it.
    let mapped = unsafe { Mmap::map(&file) }.ok()?;
    let parsed = ElfFile64::<LittleEndian>::parse(&*mapped).ok()?;
    let section = |id: gimli::SectionId| -> Result<Cow<'_, [u8]>, gimli::Error> {
        let data = parsed.section_by_name(id.name()).and_then(|section| section.uncompressed_data().ok());
        Ok(data.unwrap_or_default())
    };
    let sections = gimli::DwarfSections::load(section).ok()?;
    let dwarf = sections.borrow(|section| EndianSlice::new(section, Little));
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        if let Ok(unit) = dwarf.unit(header) {
            visit(&parsed, InUnit { dwarf: &dwarf, unit: &unit });
        }
    }
    Some(())
}

/// Size and name of a type.
#[derive(Clone, Debug, Default)]
pub(super) struct Typed {
    /// Size in bytes; 0: unknown.
    pub bytes: u64,
    /// Name of the type, without the lengths of arrays.
    pub type_name: String,
    /// Lengths of arrays, as in `[4][16]`; else empty.
    pub lengths: String,
}

/// One unit of compilation.
#[derive(Clone, Copy)]
pub(super) struct InUnit<'d, 'a> {
    pub dwarf: &'d Dwarf<Bytes<'a>>,
    pub unit: &'d Unit<Bytes<'a>>,
}

impl<'a> InUnit<'_, 'a> {
    /// Size and name of an entry's type.
    pub(super) fn typed(&self, entry: &Entry<'a>) -> Typed {
        let (mut typed, mut at) = (Typed::default(), self.type_of(entry));
        let (mut suffix, mut count) = (String::new(), 1u64);
        for _ in 0..MOST_TYPES {
            let Some(known) = at.as_ref() else { break };
            let size = number(known, gimli::DW_AT_byte_size);
            match known.tag() {
                gimli::DW_TAG_pointer_type | gimli::DW_TAG_reference_type => {
                    typed.bytes = if typed.bytes == 0 { count.saturating_mul(POINTER) } else { typed.bytes };
                    suffix.insert(0, '*');
                }
                gimli::DW_TAG_array_type if suffix.is_empty() => {
                    for length in self.lengths(known) {
                        typed.lengths.push_str(&format!("[{length}]"));
                        count = count.saturating_mul(length);
                    }
                }
                _ if typed.bytes == 0 => typed.bytes = size.unwrap_or(0).saturating_mul(count),
                _ => {}
            }
            if let Some(name) = self.name(known).filter(|_| typed.type_name.is_empty()) {
                typed.type_name = format!("{}{name}", Self::keyword(known));
            }
            at = self.type_of(known);
        }
        if typed.type_name.is_empty() {
            typed.type_name = "void".to_owned();
        }
        if !suffix.is_empty() {
            typed.type_name = format!("{} {suffix}", typed.type_name);
        }
        typed
    }

    pub(super) fn lengths(&self, array: &Entry<'a>) -> Vec<u64> {
        let Ok(mut entries) = self.unit.entries_at_offset(array.offset()) else { return Vec::new() };
        let mut lengths = Vec::new();
        let Ok(Some(own)) = entries.next_dfs() else { return lengths };
        let depth = own.depth();
        while let Ok(Some(child)) = entries.next_dfs() {
            if child.depth() <= depth {
                break;
            }
            let bound = || Some(number(child, gimli::DW_AT_upper_bound)?.saturating_add(1));
            lengths.extend(number(child, gimli::DW_AT_count).or_else(bound));
        }
        lengths
    }

    fn keyword(entry: &Entry<'a>) -> &'static str {
        match entry.tag() {
            gimli::DW_TAG_structure_type => "struct ",
            gimli::DW_TAG_union_type => "union ",
            gimli::DW_TAG_enumeration_type => "enum ",
            _ => "",
        }
    }

    pub(super) fn type_of(&self, entry: &Entry<'a>) -> Option<Entry<'a>> {
        match entry.attr_value(gimli::DW_AT_type)? {
            AttributeValue::UnitRef(offset) => self.entry(offset),
            _ => None,
        }
    }

    pub(super) fn entry(&self, offset: UnitOffset) -> Option<Entry<'a>> {
        self.unit.entry(offset).ok()
    }

    pub(super) fn name(&self, entry: &Entry<'a>) -> Option<String> {
        let value = entry.attr_value(gimli::DW_AT_name)?;
        let name = self.dwarf.attr_string(self.unit, value).ok()?;
        Some(demangle(&name.to_string_lossy()))
    }
}

/// Returns the constant of an attribute.
pub(super) fn number(entry: &Entry<'_>, name: DwAt) -> Option<u64> {
    entry.attr_value(name)?.udata_value()
}
