//! Structures of a file, by their size: from its debug information (DWARF 5, sections 5.7 and 5.5).

use super::dwarf::{Entry, InUnit, MOST_TYPES, each_unit, number};
use std::collections::BTreeSet;
use std::path::Path;

/// A structure of C, C++ or Rust.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Structure {
    /// Name of the structure; empty where it has none.
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
    /// Name of the member; of a base class, the name of that class.
    pub name: String,
    /// Name of the member's type, without the lengths of arrays.
    pub type_name: String,
    /// Lengths of arrays, as in `[4][16]`; else empty.
    pub lengths: String,
    /// Members of the first element of an array of structures, by offset in the whole structure; of others none.
    pub of_element: Vec<Member>,
    /// Elements of such an array; of others 1.
    pub times: u64,
}

/// Returns the structures of this size that the file at `path` has debug information of, without repeats. None where it
/// has no such information.
pub fn structures(path: &Path, bytes: u64) -> Vec<Structure> {
    let mut all = BTreeSet::new();
    each_unit(path, &mut |_, unit| unit.structures(bytes, &mut all)).unwrap_or_default();
    all.into_iter().collect()
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
        let mut member = self.plain_member(entry)?;
        if let Some((element, times)) = self.elements(entry) {
            member.of_element = self.members_of(&element, member.offset);
            member.times = if member.of_element.is_empty() { 1 } else { times };
        }
        Some(member)
    }

    fn plain_member(&self, entry: &Entry<'a>) -> Option<Member> {
        let is_base = entry.tag() == gimli::DW_TAG_inheritance;
        if !is_base && entry.tag() != gimli::DW_TAG_member || entry.attr(gimli::DW_AT_external).is_some() {
            return None;
        }
        let bits = || Some(number(entry, gimli::DW_AT_data_bit_offset)? / 8);
        let offset = number(entry, gimli::DW_AT_data_member_location).or_else(bits)?;
        let typed = self.typed(entry);
        let name = if is_base { typed.type_name.clone() } else { self.name(entry).unwrap_or_default() };
        let (bytes, type_name, lengths) = (typed.bytes, typed.type_name, typed.lengths);
        Some(Member { offset, bytes, name, type_name, lengths, of_element: Vec::new(), times: 1 })
    }

    /// The structure that an entry has an array of, and how many.
    fn elements(&self, entry: &Entry<'a>) -> Option<(Entry<'a>, u64)> {
        let mut known = self.type_of(entry)?;
        let mut times = None;
        for _ in 0..MOST_TYPES {
            match known.tag() {
                gimli::DW_TAG_array_type if times.is_none() => {
                    let [length] = self.lengths(&known)[..] else { return None };
                    times = Some(length);
                }
                gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type => return Some((known, times?)),
                gimli::DW_TAG_typedef | gimli::DW_TAG_const_type | gimli::DW_TAG_volatile_type => {}
                _ => return None,
            }
            known = self.type_of(&known)?;
        }
        None
    }

    /// Members of a structure that begins at this offset of another one.
    fn members_of(&self, structure: &Entry<'a>, begin: u64) -> Vec<Member> {
        let Ok(mut entries) = self.unit.entries_at_offset(structure.offset()) else { return Vec::new() };
        let Ok(Some(own)) = entries.next_dfs() else { return Vec::new() };
        let (depth, mut members) = (own.depth(), Vec::new());
        while let Ok(Some(entry)) = entries.next_dfs() {
            if entry.depth() <= depth {
                break;
            }
            // Arrays of arrays stay whole.
            let member = (entry.depth() == depth + 1).then(|| self.plain_member(entry)).flatten();
            members.extend(member.map(|member| Member { offset: begin + member.offset, ..member }));
        }
        members.sort();
        members
    }
}

/// The structure, if its members are known.
fn sound(mut structure: Structure) -> Option<Structure> {
    structure.members.sort();
    (!structure.members.is_empty()).then_some(structure)
}
