//! Crowds with the names of their objects.

use super::Attribution;
use super::crowds::CrowdRow;
use super::data_tables::{Namer, Title};
use super::names::Names;
use nearmiss_record::model::ObjectKind;
use nearmiss_record::side::SideTables;
use nearmiss_record::symbols::Symbols;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Objects of one name that crowd on few sets of one level.
#[derive(Clone, Debug, PartialEq)]
pub struct Crowd {
    /// Index of the level, nearest 0.
    pub level: usize,
    /// What kind of memory.
    pub kind: ObjectKind,
    /// As in the object table.
    pub name: String,
    /// Allocating call stack, outermost first, where there is one.
    pub allocated_at: Vec<String>,
    /// Largest alignment the program asked the allocator for, in bytes; 0: none.
    pub asked_alignment: u64,
    /// Conflict misses while the level's conflict misses fell on few sets.
    pub misses: u64,
    /// Cycles that the references with these misses waited in all.
    pub stall_cycles: u64,
    /// Sets that such misses fell on within a short time, on average.
    pub sets: f64,
    /// Lines that competed for one set, on average.
    pub lines_a_set: f64,
    /// Bytes of the pieces, a power of two, at whose same offset the lines lie.
    pub alignment_bytes: u64,
    /// Objects: first address, address behind the last, misses; ascending.
    pub extents: Vec<(u64, u64, u64)>,
    /// Lines that missed: virtual addresses, ascending; not all where there are very many.
    pub lines: Vec<u64>,
    /// Functions that missed, with their misses, most first.
    pub functions: Vec<(String, u64)>,
}

impl Attribution {
    /// What crowds on few sets; empty if it was not looked for. Most misses first within a level.
    pub fn crowds(&self, side: &SideTables, symbols: &Symbols) -> Vec<Crowd> {
        let Some(crowds) = &self.crowds else { return Vec::new() };
        let names = Names::new(symbols, side);
        let namer = Namer::new(self, &names);
        let mut groups: BTreeMap<(u8, Title), Vec<&CrowdRow>> = BTreeMap::new();
        let mut asked: FxHashMap<Title, u64> = FxHashMap::default();
        for ((level, object), row) in &crowds.rows {
            let object = &self.tracker.objects.rows[object.0 as usize];
            let title = namer.title(&object.key);
            let alignment = asked.entry(title.clone()).or_default();
            *alignment = (*alignment).max(object.asked_alignment);
            groups.entry((*level, title)).or_default().push(row);
        }
        let mut found: Vec<Crowd> = groups
            .into_iter()
            .map(|((level, title), rows)| {
                let asked_alignment = asked.get(&title).copied().unwrap_or(0);
                crowd(usize::from(level), title, asked_alignment, &rows, &names)
            })
            .collect();
        found.sort_by_key(|crowd| (crowd.level, std::cmp::Reverse(crowd.misses)));
        found
    }
}

fn crowd(level: usize, title: Title, asked_alignment: u64, rows: &[&CrowdRow], names: &Names<'_>) -> Crowd {
    let misses: u64 = rows.iter().map(|row| row.misses).sum();
    let mean = |figure: &dyn Fn(&CrowdRow) -> f64| {
        rows.iter().map(|row| figure(row) * row.misses as f64).sum::<f64>() / misses.max(1) as f64
    };
    let mut extents: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for row in rows {
        for ((_, start), (end, count)) in &row.extents {
            let extent = extents.entry(*start).or_insert((*end, 0));
            *extent = (extent.0.max(*end), extent.1 + count);
        }
    }
    let mut lines: Vec<u64> = rows.iter().flat_map(|row| row.lines.iter().copied()).collect();
    lines.sort_unstable();
    lines.dedup();
    let heaviest = rows.iter().max_by_key(|row| row.misses);
    Crowd {
        level,
        kind: title.kind,
        name: title.name,
        allocated_at: title.allocated_at,
        asked_alignment,
        misses,
        stall_cycles: rows.iter().map(|row| row.stall_cycles).sum(),
        sets: mean(&CrowdRow::sets),
        lines_a_set: mean(&CrowdRow::competing),
        alignment_bytes: heaviest.map_or(0, |row| row.alignment_bytes()),
        extents: extents.into_iter().map(|(start, (end, count))| (start, end, count)).collect(),
        lines,
        functions: names.most_of(rows.iter().flat_map(|row| &row.insns)),
    }
}
