//! The named variable at an address of a process.

use super::maps::{AddressSpace, Mapping};
use nearmiss_record::symbols::{ModuleData, Segment};
use nearmiss_symbols::Elf;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// Variables of the files that were looked up.
#[derive(Default)]
pub struct Variables {
    files: HashMap<Arc<Path>, Option<File>>,
}

struct File {
    elf: Elf,
    data: ModuleData,
}

/// The loader maps whole pages.
const PAGE: u64 = 4096;

impl File {
    /// Linked address of the first byte of an executable mapping. Such a mapping begins with the page that a segment
    /// begins in; the first bytes of that page may be another segment's in the file.
    fn linked_start(&self, file_offset: u64) -> Option<u64> {
        let begins = |s: &&Segment| s.file_offset & !(PAGE - 1) == file_offset;
        match self.data.segments.iter().find(begins) {
            Some(segment) => Some(segment.vaddr.wrapping_sub(segment.file_offset - file_offset)),
            None => self.elf.address(file_offset),
        }
    }
}

impl Variables {
    /// The variable that holds the address, with the offset in it if there is one; `None` on a heap or a stack.
    pub fn name(&mut self, space: &AddressSpace, address: u64) -> Option<String> {
        space.iter().find_map(|(start, mapping)| self.in_file(*start, mapping, address))
    }

    fn in_file(&mut self, start: u64, mapping: &Mapping, address: u64) -> Option<String> {
        let file = self.files.entry(mapping.path.clone()).or_insert_with(|| {
            let elf = Elf::open(&mapping.path)?;
            let data = elf.data(&mapping.path.to_string_lossy());
            Some(File { elf, data })
        });
        let file = file.as_ref()?;
        // The loader moves a file as a whole: its executable mapping gives the distance.
        let moved = start.wrapping_sub(file.linked_start(mapping.file_offset)?);
        let linked = address.wrapping_sub(moved);
        let object = file.data.objects.get(file.data.object_at(linked)?)?;
        match linked - object.vaddr {
            0 => Some(object.name.clone()),
            offset => Some(format!("{}+{offset:#x}", object.name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::maps::AddressSpaces;
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[used]
    static NAMED: [AtomicU64; 4] = [const { AtomicU64::new(1) }; 4];

    #[test]
    fn a_variable_of_this_program_is_found() {
        let mut spaces = AddressSpaces::default();
        let pid = std::process::id() as i32;
        spaces.read(pid);
        let mut variables = Variables::default();
        let at = |index: usize| std::ptr::from_ref(&NAMED[index]) as u64;
        let name = variables.name(spaces.of(pid).unwrap(), at(0)).unwrap();
        assert!(name.ends_with("NAMED"), "{name}");
        assert_eq!(variables.name(spaces.of(pid).unwrap(), at(2)), Some(format!("{name}+0x10")));
        let on_heap = Box::new(7u64);
        assert_eq!(variables.name(spaces.of(pid).unwrap(), std::ptr::from_ref(&*on_heap) as u64), None);
    }
}
