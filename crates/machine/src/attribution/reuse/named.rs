//! Reused pages under the names of the objects that they went to.

use super::super::data_tables::{Namer, Title};
use super::super::names::Names;
use super::super::objects::Key;
use super::super::pages::PageSet;
use super::super::sites::{Site, Sites};
use super::{Allocator, HeapReuse};
use nearmiss_record::symbols::Symbols;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Pages of a run's heap that an allocator would have handed out again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reuse {
    /// Pages of heap blocks that the kernel gave out, by recorded part.
    pub first_touches: Vec<u64>,
    /// Instructions of the command, by recorded part.
    pub instructions: Vec<u64>,
    /// One for each limit.
    pub limits: Vec<ReuseWithin>,
    /// The objects that the first limit's pages went to, most first.
    pub objects: Vec<ReusedObject>,
}

/// An allocator that keeps so many spare pages at most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReuseWithin {
    /// Most spare pages that it keeps.
    pub limit: u64,
    /// Pages handed out again instead of new ones, by recorded part.
    pub again: Vec<u64>,
    /// Spare pages at once, at most.
    pub spare_most: u64,
}

impl ReuseWithin {
    /// Pages handed out again in all parts.
    pub fn pages(&self) -> u64 {
        self.again.iter().sum()
    }
}

/// Blocks of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReusedObject {
    /// As in the object table.
    pub name: String,
    /// Site of the allocation, where the call is known.
    pub site: Option<Site>,
    /// Pages that would have been handed out again.
    pub pages: u64,
}

pub(super) fn reuse(reuse: &HeapReuse, names: &Names<'_>, symbols: &Symbols) -> Reuse {
    let no_pages = PageSet::default();
    let rows = &reuse.touches.tracker.objects.rows;
    let (namer, sites) = (Namer::new(rows, &no_pages, names), Sites::new(names, &reuse.touches.log, symbols));
    let mut found: BTreeMap<Title, (Option<Site>, u64)> = BTreeMap::new();
    let mut objects: Vec<_> = reuse.objects.iter().collect();
    objects.sort_unstable_by_key(|(object, _)| object.0);
    for (object, pages) in objects {
        let key = &rows[object.0 as usize].key;
        let row = found.entry(namer.title(key)).or_default();
        row.0 = row.0.take().or_else(|| if let Key::Heap { context } = key { sites.of(*context) } else { None });
        row.1 += pages;
    }
    let named = |(title, (site, pages)): (Title, (Option<Site>, u64))| ReusedObject { name: title.name, site, pages };
    let mut objects: Vec<_> = found.into_iter().map(named).collect();
    objects.sort_by_key(|object| Reverse(object.pages));
    Reuse {
        first_touches: reuse.first_touches.clone(),
        instructions: reuse.instructions.clone(),
        limits: reuse.allocators.iter().map(within).collect(),
        objects,
    }
}

fn within(allocator: &Allocator) -> ReuseWithin {
    ReuseWithin { limit: allocator.limit, again: allocator.again.clone(), spare_most: allocator.spare_most }
}
