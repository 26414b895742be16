//! All runs behind the tables: rates from the model, then every scheduler on the same seeds.

use super::kernel::THREADS;
use super::mix::{self, Mix, Paces};
use super::ours::Ours;
use super::policy::{Bound, Policy, Standard};
use super::product::Shape;
use super::rates::{Load, Rates};
use super::run::{Counts, Run};
use super::theirs::Theirs;
use super::work::{GROUPS, Product, Size};
use super::{CYCLES, DAEMONS, INSTRUCTIONS, MACHINE, PERIOD_TICKS};
use crate::PaperError;
use crate::pacing::plan::Scale;
use crate::parallel::simulate_all;
use nearmiss_record::machine::Machine;

/// No run takes longer.
const MOST_TICKS: u64 = 4_000_000;

/// Which scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// Linux 2.6.3.
    Standard,
    /// With the paper's method.
    Theirs,
    /// With ours.
    Ours,
    /// Each group bound to a core.
    Optimum,
}

/// All, in the order of the tables.
pub const SCHEDULERS: [Scheduler; 4] = [Scheduler::Standard, Scheduler::Theirs, Scheduler::Ours, Scheduler::Optimum];

impl Scheduler {
    /// For tables.
    pub fn name(self) -> &'static str {
        match self {
            Scheduler::Standard => "standard",
            Scheduler::Theirs => "paper's method",
            Scheduler::Ours => "ours",
            Scheduler::Optimum => "optimum, bound",
        }
    }

    fn policy(self, tasks: usize, cores: usize) -> Box<dyn Policy> {
        match self {
            Scheduler::Standard => Box::new(Standard),
            Scheduler::Theirs => Box::new(Theirs::new(cores, PERIOD_TICKS)),
            Scheduler::Ours => Box::new(Ours::new(tasks)),
            Scheduler::Optimum => Box::new(Bound { cores: (0..tasks).map(|task| task % GROUPS).collect() }),
        }
    }
}

/// How much is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Runs of each scheduler.
    pub runs: u64,
    /// Placements of pages for the rates, and rows of each.
    pub placements: u64,
    /// Rows that are counted.
    pub rows: u64,
    /// Runs of each mix.
    pub mixes: u64,
    /// The first seed of runs and of placements; the others follow.
    pub first_seed: u64,
}

/// First of the seeds that were not looked at while a parameter was being chosen.
const HELD_OUT: u64 = 1_000_000;

impl Extent {
    /// Returns the extent of a trial for tests, or of the whole study.
    pub fn of(scale: Scale) -> Self {
        match scale {
            Scale::Trial => Extent { runs: 10, placements: 2, rows: 4, mixes: 2, first_seed: 0 },
            _ => Extent { runs: 100, placements: 6, rows: 8, mixes: 8, first_seed: 0 },
        }
    }

    /// Returns the same extent on other seeds.
    pub fn held_out(self) -> Self {
        Extent { first_seed: HELD_OUT, ..self }
    }

    fn seeds(self, count: u64) -> std::ops::Range<u64> {
        self.first_seed..self.first_seed + count
    }
}

/// The paper's product: 4,900 × 4,900 in 14 × 14 blocks.
pub const PRODUCT: Shape = Shape { row: 4900, block: 350, element: 4 };

/// The runs' work: each group has half of the columns of blocks.
pub const SIZE: Size = Size { threads: 8, rows_of_block: 350, blocks: 14 * 14 * 14 / 2 };

/// Returns the modelled load for an element of so many bytes.
pub fn load(extent: Extent, element: u64) -> Load {
    let shape = Shape { element, ..PRODUCT };
    let placements = extent.seeds(extent.placements);
    Load { shape, instructions: INSTRUCTIONS, cycles: CYCLES, rows: extent.rows, placements }
}

/// Every scheduler's runs.
#[derive(Clone, Debug)]
pub struct Study {
    /// The machine.
    pub machine: Machine,
    /// Rates that the runs were made with.
    pub rates: Rates,
    /// Runs by [`SCHEDULERS`]; the n-th of each has the same seed.
    pub runs: Vec<Vec<Counts>>,
}

/// Returns how many parts [`study`] has.
pub fn parts(extent: Extent) -> usize {
    load(extent, 4).parts() + SCHEDULERS.len() * extent.runs as usize
}

/// Runs everything on the product.
pub fn study(extent: Extent, done: &(dyn Fn() + Sync)) -> Result<Study, PaperError> {
    let machine = crate::machine(MACHINE)?;
    let rates = load(extent, PRODUCT.element).rates(&machine, done)?;
    let cpus = machine.topology.cpus() as usize;
    let inputs: Vec<_> =
        SCHEDULERS.iter().flat_map(|scheduler| extent.seeds(extent.runs).map(move |seed| (*scheduler, seed))).collect();
    let counts = simulate_all(&inputs, done, |&(scheduler, seed)| {
        let mut policy = scheduler.policy(SIZE.threads, cpus / THREADS);
        let work = Product::new(&rates, &machine, SIZE, seed);
        Ok(Run { work, policy: &mut *policy, cpus, daemons: DAEMONS, seed }.run(MOST_TICKS))
    })?;
    let runs = counts.chunks(extent.runs as usize).map(<[Counts]>::to_vec).collect();
    Ok(Study { machine, rates, runs })
}

/// One machine's mixes.
#[derive(Clone, Debug)]
pub struct Mixed {
    /// Which.
    pub machine: &'static str,
    /// How kinds slow each other.
    pub paces: Paces,
    /// Runs by [`mix::TASKS`], by standard, theirs and ours.
    pub runs: Vec<Vec<Vec<Counts>>>,
}

/// Schedulers of mixes: their optimum is unknown.
pub const OF_MIXES: [Scheduler; 3] = [Scheduler::Standard, Scheduler::Theirs, Scheduler::Ours];

/// Returns how many parts [`mixed`] has.
pub fn parts_of_mixes(extent: Extent) -> usize {
    mix::MACHINES.len() * (mix::PARTS + mix::TASKS.len() * OF_MIXES.len() * extent.mixes as usize)
}

/// Runs all mixes.
pub fn mixed(extent: Extent, done: &(dyn Fn() + Sync)) -> Result<Vec<Mixed>, PaperError> {
    mix::MACHINES.iter().map(|name| mixed_on(name, extent, done)).collect()
}

fn mixed_on(name: &'static str, extent: Extent, done: &(dyn Fn() + Sync)) -> Result<Mixed, PaperError> {
    let machine = mix::machine(name)?;
    let paces = mix::paces(&machine, extent.first_seed, done)?;
    let cpus = machine.topology.cpus() as usize;
    let with = |tasks: usize| {
        OF_MIXES.into_iter().flat_map(move |s| extent.seeds(extent.mixes).map(move |seed| (tasks, s, seed)))
    };
    let inputs: Vec<_> = mix::TASKS.into_iter().flat_map(with).collect();
    let counts = simulate_all(&inputs, done, |&(tasks, scheduler, seed)| {
        let mut policy = scheduler.policy(tasks, cpus / THREADS);
        let work = Mix::new(&paces, &machine, tasks, seed);
        Ok(Run { work, policy: &mut *policy, cpus, daemons: DAEMONS, seed }.run(MOST_TICKS))
    })?;
    let by_scheduler: Vec<Vec<Counts>> = counts.chunks(extent.mixes as usize).map(<[Counts]>::to_vec).collect();
    let runs = by_scheduler.chunks(OF_MIXES.len()).map(<[Vec<Counts>]>::to_vec).collect();
    Ok(Mixed { machine: name, paces, runs })
}

/// Runs by scheduler, in the order of the tables.
pub fn by_scheduler(study: &Study) -> [&[Counts]; 4] {
    std::array::from_fn(|at| study.runs[at].as_slice())
}
