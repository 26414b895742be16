//! Replays of one run under several policies and page placements.

use crate::cost::Cost;
use crate::pass::{Job, one_pass};
use crate::replay::{self, CaseError, Replayable};
use crate::traced::{TracePart, Traced};
use nearmiss_record::machine::Machine;
use nearmiss_record::policy::{Order, Policy};
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Most replays at once, which bounds the memory that a rehearsal takes.
const MOST_AT_ONCE: usize = 8;

/// How the machine's cores wait, for people.
pub fn waits(case: &Traced) -> String {
    match case.machine().hidden_share() {
        Some(share) => format!("overlap {share}"),
        None => "waits by the interval model".to_owned(),
    }
}

/// Replays of a run, about to be made: each change under each placement. Without a change the run is replayed as it
/// was, without a placement on the machine's own.
///
/// ```no_run
/// # use nearmiss_analysis::{CaseError, Cost, Replays, Traced, seeds};
/// # use nearmiss_record::policy::Policy;
/// # fn costs(traced: &Traced, policies: &[Policy]) -> Result<Vec<Vec<Cost>>, CaseError> {
/// let placements = seeds(traced.machine(), 3);
/// let costs = Replays::of(traced).policies(policies).placements(&placements).run()?;
/// # Ok(costs) }
/// ```
#[must_use = "replays are made by `run`"]
pub struct Replays<'a> {
    traced: &'a Traced,
    replayable: Replayable<'a>,
    order: Order,
    inside: &'a [(u64, u64)],
    changes: Vec<(&'a Machine, &'a Policy)>,
    placements: &'a [u64],
}

impl<'a> Replays<'a> {
    /// Replays of this run, in the order of its model.
    pub fn of(traced: &'a Traced) -> Self {
        let placements = std::slice::from_ref(&traced.machine().memory.placement_seed);
        let (replayable, order) = (traced.replayable(), traced.model.order);
        Replays {
            traced,
            replayable,
            order,
            inside: &[],
            changes: vec![(traced.machine(), &Policy::RECORDED)],
            placements,
        }
    }

    /// Under each of these policies.
    pub fn policies(mut self, policies: &'a [Policy]) -> Self {
        self.changes = policies.iter().map(|policy| (self.traced.machine(), policy)).collect();
        self
    }

    /// On each of these machines, without a policy.
    pub fn machines(mut self, machines: &[&'a Machine]) -> Self {
        self.changes = machines.iter().map(|&machine| (machine, &Policy::RECORDED)).collect();
        self
    }

    /// With the seed of each of these placements of pages.
    pub fn placements(mut self, seeds: &'a [u64]) -> Self {
        self.placements = seeds;
        self
    }

    /// With the records of several CPUs in this order.
    pub fn in_order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// With a part of the run only, from its begin on.
    pub fn part(mut self, part: TracePart) -> Self {
        self.replayable.blocks = part.blocks;
        self
    }

    /// With transactions of these ranges (ascending, disjoint) counted as inside.
    pub fn inside(mut self, ranges: &'a [(u64, u64)]) -> Self {
        self.inside = ranges;
        self
    }

    /// Makes the replays. Returns the costs by change, then by placement.
    pub fn run(self) -> Result<Vec<Vec<Cost>>, CaseError> {
        let with_each = |&(machine, policy)| self.placements.iter().map(move |&seed| Job { machine, policy, seed });
        let jobs: Vec<Job<'_>> = self.changes.iter().flat_map(with_each).collect();
        Ok(self.costs(&jobs)?.chunks(self.placements.len()).map(<[Cost]>::to_vec).collect())
    }

    /// Makes one replay for each pair of a policy and the seed of a placement. Returns the costs in the pairs' order.
    pub fn each(self, pairs: &[(&Policy, u64)]) -> Result<Vec<Cost>, CaseError> {
        let machine = self.traced.machine();
        let jobs: Vec<Job<'_>> = pairs.iter().map(|&(policy, seed)| Job { machine, policy, seed }).collect();
        self.costs(&jobs)
    }

    /// Returns the costs of replays; the whole run as it was is replayed once, for all callers.
    fn costs(&self, jobs: &[Job<'_>]) -> Result<Vec<Cost>, CaseError> {
        let _turn = self.traced.rehearsing.lock().unwrap_or_else(PoisonError::into_inner);
        let baselines = &self.traced.baselines;
        let known = |job: &Job<'_>| self.is_as_it_was(job).then(|| baselines.cost(self.order, job.seed)).flatten();
        let costs: Vec<Option<Cost>> = jobs.iter().map(known).collect();
        let unknown: Vec<Job<'_>> =
            jobs.iter().zip(&costs).filter(|(_, cost)| cost.is_none()).map(|(job, _)| *job).collect();
        let mut replayed = self.passes(&unknown)?.into_iter();
        let cost = |(job, known): (&Job<'_>, Option<Cost>)| {
            let cost = known.or_else(|| replayed.next()).ok_or_else(replay::no_result)?;
            if self.is_as_it_was(job) {
                baselines.keep(self.order, job.seed, &cost);
            }
            Ok(cost)
        };
        jobs.iter().zip(costs).map(cost).collect()
    }

    fn is_as_it_was(&self, job: &Job<'_>) -> bool {
        let whole = self.replayable.blocks == usize::MAX && self.inside.is_empty();
        whole && *job.policy == Policy::RECORDED && std::ptr::eq(job.machine, self.traced.machine())
    }

    /// Makes as many passes over the trace as there are CPUs to work on, with as many replays in each as make
    /// [`MOST_AT_ONCE`] in all.
    fn passes(&self, jobs: &[Job<'_>]) -> Result<Vec<Cost>, CaseError> {
        let workers = workers(jobs.len());
        let together = jobs.len().div_ceil(workers).clamp(1, MOST_AT_ONCE / workers);
        let whole = jobs.len() * replay::blocks(&self.traced.run)?.min(self.replayable.blocks);
        let done = AtomicUsize::new(0);
        let progress = || (self.traced.on_progress)(done.fetch_add(1, Ordering::Relaxed) + 1, whole);
        let groups: Vec<_> = jobs.chunks(together).collect();
        let pass = |group: &&[Job<'_>]| one_pass(self.replayable, self.order, group, self.inside, &progress);
        Ok(side_by_side(&groups, workers, pass)?.concat())
    }
}

/// Returns as many workers as there are CPUs to work on, and no more than jobs.
pub fn workers(jobs: usize) -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(jobs).clamp(1, MOST_AT_ONCE)
}

/// Returns the results of jobs in their order. Each of so many workers takes what nobody works on yet.
pub fn side_by_side<J: Sync, R: Send>(
    jobs: &[J],
    workers: usize,
    work: impl Fn(&J) -> Result<R, CaseError> + Sync,
) -> Result<Vec<R>, CaseError> {
    let pool = ThreadPoolBuilder::new().num_threads(workers).build();
    let pool = pool.map_err(|error| CaseError::Unfit(format!("no threads for the replays: {error}")))?;
    pool.install(|| jobs.par_iter().with_max_len(1).map(&work).collect())
}

/// Median, least and most.
pub fn spread(values: impl Iterator<Item = f64>) -> (f64, f64, f64) {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => (0.0, 0.0, 0.0),
        n => ((sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0, sorted[0], sorted[n - 1]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_an_even_number_is_between_two() {
        assert_eq!(spread([3.0, 1.0, 2.0].into_iter()), (2.0, 1.0, 3.0));
        assert_eq!(spread([4.0, 1.0].into_iter()), (2.5, 1.0, 4.0));
        assert_eq!(spread(std::iter::empty()), (0.0, 0.0, 0.0));
    }
}
