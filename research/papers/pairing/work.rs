//! Work of tasks while they have a CPU: the blocked product in two groups.

use super::kernel::{THREADS, TICKS_PER_SECOND};
use super::rates::{Beside, Rate, Rates};
use nearmiss_record::machine::Machine;

/// Work that a task did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Did {
    /// Cycles it had its CPU.
    pub cycles: f64,
    /// Instructions.
    pub instructions: f64,
    /// Misses of the second level.
    pub misses: f64,
}

impl Did {
    /// Adds another's.
    pub fn add(&mut self, other: Did) {
        self.cycles += other.cycles;
        self.instructions += other.instructions;
        self.misses += other.misses;
    }
}

/// A load.
pub trait Work {
    /// Returns how many tasks it has.
    fn tasks(&self) -> usize;
    /// Returns the work of the tasks on a core's hardware threads in a tick.
    fn tick(&mut self, core: usize, running: [Option<usize>; THREADS]) -> [Did; THREADS];
    /// Returns whether a task has nothing left to do.
    fn is_done(&self, task: usize) -> bool;
    /// Returns whether two tasks share well: the measure of a judgement. None where nothing is true of it.
    fn share(&self, a: usize, b: usize) -> Option<bool>;
}

/// Groups of the product.
pub const GROUPS: usize = 2;

/// How much there is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Threads, both groups together.
    pub threads: usize,
    /// Rows of the block of A for each block of B.
    pub rows_of_block: u64,
    /// Blocks of B that a group goes through, one after another, each as often as the result has blocks below each other.
    pub blocks: u64,
}

/// The product. Threads of a group take the next rows of the block in turn, so that all are at the same block.
#[derive(Clone, Debug)]
pub struct Product<'a> {
    rates: &'a Rates,
    size: Size,
    seed: u64,
    tick_cycles: f64,
    /// Rows done by group.
    rows_done: [f64; GROUPS],
    /// Blocks in the core's cache, as group and number, by core.
    resident: Vec<[Option<(usize, u64)>; THREADS]>,
}

impl<'a> Product<'a> {
    /// Creates the threads of a run; a seed places their blocks.
    pub fn new(rates: &'a Rates, machine: &Machine, size: Size, seed: u64) -> Self {
        let cores = (machine.topology.cpus() as usize).div_ceil(THREADS);
        Product {
            rates,
            size,
            seed,
            tick_cycles: f64::from(machine.clock_mhz) * 1e6 / TICKS_PER_SECOND as f64,
            rows_done: [0.0; GROUPS],
            resident: vec![[None; THREADS]; cores],
        }
    }

    /// The group of a thread: they are made in turn.
    pub fn group(task: usize) -> usize {
        task % GROUPS
    }

    fn rows(&self) -> f64 {
        (self.size.rows_of_block * self.size.blocks) as f64
    }

    fn block(&self, group: usize) -> u64 {
        (self.rows_done[group] / self.size.rows_of_block as f64) as u64
    }

    /// The rate of a thread, and whether its block is new to the core.
    fn rate(&self, core: usize, group: usize, beside: Option<usize>) -> (Rate, bool) {
        let kind = match beside {
            None => Beside::Nobody,
            Some(other) if other == group => Beside::Same,
            Some(_) => Beside::Other,
        };
        let other = beside.unwrap_or(group);
        let draw = mix(&[self.seed, core as u64, kind as u64, self.block(group), self.block(other)]);
        let is_new = !self.resident[core].contains(&Some((group, self.block(group))));
        // Beside the other group all of the block comes again with each row, the first ones too.
        (self.rates.of(kind, draw), is_new && kind != Beside::Other)
    }
}

/// A number that looks drawn (splitmix64, over all of them).
pub fn mix(numbers: &[u64]) -> u64 {
    numbers.iter().fold(0x9e37_79b9_7f4a_7c15, |state: u64, number| {
        let mut z = (state ^ number).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
}

impl Work for Product<'_> {
    fn tasks(&self) -> usize {
        self.size.threads
    }

    fn tick(&mut self, core: usize, running: [Option<usize>; THREADS]) -> [Did; THREADS] {
        let groups = running.map(|task| task.map(Self::group));
        let did = std::array::from_fn(|thread| {
            let Some(group) = groups[thread] else { return Did::default() };
            let (rate, is_new) = self.rate(core, group, groups[1 - thread]);
            let cold = if is_new { self.rates.cold } else { Rate::default() };
            let rows = ((self.tick_cycles - cold.cycles) / rate.cycles).max(0.0);
            self.rows_done[group] += rows;
            Did {
                cycles: self.tick_cycles,
                instructions: rows * self.rates.instructions,
                misses: rows * rate.misses + cold.misses,
            }
        });
        self.resident[core] = groups.map(|group| group.map(|group| (group, self.block(group))));
        did
    }

    fn is_done(&self, task: usize) -> bool {
        self.rows_done[Self::group(task)] >= self.rows()
    }

    fn share(&self, a: usize, b: usize) -> Option<bool> {
        Some(Self::group(a) == Self::group(b))
    }
}
