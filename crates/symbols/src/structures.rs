//! Structures of a file, by their size: from its debug information (DWARF 5, sections 5.7 and 5.5).

use super::demangle::demangle;
use gimli::{
    AttributeValue, DebuggingInformationEntry, DwAt, Dwarf, EndianSlice, LittleEndian as Little, Unit, UnitOffset,
};
use memmap2::Mmap;
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

/// Types of types that are followed to a name, at most: a damaged file may have a ring.
const MOST_TYPES: usize = 32;
/// Bytes of a pointer.
const POINTER: u64 = 8;

type Bytes<'a> = EndianSlice<'a, Little>;
type Entry<'a> = DebuggingInformationEntry<Bytes<'a>>;

/// A structure of C, C++ or Rust.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Structure {
    /// Its name; empty where it has none.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// By offset.
    pub members: Vec<Member>,
}

/// A member of a structure.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    /// First byte.
    pub offset: u64,
    /// Size in bytes; 0: unknown.
    pub bytes: u64,
    /// Its name; of a base class, the name of that class.
    pub name: String,
    /// Name of its type, without the lengths of arrays.
    pub type_name: String,
    /// Lengths of arrays, as in `[4][16]`; else empty.
    pub lengths: String,
}

/// Returns the structures of this size that the file at `path` has debug information of, without repeats. None where it
/// has no such information.
pub fn structures(path: &Path, bytes: u64) -> Vec<Structure> {
    found(path, bytes).unwrap_or_default().into_iter().collect()
}

fn found(path: &Path, bytes: u64) -> Option<BTreeSet<Structure>> {
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
    let (mut units, mut all) = (dwarf.units(), BTreeSet::new());
    // Debug information that cannot be read ends the walk: the structures so far stand.
    while let Ok(Some(header)) = units.next() {
        if let Ok(unit) = dwarf.unit(header) {
            InUnit { dwarf: &dwarf, unit: &unit }.structures(bytes, &mut all);
        }
    }
    Some(all)
}

/// One unit of compilation.
struct InUnit<'d, 'a> {
    dwarf: &'d Dwarf<Bytes<'a>>,
    unit: &'d Unit<Bytes<'a>>,
}

impl<'a> InUnit<'_, 'a> {
    fn structures(&self, bytes: u64, all: &mut BTreeSet<Structure>) {
        let mut entries = self.unit.entries();
        // The structure under way, and its depth.
        let mut current: Option<(isize, Structure)> = None;
        while let Ok(Some(entry)) = entries.next_dfs() {
            if let Some((_, done)) = current.take_if(|(depth, _)| entry.depth() <= *depth) {
                all.extend(sound(done));
            }
            let is_structure = matches!(entry.tag(), gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type);
            match &mut current {
                Some((depth, structure)) if entry.depth() == *depth + 1 => structure.members.extend(self.member(entry)),
                None if is_structure && number(entry, gimli::DW_AT_byte_size) == Some(bytes) => {
                    let name = self.name(entry).unwrap_or_default();
                    current = Some((entry.depth(), Structure { name, bytes, members: Vec::new() }));
                }
                _ => {}
            }
        }
        all.extend(current.and_then(|(_, done)| sound(done)));
    }

    fn member(&self, entry: &Entry<'a>) -> Option<Member> {
        let is_base = entry.tag() == gimli::DW_TAG_inheritance;
        if !is_base && entry.tag() != gimli::DW_TAG_member || entry.attr(gimli::DW_AT_external).is_some() {
            return None;
        }
        let bits = || Some(number(entry, gimli::DW_AT_data_bit_offset)? / 8);
        let offset = number(entry, gimli::DW_AT_data_member_location).or_else(bits)?;
        let mut member = Member { offset, ..self.typed(entry) };
        member.name = if is_base { member.type_name.clone() } else { self.name(entry).unwrap_or_default() };
        Some(member)
    }

    /// Size and name of an entry's type.
    fn typed(&self, entry: &Entry<'a>) -> Member {
        let (mut member, mut at) = (Member::default(), self.type_of(entry));
        let (mut suffix, mut count) = (String::new(), 1u64);
        for _ in 0..MOST_TYPES {
            let Some(known) = at.as_ref() else { break };
            let size = number(known, gimli::DW_AT_byte_size);
            match known.tag() {
                gimli::DW_TAG_pointer_type | gimli::DW_TAG_reference_type => {
                    member.bytes = if member.bytes == 0 { count * POINTER } else { member.bytes };
                    suffix.insert(0, '*');
                }
                gimli::DW_TAG_array_type if suffix.is_empty() => {
                    for length in self.lengths(known) {
                        member.lengths.push_str(&format!("[{length}]"));
                        count = count.saturating_mul(length);
                    }
                }
                _ if member.bytes == 0 => member.bytes = size.unwrap_or(0).saturating_mul(count),
                _ => {}
            }
            if let Some(name) = self.name(known).filter(|_| member.type_name.is_empty()) {
                member.type_name = format!("{}{name}", Self::keyword(known));
            }
            at = self.type_of(known);
        }
        if member.type_name.is_empty() {
            member.type_name = "void".to_owned();
        }
        if !suffix.is_empty() {
            member.type_name = format!("{} {suffix}", member.type_name);
        }
        member
    }

    fn lengths(&self, array: &Entry<'a>) -> Vec<u64> {
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

    fn type_of(&self, entry: &Entry<'a>) -> Option<Entry<'a>> {
        match entry.attr_value(gimli::DW_AT_type)? {
            AttributeValue::UnitRef(offset) => self.entry(offset),
            _ => None,
        }
    }

    fn entry(&self, offset: UnitOffset) -> Option<Entry<'a>> {
        self.unit.entry(offset).ok()
    }

    fn name(&self, entry: &Entry<'a>) -> Option<String> {
        let value = entry.attr_value(gimli::DW_AT_name)?;
        let name = self.dwarf.attr_string(self.unit, value).ok()?;
        Some(demangle(&name.to_string_lossy()))
    }
}

/// The structure, if its members are known.
fn sound(mut structure: Structure) -> Option<Structure> {
    structure.members.sort();
    (!structure.members.is_empty()).then_some(structure)
}

fn number(entry: &Entry<'_>, name: DwAt) -> Option<u64> {
    entry.attr_value(name)?.udata_value()
}
