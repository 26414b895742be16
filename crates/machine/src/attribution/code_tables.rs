//! The tables by code: functions, source lines, pollution blame.

use super::charged::{Charges, Cycles};
use super::names::{Names, UNATTRIBUTED};
use super::{Attribution, InsnRow};
use crate::model::Pollution;
use crate::owner::Owner;
use nearmiss_record::model::{BlameRow, FunctionRow, LevelTally, LineRow, Tally};
use nearmiss_record::policy::CallSite;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Most rows of the blame table.
const MAX_BLAME_ROWS: usize = 10_000;

pub(super) struct CodeTables {
    pub functions: Vec<FunctionRow>,
    /// Function of each row; the last row, the unattributed one, has none.
    pub function_ids: Vec<u32>,
    pub lines: Vec<LineRow>,
}

impl CodeTables {
    /// Adds the unattributed rest to the last row of each table, which is the unattributed one.
    pub fn add_rest(&mut self, rest: &Tally) {
        if let Some(row) = self.functions.last_mut() {
            row.tally += rest;
        }
        if let Some(row) = self.lines.last_mut() {
            row.tally += rest;
        }
    }

    pub fn set_cycles(&mut self, cycles: &Cycles) {
        cycles.set(self.functions.iter_mut().map(|row| &mut row.tally));
        cycles.set(self.lines.iter_mut().map(|row| &mut row.tally));
    }
}

/// Sums up by function and line; the unattributed rows of functions and lines come last, there or not.
pub(super) fn code(attribution: &Attribution, names: &Names<'_>, command: &Charges) -> CodeTables {
    let (functions, function_ids) = functions(attribution, names, Owner::Command, command);
    CodeTables { functions, function_ids, lines: lines(attribution, names, command) }
}

fn empty(attribution: &Attribution) -> Tally {
    Tally { levels: vec![LevelTally::default(); attribution.options.levels], ..Tally::default() }
}

/// Returns the instructions with a tally, and the tally.
fn tallies<'a>(
    attribution: &'a Attribution,
    owner: Owner,
    part: &'a Charges,
) -> impl Iterator<Item = (u32, Tally)> + 'a {
    (0..part.references.len()).filter_map(move |id| Some((id as u32, of_instruction(attribution, owner, part, id)?)))
}

/// Sums up by function, most stall cycles first, with the function of each row; the unattributed row comes last, there or
/// not, and is no function's.
pub(super) fn functions(
    attribution: &Attribution,
    names: &Names<'_>,
    owner: Owner,
    part: &Charges,
) -> (Vec<FunctionRow>, Vec<u32>) {
    let mut sums: FxHashMap<u32, Tally> = FxHashMap::default();
    for (id, tally) in tallies(attribution, owner, part) {
        *sums.entry(names.function(id)).or_insert_with(|| empty(attribution)) += &tally;
    }
    let mut rest = sums.remove(&0).unwrap_or_else(|| empty(attribution));
    rest.instructions += part.instructions_left;
    let row = |name: &str, module: &str, kernel, tally| FunctionRow {
        name: name.into(),
        module: module.into(),
        kernel,
        tally,
    };
    let mut functions: Vec<_> = sums
        .into_iter()
        .map(|(f, tally)| (row(names.function_name(f), names.module(f), names.is_kernel_function(f), tally), f))
        .collect();
    functions.sort_by(|(a, _), (b, _)| {
        (b.tally.stall_cycles, b.tally.instructions, &a.name, &a.module).cmp(&(
            a.tally.stall_cycles,
            a.tally.instructions,
            &b.name,
            &b.module,
        ))
    });
    let (mut functions, function_ids): (Vec<_>, Vec<_>) = functions.into_iter().unzip();
    functions.push(row(UNATTRIBUTED, "", false, rest));
    (functions, function_ids)
}

fn lines(attribution: &Attribution, names: &Names<'_>, command: &Charges) -> Vec<LineRow> {
    let mut sums: BTreeMap<(u32, &str, u32), Tally> = BTreeMap::new();
    let mut rest = Tally { instructions: command.instructions_left, ..empty(attribution) };
    for (id, tally) in tallies(attribution, Owner::Command, command) {
        match names.line(id) {
            Some((file, line)) => {
                *sums.entry((names.function(id), file, line)).or_insert_with(|| empty(attribution)) += &tally;
            }
            None => rest += &tally,
        }
    }
    let row = |((function, file, line), tally): ((u32, &str, u32), Tally)| LineRow {
        function: names.function_name(function).into(),
        module: names.module(function).into(),
        file: file.into(),
        line,
        tally,
    };
    let mut lines: Vec<_> = sums.into_iter().map(row).collect();
    lines.sort_by_key(|l| std::cmp::Reverse((l.tally.stall_cycles, l.tally.instructions)));
    let (module, file) = (String::new(), String::new());
    lines.push(LineRow { function: UNATTRIBUTED.into(), module, file, line: 0, tally: rest });
    lines
}

/// Returns the tally of one instruction id; `None`: nothing. Cycles hold the input of [`Cycles::set`].
pub(super) fn of_instruction(attribution: &Attribution, owner: Owner, part: &Charges, id: usize) -> Option<Tally> {
    let references = part.references[id];
    let misses = attribution.insns[owner as usize].get(id).map(|row| row.misses).unwrap_or_default();
    let instructions = part.instructions[id];
    let idle = instructions == 0 && (InsnRow { references, misses }).is_idle();
    let tally = || attribution.ledger.tally(misses, &references, attribution.options.levels);
    (!idle).then(|| Tally { instructions, cycles: part.computed.get(id).copied().unwrap_or(0), ..tally() })
}

/// Cache; function and call of the evictor; function and call of who missed.
type Blamed<'a> = (&'a str, (u32, u32), (u32, u32));

/// Returns the blame by function and its call, most first.
pub(super) fn blame(names: &Names<'_>, pollution: &[Pollution]) -> Vec<BlameRow> {
    // The key is the function and its call: blame on one function may belong to one of its callers alone.
    let place = |site: CallSite| (names.function(site.insn), names.calling_insn(site.context));
    let mut sums: BTreeMap<Blamed<'_>, u64> = BTreeMap::new();
    for pair in pollution {
        *sums.entry((pair.cache.as_str(), place(pair.polluter), place(pair.victim))).or_default() += pair.misses;
    }
    let called_at = |call: u32| if call == 0 { String::new() } else { names.site(call) };
    let row = |((cache, evictor, victim), misses): (Blamed<'_>, u64)| BlameRow {
        cache: cache.to_owned(),
        evictor: names.function_name(evictor.0).to_owned(),
        evictor_called_at: called_at(evictor.1),
        victim: names.function_name(victim.0).to_owned(),
        victim_called_at: called_at(victim.1),
        misses,
    };
    let mut rows: Vec<_> = sums.into_iter().map(row).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.misses));
    if rows.len() > MAX_BLAME_ROWS {
        let misses = rows.drain(MAX_BLAME_ROWS..).map(|row| row.misses).sum();
        let other = || "[other]".to_owned();
        rows.push(BlameRow { cache: other(), evictor: other(), victim: other(), misses, ..BlameRow::default() });
    }
    rows
}
