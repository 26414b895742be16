//! Objects of the kernel's structures, by their place in slabs or elsewhere.

use nearmiss_record::kernel_structures::LINE_BYTES;
use nearmiss_record::symbols::{KernelPages, KernelStructure, PageUse, Symbols};
use rustc_hash::FxHashMap;

const PAGE_BYTES: u64 = 4096;
/// Bytes of an object, at most: the largest that Linux keeps in slabs, many times over.
const MOST_BYTES: u32 = 1 << 20;

/// A reference's place in an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Index of the structure.
    pub structure: usize,
    /// Number of the object among those with references.
    pub object: u32,
    /// Bytes into the object.
    pub offset: u32,
}

/// Finds objects.
pub(super) struct Places<'a> {
    pages: &'a KernelPages,
    /// By use of pages: index of the structure, and bytes from one object to the next.
    slabs: Vec<Option<(usize, u64)>>,
    /// Numbers of objects by run of pages and place in it.
    objects: FxHashMap<(usize, u64), u32>,
    /// Single objects: first byte, the byte behind the last one, and the structure; ascending.
    single: Vec<(u64, u64, usize)>,
    /// By structure: objects with references, and whether all begin with a line.
    pub found: Vec<(u64, bool)>,
    last: usize,
}

impl<'a> Places<'a> {
    pub fn new(symbols: &'a Symbols) -> Self {
        let structures = &symbols.kernel_structures;
        let slab = |page_use: &PageUse| match page_use {
            PageUse::Slab { cache, stride_bytes: stride @ 1..=MOST_BYTES, .. } => {
                let holds = |structure: &KernelStructure| structure.caches.contains(cache);
                Some((structures.iter().position(holds)?, u64::from(*stride)))
            }
            _ => None,
        };
        let bounds = |(at, structure): (usize, &KernelStructure)| {
            let to = |from: &u64| from.saturating_add(u64::from(structure.bytes.min(MOST_BYTES)));
            structure.places.iter().map(|from| (*from, to(from), at)).collect::<Vec<_>>()
        };
        let mut single: Vec<(u64, u64, usize)> = structures.iter().enumerate().flat_map(bounds).collect();
        single.sort_unstable();
        Places {
            single,
            pages: &symbols.kernel_pages,
            slabs: symbols.kernel_pages.uses.iter().map(slab).collect(),
            objects: FxHashMap::default(),
            found: vec![(0, true); structures.len()],
            last: 0,
        }
    }

    /// Place of a physical address; none outside of known objects.
    #[inline]
    pub fn find(&mut self, paddr: u64) -> Option<Place> {
        let behind = self.single.partition_point(|(from, _, _)| *from <= paddr);
        if let Some((from, to, structure)) = behind.checked_sub(1).map(|at| self.single[at])
            && paddr < to
        {
            // No run of pages has this number.
            let object = self.number((usize::MAX, from), structure, from);
            return Some(Place { structure, object, offset: (paddr - from) as u32 });
        }
        let page = paddr / PAGE_BYTES;
        let run = match self.pages.runs.get(self.last) {
            Some((first, pages, _)) if page.wrapping_sub(*first) < *pages => self.last,
            _ => self.pages.run(page)?,
        };
        self.last = run;
        let (first, pages, used) = self.pages.runs[run];
        let (structure, stride) = self.slabs.get(used as usize).copied()??;
        let within = paddr.checked_sub(first.checked_mul(PAGE_BYTES)?)?;
        let (slot, offset) = (within / stride, within % stride);
        // Behind the last object of a slab lies a rest.
        if (slot + 1).checked_mul(stride)? > pages.checked_mul(PAGE_BYTES)? {
            return None;
        }
        let object = self.number((run, slot), structure, slot * stride);
        Some(Place { structure, object, offset: offset as u32 })
    }

    /// Number of the object of this structure under this key, which begins at an address that ends like `start`.
    fn number(&mut self, key: (usize, u64), structure: usize, start: u64) -> u32 {
        let next = self.objects.len() as u32;
        let object = *self.objects.entry(key).or_insert(next);
        if object == next {
            let (objects, begins_lines) = &mut self.found[structure];
            *objects += 1;
            *begins_lines &= start.is_multiple_of(LINE_BYTES.into());
        }
        object
    }
}
