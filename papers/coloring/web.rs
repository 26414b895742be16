//! The WebBench-like load: `httpd` processes that serve a piece of a request, wake another, and block.
//!
//! Nearly all processes are on the run queue, as equation 2 takes them: as many as there are CPUs sleep.

use super::clock::{Counts, Load, Simulation, Stage};
use super::memory::{Memory, NEIGHBOUR_PERCENT};
use super::queue::RunQueue;
use super::random::Random;
use super::server::Server;
use super::{Kernel, Work};
use crate::PaperError;
use nearmiss_record::machine::Machine;
use nearmiss_record::reference::Kind;
use std::collections::VecDeque;

/// A WebBench-like run.
#[derive(Clone, Copy, Debug)]
pub struct Web {
    /// `httpd` processes.
    pub processes: usize,
    /// The scheduler.
    pub kernel: Kernel,
    /// CPUs.
    pub cpus: usize,
    /// What a process does between two walks.
    pub work: Work,
    /// Seed of placement and load.
    pub seed: u64,
    /// Calls of `schedule()` before counting, and while counting, a CPU.
    pub schedules: (u64, u64),
}

/// 2^64 / the golden ratio: its multiples are spread evenly.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

struct Httpd {
    work: Work,
    /// Lines that the work of each CPU's processes uses again and again.
    pools: Vec<Vec<u64>>,
    random: Random,
    sleepers: VecDeque<usize>,
    most_sleepers: usize,
    slices: u64,
}

impl Load for Httpd {
    fn stages(&mut self, task: usize, stages: &mut VecDeque<Stage>) {
        // From half to one and a half of the mean, evenly: every run does the same amount of work, nearly.
        self.slices += 1;
        let parts = 500 + ((self.slices.wrapping_mul(GOLDEN) >> 32) * 1001 >> 32);
        let before = self.random.below(parts + 1);
        stages.push_back(Stage::Work(before));
        self.sleepers.push_back(task);
        if self.sleepers.len() > self.most_sleepers
            && let Some(awake) = self.sleepers.pop_front()
        {
            stages.push_back(Stage::Wake(awake));
        }
        stages.push_back(Stage::Work(parts - before));
        stages.push_back(Stage::Schedule(true));
    }

    fn work(&mut self, cpu: usize, _: usize, parts: u64, server: &mut Server) -> u64 {
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
        for i in (1..order.len()).rev() {
            order.swap(i, random.below(i as u64 + 1) as usize);
        }
        for task in order {
            queue.place(task, &mut server)?;
        }
        let load =
            Httpd { work: self.work, pools, random, sleepers: VecDeque::new(), most_sleepers: self.cpus, slices: 0 };
        let mut simulation = Simulation::new(machine, server, queue, load, self.cpus);
        simulation.run(self.schedules.0 * self.cpus as u64)?;
        simulation.reset();
        simulation.run(self.schedules.1 * self.cpus as u64)?;
        Ok(simulation.counts())
    }
}
