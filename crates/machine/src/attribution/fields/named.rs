//! Fields under the names of their objects and of the code that uses them.

use super::super::data_tables::{Namer, Title};
use super::super::names::Names;
use super::super::objects::Key;
use super::super::pages::PageSet;
use super::super::sites::{Site, Sites};
use super::sizes::ElementSize;
use super::spans::{self, Count, Range};
use super::uses::{FieldUses, Uses, granule_bytes, granules};
use nearmiss_record::model::ObjectKind;
use nearmiss_record::policy::Elements;
use nearmiss_record::side::SideTables;
use nearmiss_record::symbols::Symbols;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Most sites that a field is shown with.
const MOST_SITES: usize = 3;
/// Bits of a set of fields.
const MOST_FIELDS: usize = 128;

/// Bytes of an element that are used as one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsedField {
    /// First byte.
    pub from: u32,
    /// The byte behind the field's last one.
    pub to: u32,
    /// Only instructions that copy or clear several fields use it: it may lie across members, or between them.
    pub is_copied: bool,
    /// Loads of the field.
    pub reads: u64,
    /// Stores to the field, and atomics.
    pub writes: u64,
    /// Cycles that the loads, stores and atomics waited.
    pub stall_cycles: u64,
    /// Code that uses the field, most references first.
    pub used_at: Vec<String>,
}

/// Elements of one name and size.
#[derive(Clone, Debug, PartialEq)]
pub struct UsedElements {
    /// Kind of memory.
    pub kind: ObjectKind,
    /// Name, as in the object table.
    pub name: String,
    /// Site of the allocation; none if no call is known.
    pub site: Option<Site>,
    /// Path of the file with the variable, or with the site.
    pub module: Option<String>,
    /// Bytes from one element to the next; of a block of the allocator, its own.
    pub bytes: u64,
    /// Each block of the allocator is one element.
    pub is_block: bool,
    /// Most references agree on the bytes; else a declaration must have as many.
    pub is_agreed: bool,
    /// Ascending.
    pub fields: Vec<UsedField>,
    /// Sets of fields that were used together, a bit each, and how often; most frequent first.
    pub visits: Vec<(u128, u64)>,
    /// Places of the elements; disjoint, ascending.
    pub elements: Vec<Elements>,
}

impl UsedElements {
    /// Cycles that the command waited for the elements.
    pub fn stall_cycles(&self) -> u64 {
        self.fields.iter().map(|field| field.stall_cycles).sum()
    }

    /// Number of the elements.
    pub fn count(&self) -> u64 {
        self.elements.iter().map(|run| run.count).sum()
    }
}

/// What is found of one title and size.
#[derive(Default)]
struct Row<'a> {
    site: Option<Site>,
    module: Option<String>,
    uses: Vec<&'a Uses>,
}

impl FieldUses {
    /// Returns the elements, those that wait most first.
    pub fn elements(mut self, side: &SideTables, symbols: &Symbols) -> Vec<UsedElements> {
        self.end_visits();
        elements(&self, side, symbols)
    }
}

fn elements(found: &FieldUses, side: &SideTables, symbols: &Symbols) -> Vec<UsedElements> {
    let names = Names::new(symbols, side);
    let no_pages = PageSet::default();
    let namer = Namer::new(&found.touches().tracker.objects.rows, &no_pages, &names);
    let sites = Sites::new(&names, &found.touches().log, symbols);
    let mut rows: BTreeMap<(Title, ElementSize), Row<'_>> = BTreeMap::new();
    for (at, uses) in found.uses.iter().enumerate().filter_map(|(at, uses)| Some((at, uses.as_deref()?))) {
        let row = rows.entry((namer.title(found.key(at)), uses.size)).or_default();
        row.uses.push(uses);
        match found.key(at) {
            Key::Heap { context } | Key::Managed { context } => {
                row.site = row.site.take().or_else(|| sites.of(*context));
                row.module = row.site.as_ref().map(|site| site.module.clone());
            }
            Key::Global { module, .. } => row.module = Some(module.clone()),
            _ => {}
        }
    }
    let mut taken = BTreeSet::new();
    let named = rows.into_iter().map(|((title, size), row)| {
        let ElementSize { bytes, is_block, is_agreed } = size;
        let (fields, visits) = row.fields(bytes, &names);
        let elements = row.elements(bytes, &mut taken);
        let Row { site, module, .. } = row;
        UsedElements {
            kind: title.kind,
            name: title.name,
            site,
            module,
            bytes,
            is_block,
            is_agreed,
            fields,
            visits,
            elements,
        }
    });
    let mut named: Vec<UsedElements> = named.filter(|one| !one.elements.is_empty()).collect();
    named.sort_by_key(|one| Reverse(one.stall_cycles()));
    named
}

impl Row<'_> {
    fn fields(&self, bytes: u64, names: &Names<'_>) -> (Vec<UsedField>, Vec<(u128, u64)>) {
        let spans = || self.uses.iter().flat_map(|uses| &uses.spans);
        let mut ranges = spans::fields(&spans().map(|((span, insn), _)| (*insn, *span)).collect(), bytes as u32);
        ranges.truncate(MOST_FIELDS);
        let fields: Vec<UsedField> = ranges.iter().map(|range| self.field(*range, names)).collect();
        let granule = granule_bytes(bytes);
        let masks: Vec<u128> =
            ranges.iter().map(|range| granules(range.from.into(), (range.to - range.from).into(), granule)).collect();
        let mut visits: BTreeMap<u128, u64> = BTreeMap::new();
        for (used, count) in self.uses.iter().flat_map(|uses| &uses.visits) {
            let of = |(at, mask): (usize, &u128)| if mask & used != 0 { 1u128 << at } else { 0 };
            let set = masks.iter().enumerate().map(of).fold(0, |all, one| all | one);
            *visits.entry(set).or_default() += count;
        }
        let mut visits: Vec<(u128, u64)> = visits.into_iter().filter(|(set, _)| *set != 0).collect();
        visits.sort_by_key(|(_, count)| Reverse(*count));
        (fields, visits)
    }

    /// A reference that reaches over several fields counts for each of them; its wait counts for the first.
    fn field(&self, range: Range, names: &Names<'_>) -> UsedField {
        let Range { from, to, is_copied } = range;
        let mut field = UsedField { from, to, is_copied, ..UsedField::default() };
        let mut sites: BTreeMap<String, u64> = BTreeMap::new();
        for (((begin, bytes), insn), count) in self.uses.iter().flat_map(|uses| &uses.spans) {
            if *begin >= to || begin + bytes <= from {
                continue;
            }
            let is_first = (from..to).contains(begin);
            let Count { reads, writes, stall_cycles } = *count;
            field.reads += reads;
            field.writes += writes;
            field.stall_cycles += if is_first { stall_cycles } else { 0 };
            *sites.entry(names.site(*insn)).or_default() += count.references();
        }
        let mut sites: Vec<(String, u64)> = sites.into_iter().collect();
        sites.sort_by_key(|(_, references)| Reverse(*references));
        field.used_at = sites.into_iter().take(MOST_SITES).map(|(site, _)| site).collect();
        field
    }

    /// Runs of elements of the process that has most of them, without those that lie where others do: memory that was
    /// given out twice.
    fn elements(&self, bytes: u64, taken: &mut BTreeSet<(u64, u64)>) -> Vec<Elements> {
        let blocks = || self.uses.iter().flat_map(|uses| &uses.blocks);
        let mut of: BTreeMap<u32, usize> = BTreeMap::new();
        blocks().for_each(|((pid, _), _)| *of.entry(*pid).or_default() += 1);
        let Some((most, _)) = of.into_iter().max_by_key(|(pid, count)| (*count, Reverse(*pid))) else {
            return Vec::new();
        };
        let mut ranges: Vec<(u64, u64)> =
            blocks().filter(|((pid, _), _)| *pid == most).map(|(_, elements)| *elements).collect();
        ranges.sort_unstable();
        let mut runs = Vec::new();
        for (start, last) in ranges {
            let count = (last - start) / bytes + 1;
            let end = start + count * bytes;
            let before = taken.range(..(end, 0)).next_back();
            if before.is_none_or(|(_, before)| *before <= start) {
                taken.insert((start, end));
                runs.push(Elements { from: start, count });
            }
        }
        runs
    }
}
