//! Crowds with the names of their objects.

use super::Attribution;
use super::PAGE_BYTES;
use super::crowds::CrowdRow;
use super::data_tables::{Namer, Title};
use super::names::Names;
use super::objects::{Key, ObjectId};
use super::spacing::{STRAY, pieces};
use nearmiss_record::model::ObjectKind;
use nearmiss_record::side::SideTables;
use nearmiss_record::symbols::{StackVariable, Symbols};
use std::collections::BTreeMap;

/// Objects of one name that crowd on few sets of one level.
#[derive(Clone, Debug, PartialEq)]
pub struct Crowd {
    /// Index of the level, nearest 0.
    pub level: usize,
    /// Kind of memory.
    pub kind: ObjectKind,
    /// As in the object table.
    pub name: String,
    /// Allocating call stack, outermost first, where there is one.
    pub allocated_at: Vec<String>,
    /// Largest alignment the program requested from the allocator, in bytes; 0: none.
    pub requested_alignment: u64,
    /// Number of mappings or allocations of this name.
    pub made: u64,
    /// Misses that would be hits if the lines were spread over all sets.
    pub misses: u64,
    /// Cycles that the references with these misses waited in all, and stores to lines evicted before their turn.
    pub stall_cycles: u64,
    /// Cycles that references to these objects waited which had no conflict miss at any level.
    pub other_waits: u64,
    /// Sets that lines pass over before they return, on average.
    pub sets: f64,
    /// Lines that compete for one set, on average.
    pub lines_a_set: f64,
    /// Share of the misses in sets where a line of the same object had missed before: 1 if the parts of one object are
    /// in each other's way, 0 if whole objects are.
    pub within_one: f64,
    /// Bytes from piece to piece, as far as they are regular.
    pub spacing_bytes: u64,
    /// Pieces so far apart that have lines in use; at least so many where there are very many.
    pub pieces: u64,
    /// Objects: first address, address behind the last, misses; ascending.
    pub extents: Vec<(u64, u64, u64)>,
    /// Functions that missed, with their misses, most first.
    pub functions: Vec<(String, u64)>,
}

impl Crowd {
    /// Returns the largest power of two with all pieces at the same offset in it.
    pub fn alignment_bytes(&self) -> u64 {
        1 << self.spacing_bytes.trailing_zeros().min(63)
    }
}

/// Fewer crowded misses are no crowd.
const LEAST_MISSES: u64 = 256;
/// Least part of a crowd's misses that would be saved (as a divisor): more than chance saves of lines at random.
const LEAST_SAVED: u64 = 2;

impl Attribution {
    /// Returns the objects that crowd on few sets; empty if not tracked. Most misses first within a level.
    pub fn crowds(&self, side: &SideTables, symbols: &Symbols) -> Vec<Crowd> {
        let Some(crowds) = &self.crowds else { return Vec::new() };
        let names = Names::new(symbols, side);
        let namer = Namer::new(&self.tracker.objects.rows, &self.user_pages, &names);
        let line_bytes = u64::from(self.options.line_bytes);
        let mut groups: BTreeMap<(u8, Title), Group<'_>> = BTreeMap::new();
        for ((level, id), row) in &crowds.rows {
            let object = &self.tracker.objects.rows[id.0 as usize];
            let variable = match object.key {
                Key::FirstStack => namer.stack_variable_of_most(row.lines.values().copied()),
                _ => None,
            };
            let title = variable.map_or_else(|| namer.title(&object.key), |known| Namer::on_first_stack(Some(known)));
            let group = groups.entry((*level, title)).or_default();
            group.variable = variable;
            group.requested_alignment = group.requested_alignment.max(object.requested_alignment);
            group.made += object.count;
            group.other_waits += crowds.other_waits.get(id.0 as usize).copied().unwrap_or(0);
            group.rows.push((*id, row));
        }
        let mut found: Vec<Crowd> = groups
            .into_iter()
            .filter(|(_, group)| group.is_crowd())
            .map(|((level, title), group)| group.named(usize::from(level), title, line_bytes, &names))
            .collect();
        found.sort_by_key(|crowd| (crowd.level, std::cmp::Reverse(crowd.misses)));
        found
    }

    /// Cycles that the command's references waited which had a conflict miss; 0 if crowds were not looked for.
    pub fn conflict_waits(&self) -> u64 {
        self.crowds.as_ref().map_or(0, |crowds| crowds.conflict_waits)
    }
}

/// Rows of one name.
#[derive(Default)]
struct Group<'a> {
    requested_alignment: u64,
    made: u64,
    other_waits: u64,
    /// The one on a first thread's stack that it is.
    variable: Option<&'a StackVariable>,
    rows: Vec<(ObjectId, &'a CrowdRow)>,
}

impl Group<'_> {
    fn sum(&self, figure: impl Fn(&CrowdRow) -> u64) -> u64 {
        self.rows.iter().map(|(_, row)| figure(row)).sum()
    }

    fn mean(&self, figure: impl Fn(&CrowdRow) -> f64) -> f64 {
        let sum: f64 = self.rows.iter().map(|(_, row)| figure(row) * row.misses as f64).sum();
        sum / self.sum(|row| row.misses).max(1) as f64
    }

    fn is_crowd(&self) -> bool {
        let misses = self.sum(|row| row.misses);
        let saved = misses.saturating_sub(self.sum(|row| row.spread_misses));
        saved >= LEAST_MISSES && saved * LEAST_SAVED >= misses
    }

    fn named(mut self, level: usize, title: Title, line_bytes: u64, names: &Names<'_>) -> Crowd {
        self.rows.sort_by_key(|(id, row)| (std::cmp::Reverse(row.misses), id.0));
        let sets = self.mean(CrowdRow::sets);
        let spacing = self.rows.first().and_then(|(_, row)| row.bursts.spacing(sets, PAGE_BYTES, line_bytes));
        let spacing_bytes = spacing.unwrap_or(PAGE_BYTES);
        let misses = self.sum(|row| row.misses);
        let of_variable = |known: &StackVariable| vec![(known.start, known.start.saturating_add(known.bytes), misses)];
        let extents = self.variable.map_or_else(|| self.extents(), of_variable);
        Crowd {
            level,
            kind: title.kind,
            name: title.name,
            allocated_at: title.allocated_at,
            requested_alignment: self.requested_alignment,
            made: self.made,
            misses,
            stall_cycles: self.sum(|row| row.stall_cycles),
            other_waits: self.other_waits,
            sets,
            lines_a_set: self.mean(CrowdRow::competing),
            within_one: self.mean(CrowdRow::within_one),
            spacing_bytes,
            pieces: self.pieces(&extents, spacing_bytes),
            extents,
            functions: names.most_of(self.rows.iter().flat_map(|(_, row)| &row.insns)),
        }
    }

    /// Returns the extents without those of a few stray misses.
    fn extents(&self) -> Vec<(u64, u64, u64)> {
        let mut extents: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for ((_, start), (end, count)) in self.rows.iter().flat_map(|(_, row)| &row.extents) {
            let extent = extents.entry(*start).or_insert((*end, 0));
            *extent = (extent.0.max(*end), extent.1 + count);
        }
        let (all, count) = (extents.values().map(|(_, misses)| misses).sum::<u64>(), extents.len() as u64);
        let counts = |(_, misses): &(u64, u64)| misses * count * STRAY >= all;
        let kept = extents.into_iter().filter(|(_, extent)| counts(extent));
        kept.map(|(start, (end, misses))| (start, end, misses)).collect()
    }

    fn pieces(&self, extents: &[(u64, u64, u64)], spacing: u64) -> u64 {
        let mut missed: Vec<(u64, u64)> = self.rows.iter().flat_map(|(_, row)| row.lines.values().copied()).collect();
        missed.sort_unstable();
        let within = |(start, end, _): &(u64, u64, u64)| {
            let from = missed.partition_point(|(address, _)| address < start);
            let to = missed.partition_point(|(address, _)| address < end);
            pieces(*start, missed.get(from..to).unwrap_or_default(), spacing)
        };
        extents.iter().map(within).sum()
    }
}
