//! Uses of the guest's pages, read from its kernel's own notes (`struct page`) when the window closes.

use super::facts::{DeviceFacts, PageFacts, PageMarks};
use super::guest::NodeMemory;
use super::page_tables::{DIRECT_MAP, KERNEL_MAP, walk};
use nearmiss_record::symbols::{KernelPages, PageUse};
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Virtual address of the array of `struct page`, without address randomisation (mm.rst, as in `page_tables`).
const VMEMMAP: u64 = 0xffff_ea00_0000_0000;
const STRUCT_PAGE_BYTES: u64 = 64;
/// Debian's kernel has some 200 slab caches; a guest with a kernel that was taken over could show one a page.
const MOST_CACHES: usize = 4096;
/// Network devices, at most: likewise.
const MOST_DEVICES: usize = 1024;
/// Bit of `mapping` for anonymous memory, and of `compound_head` for a tail page.
const LOW_BIT: u64 = 1;
/// Bits of `page_type` of a page that has a type, before Linux 6.10, and the one that is clear for a page table
/// (include/linux/page-flags.h).
const TYPED: u32 = 0xf000_0000;
const NO_TABLE: u32 = 0x200;

/// The guest's physical memory. On this machine type what does not fit below the PCI hole continues at 4 GiB.
pub struct Physical {
    nodes: Vec<(u64, File)>,
    bytes: u64,
    low: u64,
}

impl Physical {
    /// Over the guest's memory files. Errors: no descriptor is left.
    pub fn new(memory: &[NodeMemory]) -> std::io::Result<Self> {
        let nodes = memory
            .iter()
            .map(|node| Ok((node.bytes(), node.file().try_clone_to_owned()?.into())))
            .collect::<std::io::Result<Vec<_>>>()?;
        let bytes = nodes.iter().map(|n| n.0).sum();
        Ok(Physical { nodes, bytes, low: if bytes >= 0xb000_0000 { 0x8000_0000 } else { bytes } })
    }

    /// Guest-physical address of an offset in guest RAM.
    fn address_of(&self, offset: u64) -> u64 {
        if offset < self.low { offset } else { offset - self.low + (1 << 32) }
    }

    /// Offset in guest RAM of a guest-physical address.
    fn offset_of(&self, address: u64) -> u64 {
        match address.checked_sub(1 << 32) {
            Some(above) => self.low.saturating_add(above),
            None => address,
        }
    }

    /// Physical address of a kernel address: the two fixed mappings, else through the page tables.
    fn translate(&self, top_table: u64, virtual_address: u64) -> Option<u64> {
        if virtual_address >= KERNEL_MAP {
            return Some(virtual_address - KERNEL_MAP);
        }
        if (DIRECT_MAP..DIRECT_MAP + (1 << 46)).contains(&virtual_address) {
            return Some(virtual_address - DIRECT_MAP);
        }
        walk(&|at| self.word(at), top_table, virtual_address)
    }

    /// Reads guest-physical memory; `false` where there is none.
    pub fn read(&self, address: u64, into: &mut [u8]) -> bool {
        let mut offset = self.offset_of(address);
        for (bytes, file) in &self.nodes {
            if offset < *bytes {
                return file.read_exact_at(into, offset).is_ok();
            }
            offset -= bytes;
        }
        false
    }

    /// Reads one 64-bit word.
    pub fn word(&self, address: u64) -> Option<u64> {
        let mut word = [0; 8];
        self.read(address, &mut word).then(|| u64::from_le_bytes(word))
    }
}

/// Reads the kernel's notes about every page of guest memory.
pub(super) fn kernel_pages(memory: &Physical, facts: &PageFacts) -> KernelPages {
    Survey { memory, facts, caches: HashMap::new(), pages: KernelPages::default() }.run()
}

/// Use of a page, as its own marks show it.
enum Mark {
    Slab,
    Table,
    None,
}

/// Places of the first namespace's network devices, as offsets in guest RAM, ascending.
pub(super) fn net_devices(memory: &Physical, top_table: u64, facts: &DeviceFacts) -> Vec<u64> {
    let mut devices = Vec::new();
    let next = |link: u64| memory.word(memory.translate(top_table, link)?);
    let mut link = next(facts.list);
    while let Some(at) = link.filter(|at| *at != facts.list && devices.len() < MOST_DEVICES) {
        let device = memory.translate(top_table, at.wrapping_sub(facts.link.into()));
        devices.extend(device.map(|device| memory.offset_of(device)));
        link = next(at).filter(|_| device.is_some());
    }
    devices.sort_unstable();
    devices.dedup();
    devices
}

struct Survey<'a> {
    memory: &'a Physical,
    facts: &'a PageFacts,
    /// Index of the use, by address of the `kmem_cache`.
    caches: HashMap<u64, u32>,
    pages: KernelPages,
}

impl Survey<'_> {
    fn run(mut self) -> KernelPages {
        const PER_READ: u64 = 64;
        let mut notes = vec![0; (PER_READ * STRUCT_PAGE_BYTES) as usize];
        for first in (0..self.memory.bytes / 4096).step_by(PER_READ as usize) {
            let frame = self.memory.address_of(first * 4096) / 4096;
            let Some(at) = self.translate(VMEMMAP + frame * STRUCT_PAGE_BYTES) else { continue };
            if !self.memory.read(at, &mut notes) {
                continue;
            }
            for n in 0..PER_READ {
                let note = &notes[(n * STRUCT_PAGE_BYTES) as usize..][..STRUCT_PAGE_BYTES as usize];
                if let Some((used, is_tail)) = self.classify(note) {
                    self.add(first + n, used, is_tail);
                }
            }
        }
        self.pages
    }

    /// A slab is a run of its own: its objects lie from its start on.
    fn add(&mut self, page: u64, used: u32, is_tail: bool) {
        let joins = is_tail || !matches!(self.pages.uses.get(used as usize), Some(PageUse::Slab { .. }));
        match self.pages.runs.last_mut() {
            Some((first, pages, u)) if joins && *first + *pages == page && *u == used => *pages += 1,
            _ => self.pages.runs.push((page, 1, used)),
        }
    }

    fn use_number(&mut self, page_use: PageUse) -> u32 {
        let known = self.pages.uses.iter().position(|u| *u == page_use);
        known.unwrap_or_else(|| {
            self.pages.uses.push(page_use);
            self.pages.uses.len() - 1
        }) as u32
    }

    /// Returns the use of the page with this note, and whether it is a tail page.
    fn classify(&mut self, note: &[u8]) -> Option<(u32, bool)> {
        let head = word_of(note, self.facts.compound_head)?;
        if head & LOW_BIT == 0 {
            return Some((self.classify_head(note)?, false));
        }
        let mut note = [0; STRUCT_PAGE_BYTES as usize];
        let at = self.translate(head & !LOW_BIT)?;
        // A tail page with a tail page as its head is no page.
        let is_head = self.memory.read(at, &mut note) && word_of(&note, self.facts.compound_head)? & LOW_BIT == 0;
        Some((is_head.then(|| self.classify_head(&note))??, true))
    }

    fn classify_head(&mut self, note: &[u8]) -> Option<u32> {
        let page_type = (word_of(note, self.facts.page_type & !7)? >> (8 * (self.facts.page_type & 7))) as u32;
        match self.mark(note, page_type)? {
            Mark::Slab => return self.slab(word_of(note, self.facts.slab_cache)?),
            Mark::Table => return Some(self.use_number(PageUse::PageTable)),
            Mark::None => {}
        }
        // Any other type (free pages among them) has no mapping to speak of.
        let mapping = word_of(note, self.facts.mapping)?;
        match (page_type >> 24, mapping) {
            (0xf0..=0xfe, _) | (_, 0) => None,
            (_, anonymous) if anonymous & LOW_BIT != 0 => Some(self.use_number(PageUse::User)),
            (_, file) if file >= DIRECT_MAP => Some(self.use_number(PageUse::PageCache)),
            _ => None,
        }
    }

    fn mark(&self, note: &[u8], page_type: u32) -> Option<Mark> {
        let (is_slab, is_table) = match self.facts.marks {
            PageMarks::Types { slab, table } => {
                (page_type >> 24 == u32::from(slab), page_type >> 24 == u32::from(table))
            }
            PageMarks::Flags { flags, slab_bit } => {
                (word_of(note, flags)? >> slab_bit & 1 != 0, page_type & (TYPED | NO_TABLE) == TYPED)
            }
        };
        Some(match (is_slab, is_table) {
            (true, _) => Mark::Slab,
            (_, true) => Mark::Table,
            _ => Mark::None,
        })
    }

    /// Use of the slabs of the cache at this address.
    fn slab(&mut self, cache: u64) -> Option<u32> {
        if let Some(known) = self.caches.get(&cache) {
            return Some(*known);
        }
        if self.caches.len() == MOST_CACHES {
            return None;
        }
        let page_use = self.slab_cache(cache)?;
        let number = self.use_number(page_use);
        self.caches.insert(cache, number);
        Some(number)
    }

    fn slab_cache(&self, cache: u64) -> Option<PageUse> {
        let at = self.translate(cache)?;
        let name_at = self.translate(self.memory.word(at + u64::from(self.facts.cache_name))?)?;
        let mut name = [0; 32];
        if !self.memory.read(name_at, &mut name) {
            return None;
        }
        let end = name.iter().position(|b| *b == 0)?;
        let number = |member: u32| Some(self.memory.word(at + u64::from(member))? as u32);
        Some(PageUse::Slab {
            cache: String::from_utf8_lossy(&name[..end]).into_owned(),
            object_bytes: number(self.facts.cache_object_bytes)?,
            stride_bytes: number(self.facts.cache_stride)?,
            is_shared: number(self.facts.cache_users)? as i32 > 1,
        })
    }

    fn translate(&self, virtual_address: u64) -> Option<u64> {
        self.memory.translate(self.facts.top_table, virtual_address)
    }
}

fn word_of(note: &[u8], offset: u32) -> Option<u64> {
    Some(u64::from_le_bytes(note.get(offset as usize..offset as usize + 8)?.try_into().ok()?))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Pages of memory: 0 to 7 have the notes of all 512, the page tables and a cache lie behind.
    const PAGES: usize = 512;
    const TABLES: [usize; 3] = [0x8000, 0x9000, 0xa000];
    const CACHE: usize = 0xb000;
    const NAME: usize = 0xb100;
    const TAIL: u64 = VMEMMAP + 100 * STRUCT_PAGE_BYTES + LOW_BIT;

    fn facts(marks: PageMarks) -> PageFacts {
        PageFacts {
            top_table: TABLES[0] as u64,
            mapping: 24,
            compound_head: 8,
            page_type: 48,
            marks,
            slab_cache: 16,
            cache_name: 0,
            cache_object_bytes: 8,
            cache_stride: 12,
            cache_users: 16,
        }
    }

    fn put(memory: &mut [u8], at: usize, word: u64) {
        memory[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }

    /// Two slabs of two pages at 100 and one of one page at 104, beside a page table at 105.
    fn pages(marks: PageMarks, slab_word: (usize, u64), table_type: u64) -> KernelPages {
        let mut memory = vec![0; PAGES * 4096];
        for (level, table) in TABLES.into_iter().enumerate() {
            let entry = TABLES.get(level + 1).map_or(1 | 1 << 7, |next| *next as u64 | 1);
            put(&mut memory, table + 8 * (VMEMMAP >> (39 - 9 * level) & 511) as usize, entry);
        }
        for head in [100, 102, 104] {
            put(&mut memory, head * 64 + 16, DIRECT_MAP + CACHE as u64);
            put(&mut memory, head * 64 + slab_word.0, slab_word.1);
        }
        put(&mut memory, 101 * 64 + 8, TAIL);
        put(&mut memory, 103 * 64 + 8, TAIL + 2 * STRUCT_PAGE_BYTES);
        put(&mut memory, 105 * 64 + 48, table_type);
        put(&mut memory, CACHE, DIRECT_MAP + NAME as u64);
        put(&mut memory, CACHE + 8, 2328 | 2368 << 32);
        put(&mut memory, CACHE + 16, 1);
        memory[NAME..NAME + 3].copy_from_slice(b"TCP");
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&memory, 0).unwrap();
        let bytes = memory.len() as u64;
        kernel_pages(&Physical { nodes: vec![(bytes, file)], bytes, low: bytes }, &facts(marks))
    }

    #[test]
    fn network_devices_are_those_of_the_list() {
        let mut memory = vec![0; PAGES * 4096];
        let (list, link) = (KERNEL_MAP + 0x2000, 0x48);
        let devices = [DIRECT_MAP + 0x7_0000, DIRECT_MAP + 0x5_0000];
        put(&mut memory, 0x2000, devices[0] + link);
        put(&mut memory, 0x7_0048, devices[1] + link);
        put(&mut memory, 0x5_0048, list);
        let found = |memory: &[u8]| {
            let file = tempfile::tempfile().unwrap();
            file.write_all_at(memory, 0).unwrap();
            let bytes = memory.len() as u64;
            let physical = Physical { nodes: vec![(bytes, file)], bytes, low: bytes };
            net_devices(&physical, 0x8000, &DeviceFacts { list, link: link as u32 })
        };
        assert_eq!(found(&memory), [0x5_0000, 0x7_0000]);
        put(&mut memory, 0x5_0048, devices[0] + link);
        assert_eq!(found(&memory), [0x5_0000, 0x7_0000], "a list without an end");
    }

    #[test]
    fn a_slab_is_a_run_of_its_own_in_either_kind_of_marks() {
        let by_type = pages(PageMarks::Types { slab: 0xf5, table: 0xf2 }, (48, 0xf500_0000), 0xf200_0000);
        let by_flag = pages(PageMarks::Flags { flags: 0, slab_bit: 9 }, (0, 1 << 9), 0xffff_fdff);
        let slab = PageUse::Slab { cache: "TCP".into(), object_bytes: 2328, stride_bytes: 2368, is_shared: false };
        let runs = vec![(100, 2, 0), (102, 2, 0), (104, 1, 0), (105, 1, 1)];
        assert_eq!(by_type, KernelPages { uses: vec![slab, PageUse::PageTable], runs });
        assert_eq!(by_flag, by_type);
    }
}
