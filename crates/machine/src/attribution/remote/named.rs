//! Pages and blocks under the names of the objects that they belong to.

use super::super::data_tables::{Namer, Title};
use super::super::names::Names;
use super::super::objects::{ObjectId, Objects};
use super::super::pages::PageSet;
use super::super::sites::{Site, Sites};
use super::{Cause, RemoteReads, Sum};
use nearmiss_record::model::ObjectKind;
use nearmiss_record::symbols::Symbols;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

const PAGE_BYTES: u64 = 4096;

/// Pages that lie in a row, with readers on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRun {
    /// Number of the object among those allocated at the site, from 0.
    pub nth: u64,
    /// Bytes of the object, half-open: whole pages, as they lie in it.
    pub bytes: (u64, u64),
    /// Virtual addresses, half-open.
    pub addresses: (u64, u64),
    /// The node that reads them most.
    pub node: u8,
}

/// Objects of one name with readers that wait for another node's memory for one reason.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteObject {
    /// Kind of memory.
    pub kind: ObjectKind,
    /// As in the object table.
    pub name: String,
    /// Why.
    pub cause: Cause,
    /// Site of the allocation; none if no call is known.
    pub site: Option<Site>,
    /// Bus reads of another node's memory.
    pub remote: u64,
    /// Cycles that they waited.
    pub waits: u64,
    /// All bus reads of these pages.
    pub reads: u64,
    /// Threads that touched them first, and threads that use them otherwise.
    pub first: Vec<u32>,
    /// See `first`.
    pub users: Vec<u32>,
    /// The pages, ascending.
    pub parts: Vec<PageRun>,
}

/// Known facts of one object before pages are added up.
struct Found {
    title: Title,
    site: Option<Site>,
    nth: u64,
    start: u64,
}

/// Rows under one name and cause.
#[derive(Default)]
struct Row {
    site: Option<Site>,
    sum: Sum,
    reads: u64,
    first: BTreeSet<u32>,
    users: BTreeSet<u32>,
    parts: Vec<PageRun>,
}

type Rows = BTreeMap<(Title, Cause), Row>;

pub(super) fn objects(reads: &mut RemoteReads, names: &Names<'_>, symbols: &Symbols) -> Vec<RemoteObject> {
    let mut rows = Rows::new();
    let finder = Finder::new(reads, names, symbols);
    pages(reads, &finder, &mut rows);
    let mut kernel: BTreeMap<Cause, Sum> = BTreeMap::new();
    for (page, sum) in &reads.of_kernel {
        let file = RemoteReads::is_page_cache(symbols, *page);
        let of = kernel.entry(if file { Cause::PageCache } else { Cause::Kernel }).or_default();
        (of.remote, of.waits) = (of.remote + sum.remote, of.waits + sum.waits);
    }
    for (cause, sum) in kernel {
        let (kind, name) = match cause {
            Cause::PageCache => (ObjectKind::PageCache, "page cache"),
            _ => (ObjectKind::KernelOther, "the kernel's memory"),
        };
        let title = Title { kind, name: name.to_owned(), allocated_at: Vec::new() };
        rows.entry((title, cause)).or_default().sum = sum;
    }
    let mut objects: Vec<RemoteObject> = rows.into_iter().map(named).collect();
    objects.sort_by_key(|object| std::cmp::Reverse(object.waits));
    objects
}

fn named(((title, cause), row): ((Title, Cause), Row)) -> RemoteObject {
    let mut parts = row.parts;
    parts.sort_by_key(|part| (part.nth, part.bytes));
    RemoteObject {
        kind: title.kind,
        name: title.name,
        cause,
        site: row.site,
        remote: row.sum.remote,
        waits: row.sum.waits,
        reads: row.reads.max(row.sum.remote),
        first: row.first.into_iter().collect(),
        users: row.users.into_iter().collect(),
        parts: joined(parts),
    }
}

/// Neighbours of one node as one part.
fn joined(parts: Vec<PageRun>) -> Vec<PageRun> {
    let mut joined: Vec<PageRun> = Vec::new();
    for part in parts {
        match joined.last_mut() {
            Some(last) if (last.nth, last.node) == (part.nth, part.node) && last.addresses.1 == part.addresses.0 => {
                (last.bytes.1, last.addresses.1) = (part.bytes.1, part.addresses.1);
            }
            _ => joined.push(part),
        }
    }
    joined
}

fn pages(reads: &mut RemoteReads, finder: &Finder<'_>, rows: &mut Rows) {
    for (frame, page) in reads.pages.remote() {
        let object = page.object.unwrap_or(Objects::UNKNOWN);
        let sum = Sum { remote: page.remote, waits: page.waits };
        let found = finder.find(page.pid, page.vaddr, object);
        // Kernel pages have their state at the end of the recording; pages of a deleted file were gone by then.
        let file = found.title.kind == ObjectKind::File
            && (!page.is_stored_to() || RemoteReads::is_page_cache(finder.symbols, frame.unwrap_or_default()));
        let judged = page.judge();
        let pooled = found.title.kind == ObjectKind::Heap && reads.blocks.go_elsewhere(page.pid);
        let cause = match judged.cause {
            _ if file && finder.is_image(&found.title.name) => Cause::Image,
            _ if file => Cause::PageCache,
            // A page that only one task ever wrote is no block that was handed out again.
            cause @ (Cause::FirstTouch | Cause::Elsewhere) if !judged.stored_elsewhere => cause,
            _ if pooled => Cause::Pool,
            cause => cause,
        };
        let row = rows.entry((found.title, cause)).or_default();
        row.site = row.site.take().or(found.site);
        (row.sum.remote, row.sum.waits) = (row.sum.remote + sum.remote, row.sum.waits + sum.waits);
        row.reads += page.reads();
        row.first.insert(page.first.0);
        row.users.extend(page.users().iter().filter(|user| user.reads > 0).map(|user| user.tid));
        let from = page.vaddr.saturating_sub(found.start);
        row.parts.push(PageRun {
            nth: found.nth,
            bytes: (from, from + PAGE_BYTES),
            addresses: (page.vaddr, page.vaddr + PAGE_BYTES),
            node: judged.best,
        });
    }
}

/// Large objects of a process by their first address, the latest one: address behind the last, site, and number at that site.
type Large = BTreeMap<u64, (u64, Option<Site>, u64)>;

/// Finds the object of an address when the run is over.
struct Finder<'a> {
    symbols: &'a Symbols,
    titles: Vec<Title>,
    /// Large pages by process.
    large: FxHashMap<u32, Large>,
}

impl<'a> Finder<'a> {
    fn new(reads: &RemoteReads, names: &'a Names<'a>, symbols: &'a Symbols) -> Self {
        let (objects, no_pages) = (&reads.tracker.objects.rows, PageSet::default());
        let namer = Namer::new(objects, &no_pages, names);
        let titles = objects.iter().map(|object| namer.title(&object.key)).collect();
        let mut finder = Finder { symbols, titles, large: FxHashMap::default() };
        let sites = Sites::new(names, &reads.log, symbols);
        let mut counts: FxHashMap<(u32, Site), u64> = FxHashMap::default();
        for (pid, start, end, context) in &reads.large {
            let site = sites.of(*context);
            let nth = site.clone().map_or(0, |site| {
                let count = counts.entry((*pid, site)).or_default();
                *count += 1;
                *count - 1
            });
            finder.large.entry(*pid).or_default().insert(*start, (*end, site, nth));
        }
        finder
    }

    fn title(&self, object: ObjectId) -> Title {
        self.titles[object.0 as usize].clone()
    }

    /// Whether code of this file ran.
    fn is_image(&self, path: &str) -> bool {
        self.symbols.modules.iter().any(|module| module == path)
    }

    fn find(&self, pid: u32, vaddr: u64, object: ObjectId) -> Found {
        let title = self.title(object);
        // The block before the mapping that it lies in.
        let last_byte = vaddr + PAGE_BYTES - 1;
        let of_process = self.large.get(&pid);
        let large = of_process.and_then(|large| large.range(..=last_byte).next_back()).filter(|(_, l)| vaddr < l.0);
        match large {
            Some((start, (_, site, nth))) => Found { title, site: site.clone(), nth: *nth, start: *start },
            None => Found { title, site: None, nth: 0, start: vaddr },
        }
    }
}
