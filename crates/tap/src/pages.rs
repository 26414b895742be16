//! Uses of the guest's pages, read from its kernel's own notes (`struct page`) when the window closes.

use super::facts::PageFacts;
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
/// Bit of `mapping` for anonymous memory, and of `compound_head` for a tail page.
const LOW_BIT: u64 = 1;

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

    /// Reads guest-physical memory; `false` where there is none.
    pub fn read(&self, address: u64, into: &mut [u8]) -> bool {
        let mut offset = match address.checked_sub(1 << 32) {
            Some(above) => self.low + above,
            None => address,
        };
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
                if let Some(used) = self.classify(note) {
                    self.add(first + n, used);
                }
            }
        }
        self.pages
    }

    fn add(&mut self, page: u64, used: u32) {
        match self.pages.runs.last_mut() {
            Some((first, pages, u)) if *first + *pages == page && *u == used => *pages += 1,
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

    fn classify(&mut self, note: &[u8]) -> Option<u32> {
        let head = word_of(note, self.facts.compound_head)?;
        if head & LOW_BIT != 0 {
            let mut note = [0; STRUCT_PAGE_BYTES as usize];
            let at = self.translate(head & !LOW_BIT)?;
            // A tail page with a tail page as its head is no page.
            return (self.memory.read(at, &mut note) && word_of(&note, self.facts.compound_head)? & LOW_BIT == 0)
                .then(|| self.classify_head(&note))?;
        }
        self.classify_head(note)
    }

    fn classify_head(&mut self, note: &[u8]) -> Option<u32> {
        let page_type = (word_of(note, self.facts.page_type & !7)? >> (8 * (self.facts.page_type & 7)) >> 24) as u8;
        if page_type == self.facts.slab {
            let cache = word_of(note, self.facts.slab_cache)?;
            if let Some(known) = self.caches.get(&cache) {
                return Some(*known);
            }
            if self.caches.len() == MOST_CACHES {
                return None;
            }
            let (name, object_bytes) = self.slab_cache(cache)?;
            let number = self.use_number(PageUse::Slab { cache: name, object_bytes });
            self.caches.insert(cache, number);
            return Some(number);
        }
        if page_type == self.facts.table {
            return Some(self.use_number(PageUse::PageTable));
        }
        // Any other type (free pages among them) has no mapping to speak of.
        let mapping = word_of(note, self.facts.mapping)?;
        match (page_type, mapping) {
            (0xf0..=0xfe, _) | (_, 0) => None,
            (_, anonymous) if anonymous & LOW_BIT != 0 => Some(self.use_number(PageUse::User)),
            (_, file) if file >= DIRECT_MAP => Some(self.use_number(PageUse::PageCache)),
            _ => None,
        }
    }

    fn slab_cache(&self, cache: u64) -> Option<(String, u32)> {
        let at = self.translate(cache)?;
        let name_at = self.translate(self.memory.word(at + u64::from(self.facts.cache_name))?)?;
        let mut name = [0; 32];
        if !self.memory.read(name_at, &mut name) {
            return None;
        }
        let end = name.iter().position(|b| *b == 0)?;
        let object_bytes = self.memory.word(at + u64::from(self.facts.cache_object_bytes))? as u32;
        Some((String::from_utf8_lossy(&name[..end]).into_owned(), object_bytes))
    }

    /// Physical address of a kernel address: the two fixed mappings, else through the page tables.
    fn translate(&self, virtual_address: u64) -> Option<u64> {
        if virtual_address >= KERNEL_MAP {
            return Some(virtual_address - KERNEL_MAP);
        }
        if (DIRECT_MAP..DIRECT_MAP + (1 << 46)).contains(&virtual_address) {
            return Some(virtual_address - DIRECT_MAP);
        }
        walk(&|at| self.memory.word(at), self.facts.top_table, virtual_address)
    }
}

fn word_of(note: &[u8], offset: u32) -> Option<u64> {
    Some(u64::from_le_bytes(note.get(offset as usize..offset as usize + 8)?.try_into().ok()?))
}
