//! Address translation for data: which pages the two levels hold, and what a walk of the page table takes.
//!
//! Pages are told apart by their physical numbers, so a switch of tasks forgets none. Large pages are recognised: where
//! several small pages of one aligned 2 MiB block lie in memory as they lie in the address space, at one aligned
//! distance, the block is one page. Scattered small pages do so by chance once in 512 times each.

use super::{Ticks, ticks};
use nearmiss_record::machine::{SecondTlb, Tlb};
use nearmiss_record::model::Translation as Tally;
use rustc_hash::FxHashMap;

const PAGE_LOG2: u32 = 12;
const LARGE_LOG2: u32 = 21;
/// Small pages that must lie in their places.
const TELLING_PAGES: u32 = 4;
const NOBODY: u64 = u64::MAX;
/// Tells numbers of large pages from those of small ones.
const LARGE: u64 = 1 << 63;

/// A level: sets of page numbers, most recent first.
#[derive(Clone, Debug)]
struct Level {
    ways: usize,
    set_mask: u64,
    pages: Vec<u64>,
}

/// Ways of a second level that tells none: most have 8 to 16.
fn ways_of(second: &SecondTlb) -> u32 {
    if second.ways == 0 { 16 } else { second.ways }
}

impl Level {
    fn new(entries: u32, ways: u32) -> Self {
        let entries = entries.max(1) as usize;
        let ways = if ways == 0 { entries } else { (ways as usize).min(entries) };
        let sets = 1usize << (entries / ways).max(1).ilog2();
        Level { ways, set_mask: sets as u64 - 1, pages: vec![NOBODY; sets * ways] }
    }

    /// Whether it holds the page; it does from now on.
    fn meets(&mut self, page: u64) -> bool {
        let first = (page & self.set_mask) as usize * self.ways;
        let set = &mut self.pages[first..first + self.ways];
        let at = set.iter().position(|known| *known == page);
        set[..=at.unwrap_or(self.ways - 1)].rotate_right(1);
        set[0] = page;
        at.is_some()
    }
}

/// Translation of one core's data addresses.
#[derive(Clone, Debug)]
pub(super) struct Translation {
    first: Level,
    first_large: Option<Level>,
    second: Option<Level>,
    miss: Ticks,
    walk: [Ticks; 2],
    last: u64,
    /// By distance and block: which of its small pages were met, by number within 64.
    blocks: FxHashMap<u64, u64>,
    pub counted: Tally,
}

impl Translation {
    pub fn new(tlb: &Tlb) -> Self {
        let walk = tlb.second.map_or([0; 2], |second| [second.walk_cycles, second.large_walk_cycles]);
        Translation {
            first: Level::new(tlb.entries, tlb.ways),
            first_large: (tlb.large_entries > 0).then(|| Level::new(tlb.large_entries, 0)),
            second: tlb.second.map(|second| Level::new(second.entries, ways_of(&second))),
            miss: ticks(tlb.miss_cycles.into()),
            walk: walk.map(|cycles| ticks(cycles.into())),
            last: NOBODY,
            blocks: FxHashMap::default(),
            counted: Tally::default(),
        }
    }

    /// What translating takes beyond a hit of the first level.
    #[inline]
    pub fn takes(&mut self, vaddr: u64, paddr: u64) -> Ticks {
        let page = paddr >> PAGE_LOG2;
        if page == self.last {
            return 0;
        }
        self.last = page;
        self.look_up(vaddr, paddr)
    }

    fn look_up(&mut self, vaddr: u64, paddr: u64) -> Ticks {
        let large = self.is_large(vaddr, paddr);
        let page = if large { paddr >> LARGE_LOG2 | LARGE } else { paddr >> PAGE_LOG2 };
        let first = self.first_large.as_mut().filter(|_| large).unwrap_or(&mut self.first);
        if first.meets(page) {
            return 0;
        }
        self.counted.first_misses += 1;
        if self.second.as_mut().is_none_or(|second| second.meets(page)) {
            return self.miss;
        }
        *(if large { &mut self.counted.large_walks } else { &mut self.counted.walks }) += 1;
        self.miss + self.walk[usize::from(large)]
    }

    fn is_large(&mut self, vaddr: u64, paddr: u64) -> bool {
        let distance = vaddr.wrapping_sub(paddr);
        if distance & ((1 << LARGE_LOG2) - 1) != 0 {
            return false;
        }
        let block = distance.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ paddr >> LARGE_LOG2;
        let met = self.blocks.entry(block).or_default();
        *met |= 1 << ((paddr >> PAGE_LOG2) & 63);
        met.count_ones() >= TELLING_PAGES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translation() -> Translation {
        let second = Some(SecondTlb { entries: 8, ways: 4, walk_cycles: 30, large_walk_cycles: 20 });
        Translation::new(&Tlb { entries: 4, ways: 0, miss_cycles: 7, large_entries: 2, second })
    }

    /// Small pages scattered so that no block of them looks like a large page.
    fn scattered(page: u64) -> (u64, u64) {
        (page << 12, (page * 3 + 1) << 12)
    }

    #[test]
    fn each_level_keeps_what_fits() {
        for (pages, again) in [(4, 0), (8, 7), (64, 37)] {
            let mut t = translation();
            let mut walk = || (0..pages).map(scattered).map(|(v, p)| t.takes(v, p)).last().unwrap();
            walk();
            assert_eq!(walk(), ticks(again), "{pages} pages");
        }
    }

    #[test]
    fn pages_that_lie_in_order_are_one_large_page() {
        let mut t = translation();
        (0..512).for_each(|page| {
            t.takes((1 << 30) + (page << 12), (3 << 21) + (page << 12));
        });
        assert_eq!(t.counted, Tally { first_misses: 4, walks: 3, large_walks: 1 });
        let mut t = translation();
        (0..512).for_each(|page| {
            t.takes((1 << 30) + (page << 12) + 4096, (3 << 21) + (page << 12));
        });
        assert_eq!((t.counted.walks, t.counted.large_walks), (512, 0), "one page off is no large page");
    }

    #[test]
    fn the_same_page_again_asks_nothing() {
        let mut t = translation();
        assert_eq!([t.takes(0, 4096), t.takes(8, 4104), t.takes(16, 4112)], [ticks(37), 0, 0]);
    }
}
