//! Address translation for data: which pages the two levels hold, and the cost of a walk of the page table.
//!
//! Pages are identified by their physical numbers, so a switch of tasks forgets none. Large pages are recognised: if
//! several small pages of one aligned 2 MiB block lie in memory as they lie in the address space, at one aligned
//! distance, the block is one page. Scattered small pages do so by chance once in 512 times each. Memory that is to lie
//! in large pages, by the machine or by a policy, has its pages identified by address space and virtual number. The set
//! of a page follows from its virtual number, as a core looks it up before the physical one is known. The second level
//! folds the number, so that pages at powers of two of pages spread (Gras et al., Translation Leak-aside Buffer, USENIX
//! Security 2018; `experiments/cycles/pages-apart.txt`).

use super::{Ticks, ticks};
use nearmiss_record::machine::{Machine, SecondTlb, Tlb};
use nearmiss_record::model::Translation as Tally;
use nearmiss_record::policy::PagePolicy;
use rustc_hash::FxHashMap;

const PAGE_LOG2: u32 = 12;
const LARGE_LOG2: u32 = 21;
/// Small pages that must lie in their places.
const PAGES_IN_PLACE: u32 = 4;
const NOBODY: u64 = u64::MAX;
/// Marks numbers of large pages.
const LARGE: u64 = 1 << 63;
/// Marks virtual numbers.
const VIRTUAL: u64 = 1 << 62;
const SPACE_SHIFT: u32 = 64 - LARGE_LOG2 - 16;

/// A level: sets of page numbers, most recent first.
#[derive(Clone, Debug)]
pub(super) struct TlbLevel {
    ways: usize,
    set_mask: u64,
    /// The set is the number's lowest bits and the ones above them, by exclusive or.
    folds: bool,
    pages: Vec<u64>,
}

/// Ways of a second level. If not specified, they are the most up to 16 with which the sets are a power of two.
fn ways_of(second: &SecondTlb) -> u32 {
    let fits = |ways: &u32| second.entries.is_multiple_of(*ways) && (second.entries / ways).is_power_of_two();
    if second.ways == 0 { (1..=16).rev().find(fits).unwrap_or(16) } else { second.ways }
}

impl TlbLevel {
    pub fn new(entries: u32, ways: u32) -> Self {
        let entries = entries.max(1) as usize;
        let ways = if ways == 0 { entries } else { (ways as usize).min(entries) };
        let sets = 1usize << (entries / ways).max(1).ilog2();
        TlbLevel { ways, set_mask: sets as u64 - 1, folds: false, pages: vec![NOBODY; sets * ways] }
    }

    fn second(figures: &SecondTlb) -> Self {
        TlbLevel { folds: true, ..TlbLevel::new(figures.entries, ways_of(figures)) }
    }

    fn set_of(&self, number: u64) -> usize {
        let above = if self.folds { number >> self.set_mask.count_ones() } else { 0 };
        ((number ^ above) & self.set_mask) as usize
    }

    /// Whether it holds the page of this virtual number; it does from now on.
    pub fn access(&mut self, page: u64, number: u64) -> bool {
        let first = self.set_of(number) * self.ways;
        let set = &mut self.pages[first..first + self.ways];
        let at = set.iter().position(|known| *known == page);
        set[..=at.unwrap_or(self.ways - 1)].rotate_right(1);
        set[0] = page;
        at.is_some()
    }
}

/// Translation of one core's data addresses.
#[derive(Clone, Debug)]
pub(crate) struct Translation {
    first: TlbLevel,
    first_large: Option<TlbLevel>,
    second: Option<TlbLevel>,
    /// Both levels hold small pieces of large pages.
    large_pages_split: bool,
    /// Virtual addresses that are to lie in large pages: ascending, disjoint.
    to_be_large: Vec<(u64, u64)>,
    miss: Ticks,
    walk: [Ticks; 2],
    last: u64,
    /// Number of the page-table entry that the latest look-up walked to.
    walked: Option<u64>,
    /// Small pages seen, by number within 64, by distance and block.
    blocks: FxHashMap<u64, u64>,
    pub counted: Tally,
}

impl Translation {
    pub fn new(tlb: &Tlb, pages: &PagePolicy) -> Self {
        let walk = tlb.second.map_or([0; 2], |second| [second.walk_cycles, second.large_walk_cycles]);
        Translation {
            first: TlbLevel::new(tlb.entries, tlb.ways),
            first_large: (tlb.large_entries > 0).then(|| TlbLevel::new(tlb.large_entries, 0)),
            second: tlb.second.as_ref().map(TlbLevel::second),
            large_pages_split: tlb.large_pages_split,
            to_be_large: to_be_large(tlb, pages),
            miss: ticks(tlb.miss_cycles.into()),
            walk: walk.map(|cycles| ticks(cycles.into())),
            last: NOBODY,
            walked: None,
            blocks: FxHashMap::default(),
            counted: Tally::default(),
        }
    }

    /// Returns the cost of translation beyond a hit of the first level; `space` separates equal virtual addresses of
    /// several spaces.
    #[inline]
    pub fn takes(&mut self, vaddr: u64, paddr: u64, space: u64) -> Ticks {
        let page = paddr >> PAGE_LOG2;
        if page == self.last {
            return 0;
        }
        self.last = page;
        self.look_up(vaddr, paddr, space)
    }

    fn look_up(&mut self, vaddr: u64, paddr: u64, space: u64) -> Ticks {
        let forced_large = self.is_to_be_large(vaddr);
        let large = forced_large || self.is_large(vaddr, paddr);
        let whole = large && !self.large_pages_split;
        let page = match (forced_large, whole) {
            (true, true) => vaddr >> LARGE_LOG2 | space << SPACE_SHIFT | LARGE | VIRTUAL,
            (_, true) => paddr >> LARGE_LOG2 | LARGE,
            _ => paddr >> PAGE_LOG2,
        };
        let number = vaddr >> if whole { LARGE_LOG2 } else { PAGE_LOG2 };
        let first = self.first_large.as_mut().filter(|_| whole).unwrap_or(&mut self.first);
        if first.access(page, number) {
            return 0;
        }
        self.counted.first_misses += 1;
        if self.second.as_mut().is_none_or(|second| second.access(page, number)) {
            return self.miss;
        }
        *(if large { &mut self.counted.large_walks } else { &mut self.counted.walks }) += 1;
        self.walked = Some(entry(vaddr, large, space));
        self.miss + self.walk[usize::from(large)]
    }

    /// Takes the number of the page-table entry that the latest look-up walked to, if it walked. Neighbouring pages of
    /// one space and size have neighbouring numbers.
    pub fn take_walked(&mut self) -> Option<u64> {
        self.walked.take()
    }

    fn is_to_be_large(&self, vaddr: u64) -> bool {
        let at = self.to_be_large.partition_point(|(from, _)| *from <= vaddr);
        at > 0 && vaddr < self.to_be_large[at - 1].1
    }

    /// Whether the page at this address belongs to a large one as recorded, as far as seen.
    pub fn is_large(&mut self, vaddr: u64, paddr: u64) -> bool {
        let distance = vaddr.wrapping_sub(paddr);
        if distance & ((1 << LARGE_LOG2) - 1) != 0 {
            return false;
        }
        let block = distance.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ paddr >> LARGE_LOG2;
        let seen = self.blocks.entry(block).or_default();
        *seen |= 1 << ((paddr >> PAGE_LOG2) & 63);
        seen.count_ones() >= PAGES_IN_PLACE
    }
}

/// Number of the page-table entry of an address. The kernel's pages have one table for all spaces.
fn entry(vaddr: u64, large: bool, space: u64) -> u64 {
    const ENTRIES_LOG2: u32 = 48 - PAGE_LOG2;
    let space = if vaddr >> 63 != 0 { 0 } else { space };
    let (log2, level) = if large { (LARGE_LOG2, LARGE) } else { (PAGE_LOG2, 0) };
    (vaddr >> log2) & ((1 << ENTRIES_LOG2) - 1) | space << ENTRIES_LOG2 | level
}

/// Whether the entry of this number leads to a large page.
pub(super) fn is_of_large(entry: u64) -> bool {
    entry & LARGE != 0
}

/// The ranges of a policy, sorted and joined; all of user mode where the machine has that in large pages.
fn to_be_large(tlb: &Tlb, pages: &PagePolicy) -> Vec<(u64, u64)> {
    let mut sorted = match pages {
        _ if tlb.user_pages_large => vec![(0, 1 << 63)],
        PagePolicy::Recorded => Vec::new(),
        PagePolicy::Large { ranges } => ranges.clone(),
    };
    sorted.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (from, to) in sorted {
        match joined.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => joined.push((from, to)),
        }
    }
    joined
}

/// Ticks from a walk of the page table to the next one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ApartWalks {
    pub small: Ticks,
    pub large: Ticks,
    /// To a small page of a table that was not walked to for long.
    pub far: Ticks,
}

impl ApartWalks {
    pub fn new(machine: &Machine) -> Self {
        let second = machine.tlb.and_then(|tlb| tlb.second).unwrap_or_default();
        let [small, large, far] =
            [second.apart_walk_cycles, second.large_apart_walk_cycles, second.far_apart_walk_cycles];
        let [small, large, far] = [small, large, far.max(small)].map(|cycles| ticks(cycles.into()));
        ApartWalks { small, large, far }
    }

    /// Behind a walk to an entry of a small page or a large one.
    pub fn behind(&self, is_large: bool, is_far: bool) -> Ticks {
        match (is_large, is_far) {
            (true, _) => self.large,
            (false, true) => self.far,
            (false, false) => self.small,
        }
    }
}

#[cfg(test)]
#[path = "translation_tests.rs"]
mod tests;
