//! Recent pages of a CPU on one of its ways: found by one look, where all pages take several.

use crate::model::cache::spot::Spot;
use crate::model::engine::Access;
use crate::model::fast::Fast;
use crate::model::fast::plan::{CachePath, PAGE_LOG2};
use nearmiss_record::model::MAX_LEVELS;
use nearmiss_record::reference::Kind;

const ROWS: usize = 1024;

/// Data of a page that a reference needs, in one line of this machine's cache.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Row {
    /// Number of the recorded page.
    pub key: u64,
    /// Address of the page's first byte in the modelled memory.
    pub modelled: u64,
    /// Number of the page among all pages seen.
    pub page: u32,
    /// Memory node.
    pub home: u8,
    /// Seen by all caches of the way, and used by this CPU alone: misses may go straight.
    pub straight: bool,
    /// Spots by step of the way; the first level has seen the page.
    pub spots: [Spot; MAX_LEVELS],
}

const _: () = assert!(size_of::<Row>() == 64);

impl Row {
    pub fn new(address: u64) -> Self {
        Row {
            key: address >> PAGE_LOG2,
            modelled: 0,
            page: 0,
            home: 0,
            straight: false,
            spots: [Spot::default(); MAX_LEVELS],
        }
    }
}

/// A way of a CPU, and its caches' places of recent pages.
pub(crate) struct Front {
    pub way: CachePath,
    /// The cache of the way's first step.
    pub first: Option<usize>,
    /// Rows by the recorded page's lower bits.
    rows: Box<[Row; ROWS]>,
}

impl Front {
    pub fn new(way: CachePath) -> Self {
        Front { way, first: way.iter().next(), rows: Box::new([Row::new(u64::MAX); ROWS]) }
    }

    /// Returns the row of the page of `address`, if it is recent.
    #[inline(always)]
    pub fn row(&self, address: u64) -> Option<&Row> {
        let key = address >> PAGE_LOG2;
        let row = &self.rows[key as usize % ROWS];
        (row.key == key).then_some(row)
    }

    /// Stores a row in place of the one with equal lower bits.
    pub fn remember(&mut self, row: Row) {
        self.rows[row.key as usize % ROWS] = row;
    }

    /// Drops a row that another CPU's use of the page may have made stale.
    pub fn forget(&mut self, address: u64) {
        let key = address >> PAGE_LOG2;
        let row = &mut self.rows[key as usize % ROWS];
        if row.key == key {
            *row = Row::new(u64::MAX);
        }
    }
}

impl Fast {
    /// Keeps the data that a CPU's references need of a page, if its first level has seen it and its home is settled.
    pub(in crate::model) fn remember(&mut self, cpu: usize, kind: Kind, address: u64) -> Option<Row> {
        let page = self.pages.known(address)?;
        let front = &mut self.fronts[cpu][usize::from(kind == Kind::Fetch)];
        self.pages.spot(page, front.first?)?;
        let known = self.pages.page(page);
        if !known.is_settled {
            return None;
        }
        let mut row = Row { modelled: known.modelled, page, home: known.home, ..Row::new(address) };
        row.straight = self.goes_straight && self.pages.is_alone(page, cpu, self.plan.siblings[cpu]);
        for (step, at) in front.way.iter().enumerate() {
            match self.pages.spot(page, at) {
                Some(spot) => row.spots[step] = spot,
                None => row.straight = false,
            }
        }
        front.remember(row);
        Some(row)
    }

    /// Whether the first level of a way has the line of an access.
    pub(in crate::model) fn has_in_first(&self, row: &Row, access: &Access) -> bool {
        let cache = &self.caches[self.plan.way(access.cpu, access.kind).at(0)];
        cache.frame_of(cache.line_of(row.spots[0], access.address)).is_some()
    }
}
