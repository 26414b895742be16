//! The pages that were seen: facts of each, and its place in each cache's histories of lines.

use crate::model::cache::spot::Spot;
use crate::model::fast::plan::PAGE_LOG2;
use crate::model::pages::homes::Toucher;
use crate::model::pages::page_of::PageOf;
use crate::model::pages::places::Places;
use crate::model::quick_map::QuickMap;
use nearmiss_record::reference::Control;

/// Facts of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    /// Address of its first byte in the modelled memory.
    pub modelled: u64,
    /// Memory node.
    pub home: u8,
    /// Whether no later touch changes the home.
    pub is_settled: bool,
    /// CPUs that looked up lines of it in a cache.
    pub cpus: u64,
}

/// All pages seen, with the place of each cache's history of it.
pub(crate) struct Pages {
    /// Leaf of each group of pages.
    groups: QuickMap<u64, u32>,
    recent: Vec<(u64, u32)>,
    /// Number + 1 by page of the group, 0: not seen.
    leaves: Vec<[u32; GROUP]>,
    pages: Vec<Page>,
    /// Places by page and cache.
    spots: Vec<Spot>,
    caches: usize,
    places: Places,
}

const RECENT: usize = 256;
const GROUP: usize = 1 << GROUP_LOG2;
const GROUP_LOG2: u32 = 9;

impl Pages {
    pub fn new(caches: usize, places: Places) -> Self {
        Pages {
            groups: QuickMap::default(),
            recent: vec![(u64::MAX, 0); RECENT],
            leaves: Vec::new(),
            pages: Vec::new(),
            spots: Vec::new(),
            caches,
            places,
        }
    }

    /// Returns the number of the page of an address, if it was seen before and its group lately.
    #[inline]
    pub fn known(&self, address: u64) -> Option<u32> {
        let page = address >> PAGE_LOG2;
        let group = page >> GROUP_LOG2;
        let (recent, leaf) = self.recent[group as usize % RECENT];
        if recent != group {
            return None;
        }
        self.leaves[leaf as usize][page as usize % GROUP].checked_sub(1)
    }

    /// The number of the page of an address, which is touched now.
    #[inline]
    pub fn locate(&mut self, address: u64, by: Toucher) -> u32 {
        let page = self.known(address).unwrap_or_else(|| self.locate_slowly(address, by));
        let known = &mut self.pages[page as usize];
        if !known.is_settled {
            (known.home, known.is_settled) = self.places.home(address, by);
        }
        page
    }

    /// Handles control records that the homes of pages depend on, on a CPU of `node`.
    pub fn control(&mut self, cpu: usize, node: u8, control: &Control<'_>) {
        self.places.control(cpu, node, control);
    }

    /// Places pages in the order of these addresses.
    pub fn lay(&mut self, addresses: &[u64]) {
        for address in addresses {
            self.places.modelled(*address, PageOf::Program);
        }
    }

    fn locate_slowly(&mut self, address: u64, by: Toucher) -> u32 {
        let page = address >> PAGE_LOG2;
        let group = page >> GROUP_LOG2;
        let next = self.leaves.len() as u32;
        let leaf = *self.groups.entry(group).or_insert(next);
        if leaf == next {
            self.leaves.push([0; GROUP]);
        }
        self.recent[group as usize % RECENT] = (group, leaf);
        let entry = &mut self.leaves[leaf as usize][page as usize % GROUP];
        if *entry == 0 {
            let address = page << PAGE_LOG2;
            let (home, is_settled) = self.places.home(address, by);
            self.pages.push(Page { modelled: self.places.modelled(address, by.page_of), home, is_settled, cpus: 0 });
            self.spots.resize(self.spots.len() + self.caches, Spot::default());
            *entry = self.pages.len() as u32;
        }
        *entry - 1
    }

    #[inline]
    pub fn page(&self, number: u32) -> &Page {
        &self.pages[number as usize]
    }

    /// Whether a CPU used the page before, and no other but its `siblings` did.
    #[inline]
    pub fn is_alone(&self, number: u32, cpu: usize, siblings: u64) -> bool {
        let cpus = self.pages[number as usize].cpus;
        cpus & 1 << cpu != 0 && cpus & !siblings == 0
    }

    /// Notes a CPU's use of the page. Returns whether others had used it, and this one had not.
    #[inline]
    pub fn note_use(&mut self, number: u32, cpu: usize) -> bool {
        let cpus = &mut self.pages[number as usize].cpus;
        let before = *cpus;
        *cpus |= 1 << cpu;
        before != 0 && before != *cpus
    }

    /// Returns a cache's place of a page, if the cache ever saw it.
    #[inline]
    pub fn spot(&self, number: u32, cache: usize) -> Option<Spot> {
        self.spots[number as usize * self.caches + cache].if_seen()
    }

    /// Returns each cache's place of a page.
    #[inline]
    pub fn spots(&self, number: u32) -> &[Spot] {
        let first = number as usize * self.caches;
        &self.spots[first..first + self.caches]
    }

    /// Notes where a cache keeps a page from now on.
    pub fn set_spot(&mut self, number: u32, cache: usize, spot: Spot) {
        self.spots[number as usize * self.caches + cache] = spot;
    }
}
