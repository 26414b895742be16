//! Policies that decide which tasks run beside each other. The rules themselves are the library's (`nearmiss-pairing`);
//! here they run on the simulated kernel.

use super::kernel::THREADS;
use super::work::Did;
use nearmiss_pairing::Affinity;
use std::collections::VecDeque;

/// Counters of a core's hardware threads for two tasks since one of them last was switched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Core.
    pub core: usize,
    /// Tasks.
    pub tasks: [usize; THREADS],
    /// Work of each beside the other.
    pub did: [Did; THREADS],
    /// For how long.
    pub ticks: u64,
    /// CPU time that each has had in all, in ticks.
    pub age: [u64; THREADS],
}

/// Action requested by a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Two tasks change places.
    Swap(usize, usize),
    /// A task goes to a core, onto the shorter of its queues.
    Move(usize, usize),
}

/// A scheduler's own rules, on top of the kernel's.
pub trait Policy {
    /// Takes a sample of the counters. Returns how the pair is judged now; nothing if it was not judged.
    fn read(&mut self, sample: &Sample) -> Option<Affinity>;
    /// The task to run next.
    fn next(&mut self, core: usize, picked: usize, beside: Option<usize>, active: &VecDeque<usize>) -> usize;
    /// Tasks that may migrate, in the order in which they go.
    fn migrating(&mut self, from: usize, to: usize, tasks: &mut Vec<usize>);
    /// Each tick: what to do. `cores` has the queues of each core's hardware threads.
    fn tick(&mut self, now: u64, cores: &dyn Fn() -> Vec<[Vec<usize>; THREADS]>) -> Vec<Wish>;
    /// A task ended.
    fn ended(&mut self, task: usize, now: u64) {
        let _ = (task, now);
    }
    /// The core on which each task is to start; none: as the kernel makes them.
    fn start(&self) -> Option<Vec<usize>> {
        None
    }
}

/// The kernel as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Standard;

impl Policy for Standard {
    fn read(&mut self, _: &Sample) -> Option<Affinity> {
        None
    }
    fn next(&mut self, _: usize, picked: usize, _: Option<usize>, _: &VecDeque<usize>) -> usize {
        picked
    }
    fn migrating(&mut self, _: usize, _: usize, _: &mut Vec<usize>) {}
    fn tick(&mut self, _: u64, _: &dyn Fn() -> Vec<[Vec<usize>; THREADS]>) -> Vec<Wish> {
        Vec::new()
    }
}

/// Each task bound to a core from its start: the optimum, where that is known.
#[derive(Clone, Debug)]
pub struct Bound {
    /// Core by task.
    pub cores: Vec<usize>,
}

impl Policy for Bound {
    fn read(&mut self, _: &Sample) -> Option<Affinity> {
        None
    }
    fn next(&mut self, _: usize, picked: usize, _: Option<usize>, _: &VecDeque<usize>) -> usize {
        picked
    }
    fn migrating(&mut self, from: usize, to: usize, tasks: &mut Vec<usize>) {
        if from != to {
            tasks.clear();
        }
    }
    fn tick(&mut self, _: u64, _: &dyn Fn() -> Vec<[Vec<usize>; THREADS]>) -> Vec<Wish> {
        Vec::new()
    }
    fn start(&self) -> Option<Vec<usize>> {
        Some(self.cores.clone())
    }
}
