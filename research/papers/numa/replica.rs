//! The two benchmarks on one node and on two, under three kernels.

use super::clock::{Counts, Simulation};
use super::load::Load;
use super::{Kernel, SEEDS};
use crate::PaperError;
use crate::parallel::simulate_all;

/// Requests before counting begins: by then the caches are full.
const WARM: u64 = 64;
/// Requests that are counted, a seed.
const COUNTED: u64 = 128;

/// One benchmark under all kernels.
#[derive(Clone, Debug)]
pub struct Runs {
    /// Counts by [`Kernel::ALL`], on one node and on two.
    pub counts: Vec<[Counts; 2]>,
}

/// How many simulations a benchmark takes.
pub const PARTS: usize = 2 * Kernel::ALL.len() * SEEDS.len();

/// One run: so many requests are counted.
pub fn run(load: Load, kernel: Kernel, nodes: usize, seed: u64, requests: u64) -> Result<Counts, PaperError> {
    let mut simulation = Simulation::new(load, kernel, nodes, seed)?;
    simulation.run(WARM)?;
    simulation.reset();
    simulation.run(requests)
}

/// Simulates a benchmark.
pub fn runs(load: Load, done: &(dyn Fn() + Sync)) -> Result<Runs, PaperError> {
    let mut inputs = Vec::new();
    for kernel in Kernel::ALL {
        for nodes in [1, 2] {
            inputs.extend(SEEDS.map(|seed| (kernel, nodes, seed)));
        }
    }
    let counts = simulate_all(&inputs, done, |&(kernel, nodes, seed)| run(load, kernel, nodes, seed, COUNTED))?;
    let sums: Vec<Counts> =
        counts.chunks(SEEDS.len()).map(|seeds| seeds.iter().fold(Counts::default(), |sum, c| sum.plus(c))).collect();
    Ok(Runs { counts: sums.chunks(2).filter_map(|pair| pair.try_into().ok()).collect() })
}

impl Runs {
    /// Returns the counts of a kernel on so many nodes.
    pub fn of(&self, kernel: Kernel, nodes: usize) -> Counts {
        self.counts[kernel as usize][nodes - 1]
    }

    /// Returns how much longer a request takes on two nodes than on one, under the same kernel, in percent.
    pub fn overhead(&self, kernel: Kernel) -> f64 {
        (self.of(kernel, 2).total() / self.of(kernel, 1).total() - 1.0) * 100.0
    }

    /// The kernel's time saved, in percent of the base kernel's on so many nodes.
    pub fn saved(&self, kernel: Kernel, nodes: usize) -> f64 {
        (1.0 - self.of(kernel, nodes).kernel() / self.of(Kernel::Base, nodes).kernel()) * 100.0
    }

    /// Share of bus reads that are local, in percent.
    pub fn locality(&self, kernel: Kernel) -> f64 {
        let bus = self.of(kernel, 2).bus;
        100.0 - bus.read_remote as f64 * 100.0 / bus.reads().max(1) as f64
    }
}
