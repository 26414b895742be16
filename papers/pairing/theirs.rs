//! The paper's method (sections 2 and 3): bitmaps for each core, the next task by an AND of two, and swaps that are taken
//! back if the affinity fell.

use super::kernel::{THREADS, TICKS_PER_SECOND};
use super::policy::{Policy, Sample, Wish};
use super::work::Did;
use nearmiss_pairing::{Affinity, Bitmaps};
use std::collections::VecDeque;

/// Tasks with less CPU time are left out (section 3.1).
const LEAST_TICKS: u64 = 3 * TICKS_PER_SECOND;

/// What one core's table has.
#[derive(Clone, Debug, Default)]
struct Table {
    bitmaps: Bitmaps,
    /// Everything that was measured here; older measurements count less.
    sum: Did,
}

/// A swap that is being tried.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Tried {
    tasks: [usize; 2],
    /// Scores of both before.
    score: i32,
}

/// Its state.
#[derive(Clone, Debug)]
pub struct Theirs {
    tables: Vec<Table>,
    /// Ticks between swaps, and between a swap and its judgement.
    period: u64,
    tried: Option<Tried>,
}

impl Theirs {
    /// Of a machine with so many cores.
    pub fn new(cores: usize, period_ticks: u64) -> Self {
        Theirs { tables: vec![Table::default(); cores], period: period_ticks, tried: None }
    }

    /// Undoes what did harm; otherwise swaps the tasks of the lowest scores, whether or not they would fit better.
    fn period(&mut self, cores: &[u64]) -> Vec<Wish> {
        if let Some(tried) = self.tried.take() {
            let [a, b] = tried.tasks;
            if self.score(a, cores) + self.score(b, cores) < tried.score {
                return vec![Wish::Swap(a, b)];
            }
        }
        let lowest = |core: usize| self.tables[core].bitmaps.by_score(cores[core]).first().copied();
        let mut by_core: Vec<(i32, usize)> =
            (0..cores.len()).filter_map(|core| lowest(core).map(|task| (self.score(task, cores), task))).collect();
        by_core.sort_unstable();
        let [(_, a), (_, b), ..] = by_core[..] else { return Vec::new() };
        self.tried = Some(Tried { tasks: [a, b], score: self.score(a, cores) + self.score(b, cores) });
        vec![Wish::Swap(a, b)]
    }

    /// A task's score on the core where it is.
    fn score(&self, task: usize, cores: &[u64]) -> i32 {
        let here = cores.iter().position(|tasks| tasks >> task & 1 != 0);
        here.map_or(0, |core| self.tables[core].bitmaps.score(task, cores[core]))
    }
}

/// Tasks as a word; the table has 64.
fn bits<'a>(tasks: impl Iterator<Item = &'a usize>) -> u64 {
    tasks.filter(|task| **task < 64).fold(0, |word, task| word | 1 << task)
}

impl Policy for Theirs {
    fn read(&mut self, sample: &Sample) -> Option<Affinity> {
        if sample.age.iter().any(|age| *age < LEAST_TICKS) {
            return None;
        }
        let table = &mut self.tables[sample.core];
        let mean = table.sum.misses / table.sum.instructions;
        sample.did.iter().for_each(|did| table.sum.add(*did));
        let below = sample.did.map(|did| did.misses < mean * did.instructions);
        // Both miss less often than tasks do here on average, both more often, or neither.
        let affinity = match below {
            [true, true] => Affinity::High,
            [false, false] => Affinity::Low,
            _ => Affinity::Unknown,
        };
        table.bitmaps.set(sample.tasks[0], sample.tasks[1], affinity);
        Some(affinity)
    }

    fn next(&mut self, core: usize, picked: usize, beside: Option<usize>, active: &VecDeque<usize>) -> usize {
        self.tables[core].bitmaps.next(picked, beside, bits(active.iter()))
    }

    fn migrating(&mut self, from: usize, _: usize, tasks: &mut Vec<usize>) {
        let score = |task: &usize| self.tables[from].bitmaps.score(*task, u64::MAX);
        tasks.sort_by_key(score);
    }

    fn tick(&mut self, now: u64, cores: &dyn Fn() -> Vec<[Vec<usize>; THREADS]>) -> Vec<Wish> {
        if !now.is_multiple_of(self.period) {
            return Vec::new();
        }
        let cores = cores();
        let counts: Vec<usize> = cores.iter().flatten().map(Vec::len).collect();
        // Only while the load is even.
        if counts.iter().max() != counts.iter().min() {
            return Vec::new();
        }
        let words: Vec<u64> = cores.iter().map(|queues| bits(queues.iter().flatten())).collect();
        self.period(&words)
    }
}
