//! The WebBench-like load: `httpd` processes that serve a piece of a request, wake another, and block.
//!
//! Nearly all processes are on the run queue, as equation 2 takes them: as many as there are CPUs sleep.

use super::clock::{Counts, Load, Simulation, Stage};
use super::memory::{Memory, NEIGHBOUR_PERCENT};
use super::queue::RunQueue;
use super::server::Server;
use super::{Kernel, Work};
use crate::PaperError;
use crate::random::Random;
use nearmiss_record::machine::Machine;
use nearmiss_record::reference::Kind;
use std::collections::VecDeque;

/// How long a task that blocks stays off the queue.
#[derive(Clone, Copy, Debug)]
pub enum Sleep {
    /// Until it is the turn of the one that sleeps longest: so many sleep at any time.
    Turns(usize),
    /// For so many microseconds.
    Micros(u64),
}

/// A WebBench-like run.
#[derive(Clone, Copy, Debug)]
pub struct Web {
    /// `httpd` processes.
    pub processes: usize,
    /// How long they sleep.
    pub sleep: Sleep,
    /// The scheduler.
    pub kernel: Kernel,
    /// CPUs.
    pub cpus: usize,
    /// Work of a process between two walks.
    pub work: Work,
    /// Seed of placement and load.
    pub seed: u64,
    /// Slices that are counted, a CPU.
    pub slices: u64,
}

/// Slices of each CPU before counting begins: by then its caches are full.
const WARM_SLICES: u64 = 32;
/// Slices after which as much work was done as at the mean.
const BLOCK: u64 = 64;

struct Httpd {
    work: Work,
    /// Lines that the work of each CPU's processes uses again and again.
    pools: Vec<Vec<u64>>,
    random: Random,
    /// Sleeping tasks, and when they wake.
    sleepers: VecDeque<(usize, u64)>,
    /// Cycles; `None`: one wakes a slice.
    sleep_cycles: Option<u64>,
    /// Lengths of the slices to come, in parts of 1,000.
    lengths: Vec<u64>,
}

impl Httpd {
    /// From half to one and a half of the mean, one from each part of that range in turn: every run does the same work.
    fn next_parts(&mut self) -> u64 {
        if self.lengths.is_empty() {
            self.lengths = (0..BLOCK).map(|i| 500 + (2 * i + 1) * 500 / BLOCK).collect();
            self.random.shuffle(&mut self.lengths);
        }
        self.lengths.pop().unwrap_or(1000)
    }
}

impl Load for Httpd {
    fn stages(&mut self, now: u64, stages: &mut VecDeque<Stage>) {
        let parts = self.next_parts();
        let before = self.random.below(parts + 1);
        stages.push_back(Stage::Work(before));
        while let Some((awake, _)) = self.sleepers.pop_front_if(|(_, until)| *until <= now) {
            stages.push_back(Stage::Wake(awake));
            if self.sleep_cycles.is_none() {
                break;
            }
        }
        stages.push_back(Stage::Work(parts - before));
        stages.push_back(Stage::Schedule(true));
    }

    fn blocked(&mut self, task: usize, now: u64) {
        self.sleepers.push_back((task, self.sleep_cycles.map_or(0, |cycles| now + cycles)));
    }

    fn work(&mut self, cpu: usize, parts: u64, server: &mut Server) -> u64 {
        let pool = &self.pools[cpu];
        for _ in 0..self.work.lines * parts / 1000 {
            let at = self.random.below(pool.len() as u64 * 128);
            let address = pool[(at / 128) as usize] + at % 128 * 32;
            let kind = if self.random.below(100) < self.work.store_percent { Kind::Store } else { Kind::Load };
            server.touch(kind, address, 4);
        }
        self.work.instructions * parts / 1000
    }
}

impl Web {
    /// Simulates it on a machine.
    pub fn run(&self, machine: &Machine) -> Result<Counts, PaperError> {
        let way = super::way_bytes(machine)?;
        let mut memory = Memory::new(self.seed);
        let stacks = memory.stacks(self.processes, NEIGHBOUR_PERCENT);
        let pools = (0..self.cpus).map(|_| memory.pages(self.work.pool_pages)).collect();
        let mut server = Server::new(machine, self.cpus)?;
        let mut queue = RunQueue::new(self.kernel, &stacks, way, self.cpus)?;
        let mut order: Vec<usize> = (0..self.processes).collect();
        let mut random = Random::new(self.seed ^ 0x5eed);
        random.shuffle(&mut order);
        let (asleep, sleep_cycles) = match self.sleep {
            Sleep::Turns(asleep) => (asleep, None),
            Sleep::Micros(micros) => (0, Some(micros * u64::from(machine.clock_mhz))),
        };
        let sleepers =
            order.split_off(self.processes.saturating_sub(asleep)).into_iter().map(|task| (task, 0)).collect();
        for task in order {
            queue.place(task, &mut server)?;
        }
        let load = Httpd {
            work: self.work,
            pools,
            random: Random::new(self.seed ^ 0x10ad),
            sleepers,
            sleep_cycles,
            lengths: Vec::new(),
        };
        let mut simulation = Simulation::new(machine, server, queue, load, self.cpus);
        let cpus = self.cpus as u64;
        simulation.run((WARM_SLICES * cpus).max(BLOCK))?;
        simulation.reset();
        simulation.run(self.slices * cpus)?;
        Ok(simulation.counts())
    }
}
