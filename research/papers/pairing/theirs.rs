//! The paper's method (sections 2 and 3): bitmaps for each core, the next task by an AND of two, and swaps that are taken
//! back if the affinity fell.

use super::kernel::{THREADS, TICKS_PER_SECOND};
use super::policy::{Policy, Sample, Wish};
use super::work::Did;
use nearmiss_pairing::{Affinity, Bitmaps, Step, Trials};
use std::collections::VecDeque;

/// Tasks with less CPU time are left out (section 3.1).
const LEAST_TICKS: u64 = 3 * TICKS_PER_SECOND;

/// State of the paper's method.
#[derive(Clone, Debug)]
pub struct Theirs {
    /// Bitmaps by core.
    bitmaps: Vec<Bitmaps>,
    /// Sums of all measurements, by core.
    sums: Vec<Did>,
    /// Ticks between swaps, and between a swap and its judgement.
    period: u64,
    trials: Trials,
}

impl Theirs {
    /// Creates the method for a machine with so many cores.
    pub fn new(cores: usize, period_ticks: u64) -> Self {
        Theirs {
            bitmaps: vec![Bitmaps::default(); cores],
            sums: vec![Did::default(); cores],
            period: period_ticks,
            trials: Trials::default(),
        }
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
        let sum = &mut self.sums[sample.core];
        let mean = sum.misses / sum.instructions;
        sample.did.iter().for_each(|did| sum.add(*did));
        // Both miss less often than tasks do here on average, both more often, or neither.
        let affinity = match sample.did.map(|did| did.misses < mean * did.instructions) {
            [true, true] => Affinity::High,
            [false, false] => Affinity::Low,
            _ => Affinity::Unknown,
        };
        self.bitmaps[sample.core].set(sample.tasks[0], sample.tasks[1], affinity);
        Some(affinity)
    }

    fn next(&mut self, core: usize, picked: usize, beside: Option<usize>, active: &VecDeque<usize>) -> usize {
        self.bitmaps[core].next(picked, beside, bits(active.iter()))
    }

    fn migrating(&mut self, from: usize, _: usize, tasks: &mut Vec<usize>) {
        let score = |task: &usize| self.bitmaps[from].score(*task, u64::MAX);
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
        match self.trials.period(&self.bitmaps, &words) {
            Step::Try(swap) | Step::Undo(swap) => vec![Wish::Swap(swap.a, swap.b)],
            Step::Stay => Vec::new(),
        }
    }
}
