//! The table by call stack.
//!
//! Waits have their calling context. Computing is counted by instruction, without one: how a function's computing is
//! split over the stacks that lead to it is estimated from the references that were kept under each.

use super::Attribution;
use super::code_tables::CodeTables;
use super::names::{Names, UNATTRIBUTED};
use nearmiss_record::model::{LevelTally, MAX_LEVELS, StackRow, Tally};
use rustc_hash::FxHashMap;

/// Most rows; the rest is added to the unattributed row.
const MAX_STACK_ROWS: usize = 5_000;
/// Calling contexts from here on are not counted: no run has so many, a damaged file may claim so.
const MAX_CONTEXTS: usize = 1 << 24;

/// Misses of one instruction in one calling context.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StackCount {
    pub misses: [u64; MAX_LEVELS],
    pub stall_cycles: u64,
}

/// References of the command in one calling context.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Visit {
    /// References that were kept.
    references: u64,
    /// An instruction of the function that made them.
    insn: u32,
}

/// Visits by context.
#[derive(Debug, Default)]
pub(super) struct Visits(Vec<Visit>);

impl Visits {
    /// Counts references that were made in a context, the last of them by `insn`.
    pub fn add(&mut self, context: u32, references: u64, insn: u32) {
        let index = context as usize;
        if references == 0 || index >= MAX_CONTEXTS {
            return;
        }
        if index >= self.0.len() {
            self.0.resize(index + 1, Visit::default());
        }
        let visit = &mut self.0[index];
        if visit.references == 0 {
            visit.insn = insn;
        }
        visit.references += references;
    }
}

/// Functions, outermost first.
type Frames = Vec<u32>;

/// Rows by call stack, most cycles first; the last is all that has no row of its own.
pub(super) fn stacks(attribution: &Attribution, names: &Names<'_>, code: &CodeTables, totals: &Tally) -> Vec<StackRow> {
    let mut table = Stacks { attribution, names, chains: FxHashMap::default(), rows: FxHashMap::default() };
    table.waits();
    table.computing(code);
    table.finish(totals)
}

struct Stacks<'a> {
    attribution: &'a Attribution,
    names: &'a Names<'a>,
    chains: FxHashMap<u32, Frames>,
    rows: FxHashMap<Frames, StackRow>,
}

impl Stacks<'_> {
    fn frames(&mut self, context: u32, function: u32) -> Frames {
        let names = self.names;
        let functions = || names.calls(context).into_iter().map(|call| names.function(call)).collect();
        let mut frames = self.chains.entry(context).or_insert_with(functions).clone();
        frames.push(function);
        frames
    }

    fn row(&mut self, frames: Frames) -> &mut StackRow {
        let (names, levels) = (self.names, self.attribution.options.levels);
        self.rows.entry(frames).or_insert_with_key(|frames| StackRow {
            frames: frames.iter().map(|f| names.function_name(*f).to_owned()).collect(),
            misses: vec![0; levels],
            stall_cycles: 0,
            cycles: 0,
        })
    }

    fn waits(&mut self) {
        for ((context, insn), count) in &self.attribution.stacks {
            let frames = self.frames(*context, self.names.function(*insn));
            let row = self.row(frames);
            row.misses.iter_mut().zip(count.misses).for_each(|(sum, part)| *sum += part);
            row.stall_cycles += count.stall_cycles;
            row.cycles += count.stall_cycles;
        }
    }

    /// Spreads each function's computing over the stacks that lead to it.
    fn computing(&mut self, code: &CodeTables) {
        let mut under = self.visited();
        for (row, function) in code.functions.iter().zip(&code.function_ids) {
            let computing = row.tally.cycles.saturating_sub(row.tally.stall_cycles);
            // A function that was jumped to, or that made no reference: its callers are not known.
            let mut stacks = under.remove(function).unwrap_or_else(|| vec![(vec![*function], 1)]);
            stacks.sort();
            let all: u128 = stacks.iter().map(|(_, references)| u128::from(*references)).sum();
            let (mut seen, mut given) = (0u128, 0u64);
            for (frames, references) in stacks {
                seen += u128::from(references);
                let until = (u128::from(computing) * seen / all) as u64;
                if until > given {
                    self.row(frames).cycles += until - given;
                }
                given = until;
            }
        }
    }

    /// Returns the stacks that lead to each function, with the references kept under each.
    fn visited(&mut self) -> FxHashMap<u32, Vec<(Frames, u64)>> {
        let mut sums: FxHashMap<Frames, u64> = FxHashMap::default();
        for (context, visit) in (0u32..).zip(&self.attribution.visits.0).filter(|(_, visit)| visit.references > 0) {
            let frames = self.frames(context, self.names.function(visit.insn));
            *sums.entry(frames).or_default() += visit.references;
        }
        let mut under: FxHashMap<u32, Vec<(Frames, u64)>> = FxHashMap::default();
        for (frames, references) in sums {
            let leaf = frames.last().copied().unwrap_or(0);
            under.entry(leaf).or_default().push((frames, references));
        }
        under
    }

    fn finish(self, totals: &Tally) -> Vec<StackRow> {
        let mut rows: Vec<_> = self.rows.into_values().collect();
        rows.sort_by(|a, b| {
            (b.cycles, b.stall_cycles, &b.misses, &a.frames).cmp(&(a.cycles, a.stall_cycles, &a.misses, &b.frames))
        });
        rows.truncate(MAX_STACK_ROWS);
        let mut misses: Vec<u64> = totals.levels.iter().map(LevelTally::misses).collect();
        let (mut stall_cycles, mut cycles) = (totals.stall_cycles, totals.cycles);
        for row in &rows {
            misses.iter_mut().zip(&row.misses).for_each(|(left, part)| *left = left.saturating_sub(*part));
            stall_cycles = stall_cycles.saturating_sub(row.stall_cycles);
            cycles = cycles.saturating_sub(row.cycles);
        }
        rows.push(StackRow { frames: vec![UNATTRIBUTED.to_owned()], misses, stall_cycles, cycles });
        rows
    }
}
