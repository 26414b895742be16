//! Aliased loads with the names of the objects that they and the stores before them touch.

use super::aliases::AliasRow;
use super::data_tables::{Namer, Title};
use super::names::Names;
use super::objects::ObjectId;
use super::{Attribution, Owner};
use nearmiss_record::model::ObjectKind;
use nearmiss_record::side::SideTables;
use nearmiss_record::symbols::Symbols;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Part of an instruction's loads that must wait for it to count: with many stores to compare with, some loads of any
/// program wait by chance, and moving objects would only make it others.
const LEAST_PART: u64 = 2;

/// Loads that wait for stores to the same offset of another page.
#[derive(Clone, Debug, PartialEq)]
pub struct Alias {
    /// Number seen, of instructions that wait in most of their loads: repeats dropped by the trace's filter are
    /// missing.
    pub loads: u64,
    /// Memory loaded from.
    pub loaded: Party,
    /// Memory stored to.
    pub stored: Party,
    /// Functions of the loads, most first.
    pub functions: Vec<(String, u64)>,
}

/// Objects of one name on one side.
#[derive(Clone, Debug, PartialEq)]
pub struct Party {
    /// Kind of memory.
    pub kind: ObjectKind,
    /// As in the object table.
    pub name: String,
    /// Allocating call stack, outermost first, where there is one.
    pub allocated_at: Vec<String>,
    /// Largest alignment the program requested from the allocator, in bytes; 0: none.
    pub requested_alignment: u64,
    /// Objects: first address, address behind the last; ascending.
    pub extents: Vec<(u64, u64)>,
}

/// Rows of one pair of names, each with the objects loaded from and stored to.
type Rows<'a> = Vec<((ObjectId, ObjectId), &'a AliasRow)>;

impl Attribution {
    /// Returns the loads that wait with the stores they wait for; empty if not tracked. Most loads first.
    pub fn aliases(&self, side: &SideTables, symbols: &Symbols) -> Vec<Alias> {
        let Some(aliases) = &self.aliases else { return Vec::new() };
        let names = Names::new(symbols, side);
        let namer = Namer::new(&self.tracker.objects.rows, &self.user_pages, &names);
        let title = |object: &ObjectId| namer.title(&self.tracker.objects.rows[object.0 as usize].key);
        let mut groups: BTreeMap<(Title, Title), Rows<'_>> = BTreeMap::new();
        let mut waiting: FxHashMap<u32, u64> = FxHashMap::default();
        for (insn, loads) in aliases.rows.values().flat_map(|row| &row.insns) {
            *waiting.entry(*insn).or_default() += loads;
        }
        let all =
            |insn: &u32| self.insns[Owner::Command as usize].get(*insn as usize).map_or(0, |row| row.references.loads);
        waiting.retain(|insn, loads| *loads * LEAST_PART >= all(insn));
        let steady = |row: &AliasRow| {
            row.insns.iter().filter(|(insn, _)| waiting.contains_key(insn)).map(|(_, n)| *n).sum::<u64>()
        };
        for (objects, row) in &aliases.rows {
            if steady(row) == 0 {
                continue;
            }
            groups.entry((title(&objects.0), title(&objects.1))).or_default().push((*objects, row));
        }
        let mut found: Vec<Alias> = groups
            .into_iter()
            .map(|((loaded, stored), rows)| {
                let party = |title: Title, side: usize| {
                    let of = |pair: &(ObjectId, ObjectId)| [pair.0, pair.1][side].0 as usize;
                    let alignments =
                        rows.iter().map(|(pair, _)| self.tracker.objects.rows[of(pair)].requested_alignment);
                    let mut extents: BTreeMap<u64, u64> = BTreeMap::new();
                    for ((_, start), end) in rows.iter().flat_map(|(_, row)| &row.extents[side]) {
                        let last = extents.entry(*start).or_default();
                        *last = (*last).max(*end);
                    }
                    Party {
                        kind: title.kind,
                        name: title.name,
                        allocated_at: title.allocated_at,
                        requested_alignment: alignments.max().unwrap_or(0),
                        extents: extents.into_iter().collect(),
                    }
                };
                Alias {
                    loads: rows.iter().map(|(_, row)| steady(row)).sum(),
                    loaded: party(loaded, 0),
                    stored: party(stored, 1),
                    functions: names.most_of(
                        rows.iter().flat_map(|(_, row)| &row.insns).filter(|(insn, _)| waiting.contains_key(insn)),
                    ),
                }
            })
            .collect();
        found.sort_by_key(|alias| std::cmp::Reverse(alias.loads));
        found
    }
}
