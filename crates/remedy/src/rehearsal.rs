//! Replays of one run under several policies and page placements.

use crate::replay::{CaseError, replay};
use crate::traced::Traced;
use nearmiss_machine::aliasing::StoreBuffer;
use nearmiss_machine::observer::{Effective, Observer, Outcome};
use nearmiss_record::machine::{Machine, Placement, StoreAliasing};
use nearmiss_record::policy::{Order, Policy};
use nearmiss_record::reference::{Control, Kind, Record};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Page placements that a prediction is made on.
pub const PLACEMENTS: usize = 5;

/// What one replay cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cost {
    /// Data misses by level, nearest first.
    pub misses: Vec<u64>,
    /// Bus transactions of data references to the watched ranges.
    pub transactions_inside: u64,
    /// All others.
    pub transactions_outside: u64,
    /// Stall cycles of all CPUs, idle and ticks and what loads wait for stores of their page offset included.
    pub stall_cycles: u64,
    /// Stall cycles by instruction.
    pub by_insn: Vec<u64>,
}

/// Counts what [`Cost`] holds.
struct Watcher<'a> {
    ranges: &'a [(u64, u64)],
    aliasing: Option<StoreAliasing>,
    /// Share of a wait that other work does not hide.
    shown: f64,
    /// By CPU.
    stores: Vec<StoreBuffer>,
    /// Loads by instruction that waited for a store to the same offset of another page.
    aliased: Vec<u64>,
    cost: Cost,
}

impl Watcher<'_> {
    fn inside(&self, address: u64) -> bool {
        let at = self.ranges.partition_point(|(from, _)| *from <= address);
        at > 0 && address < self.ranges[at - 1].1
    }

    /// What a reference of user mode meets in the store buffer.
    fn buffered(&mut self, met: &Effective, aliasing: StoreAliasing) {
        let cpu = met.cpu as usize;
        if met.record.is_kernel() {
            return;
        }
        if cpu >= self.stores.len() {
            self.stores.resize(cpu + 1, StoreBuffer::new(aliasing));
        }
        match met.kind {
            Kind::Store => self.stores[cpu].store(met.vaddr, met.record),
            Kind::Load if self.stores[cpu].waited_for(met.vaddr, met.record.size().into()).is_some() => {
                add(&mut self.aliased, met.record, 1);
            }
            _ => {}
        }
    }

    /// The cost, with what aliased loads waited.
    fn finish(self, stall_cycles: u64) -> Cost {
        let mut cost = self.cost;
        cost.stall_cycles = stall_cycles;
        let each = self.aliasing.map_or(0.0, |aliasing| aliasing.wait_cycles * self.shown);
        cost.by_insn.resize(cost.by_insn.len().max(self.aliased.len()), 0);
        for (cycles, loads) in cost.by_insn.iter_mut().zip(&self.aliased) {
            let waited = (*loads as f64 * each).round() as u64;
            *cycles += waited;
            cost.stall_cycles += waited;
        }
        cost
    }
}

fn add(by_insn: &mut Vec<u64>, record: Record, count: u64) {
    let insn = record.insn().0 as usize;
    if insn >= by_insn.len() {
        by_insn.resize(insn + 1, 0);
    }
    by_insn[insn] += count;
}

impl Observer for Watcher<'_> {
    fn control(&mut self, _: u32, _: &Control<'_>) {}
    fn instructions(&mut self, _: u32, _: u64) {}

    fn hit(&mut self, met: &Effective) {
        if let Some(aliasing) = self.aliasing {
            self.buffered(met, aliasing);
        }
    }

    fn miss(&mut self, met: &Effective, outcome: &Outcome) {
        self.hit(met);
        add(&mut self.cost.by_insn, met.record, u64::from(outcome.stall_cycles));
        let mut bus = Default::default();
        outcome.add_traffic(&mut bus);
        if met.kind != Kind::Fetch && self.inside(met.record.vaddr()) {
            self.cost.transactions_inside += bus.transactions();
        } else {
            self.cost.transactions_outside += bus.transactions();
        }
    }
}

/// The seeds of `count` placements: the machine's own first.
pub fn seeds(machine: &Machine, count: usize) -> Vec<u64> {
    (0..count as u64).map(|n| machine.memory.placement_seed.wrapping_add(n)).collect()
}

/// Replays the run under each policy and each placement; `ranges` (ascending, disjoint) tell which transactions are
/// inside. By policy, then by seed.
pub fn rehearse(
    case: &Traced,
    policies: &[Policy],
    seeds: &[u64],
    ranges: &[(u64, u64)],
) -> Result<Vec<Vec<Cost>>, CaseError> {
    rehearse_in(case, case.model.order, policies, seeds, ranges)
}

/// [`rehearse`], with the records of several CPUs in this order.
pub fn rehearse_in(
    case: &Traced,
    order: Order,
    policies: &[Policy],
    seeds: &[u64],
    ranges: &[(u64, u64)],
) -> Result<Vec<Vec<Cost>>, CaseError> {
    let jobs = policies.len() * seeds.len();
    let results: Mutex<Vec<Option<Result<Cost, CaseError>>>> = Mutex::new((0..jobs).map(|_| None).collect());
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        loop {
            let job = next.fetch_add(1, Ordering::Relaxed);
            if job >= jobs {
                return;
            }
            let result = one(case, order, &policies[job / seeds.len()], seeds[job % seeds.len()], ranges);
            if let Ok(mut results) = results.lock() {
                results[job] = Some(result);
            }
            (case.heard)(done.fetch_add(1, Ordering::Relaxed) + 1, jobs);
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(jobs).min(8);
    std::thread::scope(|scope| {
        (0..workers).for_each(|_| {
            scope.spawn(work);
        });
    });
    let results = results.into_inner().unwrap_or_default();
    let missing = || CaseError::Unfit("a replay ended without a result".to_owned());
    let costs: Vec<Cost> =
        results.into_iter().map(|r| r.unwrap_or_else(|| Err(missing()))).collect::<Result<_, _>>()?;
    Ok(costs.chunks(seeds.len()).map(<[Cost]>::to_vec).collect())
}

fn one(case: &Traced, order: Order, policy: &Policy, seed: u64, ranges: &[(u64, u64)]) -> Result<Cost, CaseError> {
    let mut machine = case.machine().clone();
    machine.memory.placement = Placement::Random;
    machine.memory.placement_seed = seed;
    let watcher = Watcher {
        ranges,
        aliasing: machine.store_aliasing,
        shown: 1.0 - machine.overlap,
        stores: Vec::new(),
        aliased: Vec::new(),
        cost: Cost::default(),
    };
    let replayed = replay(&case.run, &machine, policy, order, watcher)?;
    let sum = replayed.totals.sum();
    let misses = sum.levels.iter().map(|level| level.data_misses()).collect();
    Ok(Cost { misses, ..replayed.observer.finish(sum.stall_cycles) })
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
