//! Walks under the names of the objects that they lead to.

use super::super::data_tables::{Namer, Title};
use super::super::names::Names;
use super::super::objects::Key;
use super::super::pages::PageSet;
use super::super::sites::{Site, Sites};
use super::block::Block;
use super::{LARGE_LOG2, LookUps, PAGE_LOG2, PageWalks};
use nearmiss_record::model::ObjectKind;
use nearmiss_record::symbols::Symbols;
use std::collections::{BTreeMap, BTreeSet};

const LARGE_BYTES: u64 = 1 << LARGE_LOG2;

/// Blocks of 2 MiB that could lie in large pages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reach {
    /// Virtual addresses of the blocks, half-open; ascending, disjoint.
    pub ranges: Vec<(u64, u64)>,
    /// Number of blocks, by process.
    pub blocks: u64,
    /// Page faults of large pages that the first touches would be.
    pub large_faults: f64,
    /// Small pages that were touched.
    pub pages: u64,
    /// Small pages that were touched for the first time.
    pub first_touches: u64,
}

impl Reach {
    /// Bytes of the pages that were touched.
    pub fn touched_bytes(&self) -> u64 {
        self.pages << PAGE_LOG2
    }

    /// Bytes of the blocks: memory in large pages.
    pub fn large_bytes(&self) -> u64 {
        self.blocks << LARGE_LOG2
    }

    fn add(&mut self, start: u64, block: &Block, in_parts: bool) {
        self.blocks += 1;
        self.large_faults += block.large_faults(in_parts);
        self.pages += block.pages();
        self.first_touches += block.first_touches;
        match self.ranges.last_mut() {
            Some(last) if last.0 <= start && start <= last.1 => last.1 = last.1.max(start + LARGE_BYTES),
            _ => self.ranges.push((start, start + LARGE_BYTES)),
        }
    }

    /// Joins the ranges of several processes.
    fn join(&mut self) {
        self.ranges.sort_unstable();
        self.ranges.dedup_by(|next, last| {
            let joins = next.0 <= last.1;
            last.1 = if joins { last.1.max(next.1) } else { last.1 };
            joins
        });
    }
}

/// Objects of one name that walks lead to.
#[derive(Clone, Debug, PartialEq)]
pub struct WalkedObject {
    /// Kind of memory.
    pub kind: ObjectKind,
    /// As in the object table.
    pub name: String,
    /// Site of the allocation; none if no call is known.
    pub site: Option<Site>,
    /// Bytes of one of them, where all are of one size and that is known.
    pub each_bytes: Option<u64>,
    /// Look-ups that missed the first level.
    pub first_misses: u64,
    /// Walks to small pages.
    pub walks: u64,
    /// Blocks that these lie in, and could lie in large pages.
    pub reach: Reach,
}

/// Walks of a run's command to small pages of user mode.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Walks {
    /// Most walks first; only those with blocks that could be large.
    pub objects: Vec<WalkedObject>,
    /// All such blocks.
    pub all: Reach,
    /// Look-ups that missed the first level, of these blocks.
    pub first_misses: u64,
    /// Walks to these blocks.
    pub walks: u64,
    /// Walks to other memory of user mode: of files, of stacks, and of mappings without a whole block.
    pub other_walks: u64,
    /// Blocks that lay in large pages as recorded.
    pub large_blocks: u64,
    /// First touches of all memory, by recorded part.
    pub first_touches: Vec<u64>,
}

/// Sum of one name.
#[derive(Default)]
struct Row {
    site: Option<Site>,
    /// Bytes of the objects; 0: they differ.
    sizes: BTreeSet<u64>,
    look_ups: LookUps,
    reach: Reach,
}

pub(super) fn walks(walks: &PageWalks, names: &Names<'_>, symbols: &Symbols) -> Walks {
    let no_pages = PageSet::default();
    let namer = Namer::new(&walks.touches.tracker.objects.rows, &no_pages, names);
    let finder = Finder { walks, names, namer, sites: Sites::new(names, &walks.touches.log, symbols) };
    let mut found = Walks { first_touches: walks.first_touches.clone(), ..Walks::default() };
    let mut rows: BTreeMap<Title, Row> = BTreeMap::new();
    let mut blocks: Vec<_> = walks.blocks.iter().collect();
    blocks.sort_unstable_by_key(|(key, _)| **key);
    for (&(pid, number), block) in blocks {
        let start = number << LARGE_LOG2;
        found.large_blocks += u64::from(block.is_large);
        if block.is_large || !walks.mappings.is_anonymous(pid, (start, start + LARGE_BYTES)) {
            found.other_walks += block.objects.iter().map(|(_, look_ups)| look_ups.walks).sum::<u64>();
            continue;
        }
        found.all.add(start, block, walks.in_parts());
        for (title, of_block) in finder.objects(block) {
            rows.entry(title).or_default().add(of_block, start, (block, walks.in_parts()));
        }
    }
    found.all.join();
    found.objects = rows.into_iter().map(named).collect();
    found.objects.sort_by_key(|object| std::cmp::Reverse((object.walks, object.first_misses)));
    found.walks = found.objects.iter().map(|object| object.walks).sum();
    found.first_misses = found.objects.iter().map(|object| object.first_misses).sum();
    found
}

impl Row {
    /// Adds what was found of the name in one block.
    fn add(&mut self, of_block: Row, start: u64, (block, in_parts): (&Block, bool)) {
        self.look_ups += of_block.look_ups;
        self.site = self.site.take().or(of_block.site);
        self.sizes.extend(of_block.sizes);
        self.reach.add(start, block, in_parts);
    }
}

/// Finds the objects of a block when the run is over.
struct Finder<'a> {
    walks: &'a PageWalks,
    names: &'a Names<'a>,
    namer: Namer<'a>,
    sites: Sites<'a>,
}

impl Finder<'_> {
    fn objects(&self, block: &Block) -> BTreeMap<Title, Row> {
        let mut rows: BTreeMap<Title, Row> = BTreeMap::new();
        for (object, look_ups) in &block.objects {
            let object = &self.walks.touches.tracker.objects.rows[object.0 as usize];
            let row = rows.entry(self.namer.title(&object.key)).or_default();
            row.look_ups += *look_ups;
            row.site = row.site.take().or_else(|| site(&self.sites, self.names, &object.key));
            row.sizes.insert(if object.sizes_differ { 0 } else { object.bytes });
        }
        rows
    }
}

fn site(sites: &Sites<'_>, names: &Names<'_>, key: &Key) -> Option<Site> {
    match *key {
        Key::Heap { context } | Key::Managed { context } | Key::ThreadStack { context } => sites.of(context),
        Key::Anonymous { context, user } => {
            let in_kernel = names.allocation_calls(context).is_empty();
            sites.of(if in_kernel { user } else { context })
        }
        _ => None,
    }
}

fn named((title, mut row): (Title, Row)) -> WalkedObject {
    row.reach.join();
    let each_bytes = row.sizes.first().copied().filter(|bytes| *bytes > 0 && row.sizes.len() == 1);
    WalkedObject {
        kind: title.kind,
        name: title.name,
        site: row.site,
        each_bytes,
        first_misses: row.look_ups.first_misses,
        walks: row.look_ups.walks,
        reach: row.reach,
    }
}
