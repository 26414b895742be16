//! Places of recorded pages in the modelled machine's memory; recent pages are found by one look.

use crate::model::fast::plan::PAGE_LOG2;
use crate::model::pages::page_of::PageOf;
use crate::model::pages::places::Places;
use crate::model::quick_map::QuickMap;
use nearmiss_record::reference::Kind;

const ROWS: usize = 4096;
const OFFSET: u64 = (1 << PAGE_LOG2) - 1;

/// From recorded to modelled addresses.
pub(super) struct Pages {
    places: Places,
    /// Number and modelled address of a recorded page, by the number's lower bits.
    recent: Box<[(u64, u64); ROWS]>,
    known: QuickMap<u64, u64>,
}

impl Pages {
    pub fn new(places: Places) -> Self {
        Pages { places, recent: Box::new([(u64::MAX, 0); ROWS]), known: QuickMap::default() }
    }

    /// Returns the modelled address of a recorded one; its page is placed now if it was not seen before.
    #[inline(always)]
    pub fn modelled(&mut self, address: u64, kind: Kind, vaddr: u64) -> u64 {
        let page = address >> PAGE_LOG2;
        let (recent, modelled) = self.recent[page as usize % ROWS];
        (if recent == page { modelled } else { self.modelled_slowly(page, PageOf::first_seen(kind, vaddr)) })
            | address & OFFSET
    }

    #[inline(never)]
    fn modelled_slowly(&mut self, page: u64, of: PageOf) -> u64 {
        let places = &mut self.places;
        let modelled = *self.known.entry(page).or_insert_with(|| places.modelled(page << PAGE_LOG2, of));
        self.recent[page as usize % ROWS] = (page, modelled);
        modelled
    }
}
