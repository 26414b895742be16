//! The tables by code: functions, source lines, call stacks, pollution blame.

use super::charged::{Cycles, Part};
use super::names::{Names, UNATTRIBUTED};
use super::{Attribution, InsnRow};
use crate::model::Pollution;
use crate::whose::Whose;
use nearmiss_record::model::{BlameRow, FunctionRow, LevelTally, LineRow, StackRow, Tally};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Most rows of the call-stack table; the rest is added to the unattributed row.
const MAX_STACK_ROWS: usize = 5_000;
/// Most rows of the blame table.
const MAX_BLAME_ROWS: usize = 10_000;

pub(super) struct CodeTables {
    pub functions: Vec<FunctionRow>,
    pub lines: Vec<LineRow>,
    pub stacks: Vec<StackRow>,
}

impl CodeTables {
    /// Adds what nobody can be charged with; the last row of each table is the unattributed one.
    pub fn add_rest(&mut self, rest: &Tally) {
        if let Some(row) = self.functions.last_mut() {
            row.tally += rest;
        }
        if let Some(row) = self.lines.last_mut() {
            row.tally += rest;
        }
    }

    pub fn set_cycles(&mut self, cycles: &Cycles, totals: &Tally) {
        cycles.set(self.functions.iter_mut().map(|row| &mut row.tally));
        cycles.set(self.lines.iter_mut().map(|row| &mut row.tally));
        // Here, because only now the total is known.
        let mut misses: Vec<u64> = totals.levels.iter().map(LevelTally::misses).collect();
        let mut stall_cycles = totals.stall_cycles;
        for row in &self.stacks {
            misses.iter_mut().zip(&row.misses).for_each(|(left, part)| *left = left.saturating_sub(*part));
            stall_cycles = stall_cycles.saturating_sub(row.stall_cycles);
        }
        self.stacks.push(StackRow { frames: vec![UNATTRIBUTED.to_owned()], misses, stall_cycles });
    }
}

/// Sums up by function, line and stack; the unattributed rows of functions and lines come last, there or not.
pub(super) fn code(attribution: &Attribution, names: &Names<'_>, command: &Part) -> CodeTables {
    CodeTables {
        functions: functions(attribution, names, Whose::Command, command),
        lines: lines(attribution, names, command),
        stacks: stacks(attribution, names),
    }
}

fn empty(attribution: &Attribution) -> Tally {
    Tally { levels: vec![LevelTally::default(); attribution.options.levels], ..Tally::default() }
}

/// Instructions that did anything, with what they did.
fn tallies<'a>(attribution: &'a Attribution, whose: Whose, part: &'a Part) -> impl Iterator<Item = (u32, Tally)> + 'a {
    part.references.iter().zip(&part.instructions).enumerate().filter_map(move |(id, (references, instructions))| {
        let misses = attribution.insns[whose as usize].get(id).map(|row| row.misses).unwrap_or_default();
        if *instructions == 0 && (InsnRow { references: *references, misses }).is_idle() {
            return None;
        }
        let tally = attribution.ledger.tally(misses, references, attribution.options.levels);
        Some((id as u32, Tally { instructions: *instructions, ..tally }))
    })
}

/// Sums up by function, most stall cycles first; the unattributed row comes last, there or not.
pub(super) fn functions(attribution: &Attribution, names: &Names<'_>, whose: Whose, part: &Part) -> Vec<FunctionRow> {
    let mut sums: FxHashMap<u32, Tally> = FxHashMap::default();
    for (id, tally) in tallies(attribution, whose, part) {
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
        .map(|(f, tally)| row(names.function_name(f), names.module(f), names.is_kernel_function(f), tally))
        .collect();
    functions.sort_by(|a, b| {
        (b.tally.stall_cycles, b.tally.instructions, &a.name, &a.module).cmp(&(
            a.tally.stall_cycles,
            a.tally.instructions,
            &b.name,
            &b.module,
        ))
    });
    functions.push(row(UNATTRIBUTED, "", false, rest));
    functions
}

fn lines(attribution: &Attribution, names: &Names<'_>, command: &Part) -> Vec<LineRow> {
    let mut sums: BTreeMap<(u32, &str, u32), Tally> = BTreeMap::new();
    let mut rest = Tally { instructions: command.instructions_left, ..empty(attribution) };
    for (id, tally) in tallies(attribution, Whose::Command, command) {
        match names.line(id) {
            Some((file, line)) => {
                *sums.entry((names.function(id), file, line)).or_insert_with(|| empty(attribution)) += &tally;
            }
            None => rest += &tally,
        }
    }
    let row = |((function, file, line), tally): ((u32, &str, u32), Tally)| LineRow {
        function: names.function_name(function).into(),
        file: file.into(),
        line,
        tally,
    };
    let mut lines: Vec<_> = sums.into_iter().map(row).collect();
    lines.sort_by_key(|l| std::cmp::Reverse((l.tally.stall_cycles, l.tally.instructions)));
    lines.push(LineRow { function: UNATTRIBUTED.into(), file: String::new(), line: 0, tally: rest });
    lines
}

fn stacks(attribution: &Attribution, names: &Names<'_>) -> Vec<StackRow> {
    let levels = attribution.options.levels;
    let mut chains: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    let mut rows: FxHashMap<Vec<u32>, StackRow> = FxHashMap::default();
    for ((context, insn), count) in &attribution.stacks {
        let chain = chains
            .entry(*context)
            .or_insert_with(|| names.calls(*context).into_iter().map(|call| names.function(call)).collect());
        let mut frames = chain.clone();
        frames.push(names.function(*insn));
        let row = rows.entry(frames).or_insert_with_key(|frames| StackRow {
            frames: frames.iter().map(|f| names.function_name(*f).to_owned()).collect(),
            misses: vec![0; levels],
            stall_cycles: 0,
        });
        row.misses.iter_mut().zip(count.misses).for_each(|(sum, part)| *sum += part);
        row.stall_cycles += count.stall_cycles;
    }
    let mut rows: Vec<_> = rows.into_values().collect();
    rows.sort_by(|a, b| (b.stall_cycles, &b.misses, &a.frames).cmp(&(a.stall_cycles, &a.misses, &b.frames)));
    rows.truncate(MAX_STACK_ROWS);
    rows
}

/// By function, most first.
pub(super) fn blame(names: &Names<'_>, pollution: &[Pollution]) -> Vec<BlameRow> {
    let mut sums: BTreeMap<(&str, u32, u32), u64> = BTreeMap::new();
    for pair in pollution {
        let key = (pair.cache.as_str(), names.function(pair.polluter), names.function(pair.victim));
        *sums.entry(key).or_default() += pair.misses;
    }
    let row = |((cache, evictor, victim), misses): ((&str, u32, u32), u64)| BlameRow {
        cache: cache.to_owned(),
        evictor: names.function_name(evictor).to_owned(),
        victim: names.function_name(victim).to_owned(),
        misses,
    };
    let mut rows: Vec<_> = sums.into_iter().map(row).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.misses));
    if rows.len() > MAX_BLAME_ROWS {
        let misses = rows.drain(MAX_BLAME_ROWS..).map(|row| row.misses).sum();
        let other = || "[other]".to_owned();
        rows.push(BlameRow { cache: other(), evictor: other(), victim: other(), misses });
    }
    rows
}
