//! Pages that a first level met lately: found by one look, where all pages take three.

use super::history::Spot;
use super::plan::PAGE_LOG2;

const ROWS: usize = 512;

/// Where a cache keeps the pages it met lately.
pub(crate) struct Near {
    /// A row a page, by its number: the number and the spot.
    rows: Box<[(u64, Spot); ROWS]>,
}

impl Near {
    pub fn new() -> Self {
        Near { rows: Box::new([(u64::MAX, Spot::default()); ROWS]) }
    }

    /// Where the page of `address` is kept, if it is remembered.
    #[inline]
    pub fn spot(&self, address: u64) -> Option<Spot> {
        let page = address >> PAGE_LOG2;
        let (known, spot) = self.rows[page as usize % ROWS];
        (known == page).then_some(spot)
    }

    /// Remembers it.
    pub fn remember(&mut self, address: u64, spot: Spot) {
        let page = address >> PAGE_LOG2;
        self.rows[page as usize % ROWS] = (page, spot);
    }
}
