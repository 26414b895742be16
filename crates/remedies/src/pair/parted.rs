//! Tasks of a run alone, beside one another, and in groups: replays of the trace taken apart.

use super::hands;
use super::kept::KeptPair;
use super::tasks::Sample;
use nearmiss_analysis::{CaseError, PLACEMENTS, Traced, placed, replay, seeds, side_by_side, spread, workers};
use nearmiss_machine::describe::Domains;
use nearmiss_machine::model::{Fast, Hand, ModelOptions, Parted, Parting};
use nearmiss_machine::observer::NullObserver;
use nearmiss_pairing::PairTable;
use nearmiss_record::policy::Order;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A run taken apart, and the machine that it is put together on.
pub struct PartedRun<'a> {
    case: &'a Traced,
    parted: Parted,
    options: ModelOptions,
    windows: usize,
    domains: Domains,
    tasks: usize,
    /// Seeds of the page placements.
    pub placements: Vec<u64>,
}

/// Observed costs of the tasks of a run.
pub struct TaskCosts {
    /// Cycles of each task alone: median over the placements.
    pub alone: Vec<f64>,
    /// Time of each task beside each other one, as a share of its time alone; a sample for each placement.
    pub table: PairTable,
    /// The samples of the table.
    pub samples: Vec<KeptPair>,
}

impl TaskCosts {
    /// Makes it from the cycles of each task alone, and the samples of all pairs.
    pub fn of(alone: Vec<f64>, samples: Vec<KeptPair>) -> Self {
        let mut table = PairTable::new(alone.len());
        for KeptPair { task, beside, of_alone } in &samples {
            of_alone.iter().for_each(|of_alone| table.add(*task, *beside, *of_alone));
        }
        TaskCosts { alone, table, samples }
    }
}

impl<'a> PartedRun<'a> {
    /// Reads a run's trace once.
    pub fn new(case: &'a Traced, sample: &Sample, domains: Domains) -> Result<Self, CaseError> {
        let header = replay::header(&case.run)?;
        let parting = Parting::new(sample.wanted(), sample.window, header.cpus)?;
        let parted = replay::part(&case.run, parting)?;
        let windows = (0..sample.tasks.len()).map(|task| parted.windows(task)).min().unwrap_or(0);
        if windows == 0 {
            return Err(CaseError::Unfit("a task of the run has no window of instructions to replay".to_owned()));
        }
        Ok(PartedRun {
            case,
            parted,
            options: ModelOptions::of(&header, Order::Modelled).without_reasons(),
            windows,
            domains,
            tasks: sample.tasks.len(),
            placements: seeds(case.machine(), PLACEMENTS),
        })
    }

    /// Windows of each task that are replayed.
    pub fn windows(&self) -> usize {
        self.windows
    }

    /// References of all tasks that are replayed.
    pub fn records(&self) -> u64 {
        (0..self.tasks).map(|task| self.parted.records(task)).sum()
    }

    /// Returns, by task, the share of its instructions that each domain of the machine executed when the run was
    /// recorded.
    pub fn present(&self) -> Vec<Vec<f64>> {
        let of = |task: usize| {
            let mut shares = vec![0.0; self.domains.count as usize];
            let executed = self.parted.executed_on(task);
            let all = executed.iter().sum::<u64>().max(1) as f64;
            for (cpu, instructions) in (0..).zip(executed) {
                if let Some(share) = shares.get_mut(self.domains.of(cpu) as usize) {
                    *share += *instructions as f64 / all;
                }
            }
            shares
        };
        (0..self.tasks).map(of).collect()
    }

    /// Every task alone, and every pair.
    pub fn pairs(&self) -> Result<TaskCosts, CaseError> {
        let tasks = self.tasks;
        let alone = (0..tasks).map(|task| hands::pair(task, None, self.windows));
        let pairs: Vec<(usize, usize)> = PairTable::new(tasks).pairs().collect();
        let together = pairs.iter().map(|(a, b)| hands::pair(*a, Some(*b), self.windows));
        let cycles = self.replay(&alone.chain(together).collect::<Vec<_>>())?;
        let (alone, together) = cycles.split_at(tasks);
        let of_alone = |cycles: &[Vec<f64>], task: usize| {
            let each = cycles.iter().zip(&alone[task]);
            each.map(|(together, alone)| together[task] / alone[task].max(1.0)).collect()
        };
        let both = pairs.into_iter().zip(together).flat_map(|((a, b), cycles)| {
            [(a, b), (b, a)].map(|(task, beside)| KeptPair { task, beside, of_alone: of_alone(cycles, task) })
        });
        let middle = |(task, cycles): (usize, &Vec<Vec<f64>>)| spread(cycles.iter().map(|cycles| cycles[task])).0;
        Ok(TaskCosts::of(alone.iter().enumerate().map(middle).collect(), both.collect()))
    }

    /// Cycles of all tasks in each of these groupings, by grouping and placement.
    pub fn groupings(&self, groupings: &[&[Vec<usize>]]) -> Result<Vec<Vec<f64>>, CaseError> {
        let hands: Vec<Vec<Hand>> =
            groupings.iter().map(|groups| hands::whole(groups, &self.domains, self.windows)).collect();
        let sum = |cycles: &Vec<f64>| cycles.iter().sum::<f64>();
        Ok(self.replay(&hands)?.iter().map(|cycles| cycles.iter().map(sum).collect()).collect())
    }

    /// Cycles by what is replayed, placement and task.
    fn replay(&self, hands: &[Vec<Hand>]) -> Result<Vec<Vec<Vec<f64>>>, CaseError> {
        let _turn = self.case.rehearsing.lock().unwrap_or_else(PoisonError::into_inner);
        let with_seeds = |hands| self.placements.iter().map(move |seed| (hands, *seed));
        let jobs: Vec<(&Vec<Hand>, u64)> = hands.iter().flat_map(with_seeds).collect();
        let done = AtomicUsize::new(0);
        let cycles = side_by_side(&jobs, workers(jobs.len()), |(hands, seed)| {
            let cycles = self.replay_one(hands, *seed)?;
            (self.case.on_progress)(done.fetch_add(1, Ordering::Relaxed) + 1, jobs.len());
            Ok(cycles)
        })?;
        Ok(cycles.chunks(self.placements.len()).map(<[_]>::to_vec).collect())
    }

    fn replay_one(&self, hands: &[Hand], seed: u64) -> Result<Vec<f64>, CaseError> {
        let machine = placed(self.case.machine(), seed);
        let replayed = self.parted.replay::<Fast, _>(&machine, &self.options, hands, NullObserver)?;
        Ok(replayed.cycles.into_iter().map(|cycles| cycles as f64).collect())
    }
}
