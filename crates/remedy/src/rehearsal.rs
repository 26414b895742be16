//! Replays of one run under several policies and page placements.

use crate::parts::{self, PartCost};
use crate::replay::{self, CaseError, Replayable};
use crate::traced::{Part, Traced};
use nearmiss_machine::aliasing::StoreBuffer;
use nearmiss_machine::observer::{Effective, Observer, Outcome};
use nearmiss_machine::whose::{Running, Whose};
use nearmiss_record::finding::OfWholeRun;
use nearmiss_record::machine::{Machine, Placement, StoreAliasing};
use nearmiss_record::model::BusTally;
use nearmiss_record::policy::{Order, Policy};
use nearmiss_record::reference::{Control, Kind, MARK_PART, Record};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Most page placements that a prediction is made on.
pub const PLACEMENTS: usize = 5;
/// Gains that two placements of pages agree on to so much need no third one, and those that three agree on to so much
/// no others. Two of gains that lie anywhere are that near about as seldom as three are within the wider bound.
pub(crate) const AGREED_BY_TWO: f64 = 0.01;
pub(crate) const AGREED_BY_THREE: f64 = 0.03;
/// Most replays at once, which bounds the memory that a rehearsal takes.
const MOST_AT_ONCE: usize = 8;

/// Cost of one replay to the command, without that of other tasks, idle CPUs and ticks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cost {
    /// Data misses by level, nearest first.
    pub misses: Vec<u64>,
    /// Bus transactions of data references to the watched ranges.
    pub transactions_inside: u64,
    /// All others.
    pub transactions_outside: u64,
    /// Stall cycles, what loads wait for stores of their page offset included.
    pub stall_cycles: u64,
    /// Bus transactions by class.
    pub bus: BusTally,
    /// Stall cycles by instruction.
    pub by_insn: Vec<u64>,
    /// Cost of each recorded part of the run.
    pub by_part: Vec<PartCost>,
}

impl Cost {
    /// Ends of the share of the whole run's cycles that `after` saves of this, where parts of it were recorded.
    pub(crate) fn saved_of_whole_run(&self, after: &Cost, computing_cycles: u64) -> Option<OfWholeRun> {
        parts::interval(&self.by_part, &after.by_part, computing_cycles)
    }
}

/// Costs of a run as it was, by order and by seed of the placement: every remedy sets its own replays beside them.
#[derive(Default)]
pub(crate) struct Baselines(Mutex<Vec<(Order, u64, Cost)>>);

impl Baselines {
    fn known(&self) -> MutexGuard<'_, Vec<(Order, u64, Cost)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cost(&self, order: Order, seed: u64) -> Option<Cost> {
        self.known().iter().find(|known| (known.0, known.1) == (order, seed)).map(|known| known.2.clone())
    }

    pub(crate) fn keep(&self, order: Order, seed: u64, cost: &Cost) {
        let mut known = self.known();
        if !known.iter().any(|known| (known.0, known.1) == (order, seed)) {
            known.push((order, seed, cost.clone()));
        }
    }
}

/// How the machine's cores wait, for people.
pub fn waits(case: &Traced) -> String {
    match case.machine().hidden_share() {
        Some(share) => format!("overlap {share}"),
        None => "waits by the interval model".to_owned(),
    }
}

/// Counts what [`Cost`] holds.
struct Watcher<'a> {
    ranges: &'a [(u64, u64)],
    running: Running,
    aliasing: Option<StoreAliasing>,
    /// Share of a wait that other work does not hide.
    shown: f64,
    /// Store buffers by CPU.
    stores: Vec<StoreBuffer>,
    /// Loads by instruction that waited for a store to the same offset of another page.
    aliased: Vec<u64>,
    cost: Cost,
}

impl<'a> Watcher<'a> {
    fn new(machine: &Machine, ranges: &'a [(u64, u64)]) -> Self {
        Watcher {
            ranges,
            running: Running::new(machine.topology.cpus() as usize),
            aliasing: machine.store_aliasing,
            shown: machine.shown_share(),
            stores: Vec::new(),
            aliased: Vec::new(),
            cost: Cost { misses: vec![0; machine.levels()], by_part: vec![PartCost::default()], ..Cost::default() },
        }
    }

    fn part(&mut self) -> Option<&mut PartCost> {
        self.cost.by_part.last_mut()
    }

    fn is_commands(&self, met: &Effective) -> bool {
        self.running.whose(met.cpu as usize) == Whose::Command
    }

    fn inside(&self, address: u64) -> bool {
        let at = self.ranges.partition_point(|(from, _)| *from <= address);
        at > 0 && address < self.ranges[at - 1].1
    }

    /// Passes a reference of user mode to the store buffer.
    fn buffered(&mut self, met: &Effective, aliasing: StoreAliasing) {
        let cpu = met.cpu as usize;
        if met.record.is_kernel() || !self.is_commands(met) {
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
    fn finish(self) -> Cost {
        let mut cost = self.cost;
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
    fn control(&mut self, vcpu: u32, control: &Control<'_>) {
        self.running.control(vcpu, control);
        if matches!(control, Control::Mark { number: MARK_PART, .. }) {
            self.cost.by_part.push(PartCost::default());
        }
    }

    fn instructions(&mut self, vcpu: u32, instructions: u64) {
        if self.running.whose(vcpu as usize) == Whose::Command
            && let Some(part) = self.part()
        {
            part.instructions += instructions;
        }
    }

    fn hit(&mut self, met: &Effective) {
        if let Some(aliasing) = self.aliasing {
            self.buffered(met, aliasing);
        }
    }

    fn miss(&mut self, met: &Effective, outcome: &Outcome) {
        self.hit(met);
        if !self.is_commands(met) {
            return;
        }
        self.cost.stall_cycles += u64::from(outcome.stall_cycles);
        if let Some(part) = self.part() {
            part.stall_cycles += u64::from(outcome.stall_cycles);
        }
        add(&mut self.cost.by_insn, met.record, u64::from(outcome.stall_cycles));
        if met.kind != Kind::Fetch {
            for (misses, class) in self.cost.misses.iter_mut().zip(outcome.missed) {
                *misses += u64::from(class.is_some());
            }
        }
        let mut bus = BusTally::default();
        outcome.add_traffic(&mut bus);
        outcome.add_traffic(&mut self.cost.bus);
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

/// Replays the run under each policy and each placement; `ranges` (ascending, disjoint) define which transactions are
/// inside. Returns the costs by policy, then by seed.
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
    let machine = case.machine();
    let of_policy = |policy| seeds.iter().map(move |seed| Job { machine, policy, seed: *seed });
    let jobs: Vec<Job<'_>> = policies.iter().flat_map(of_policy).collect();
    let costs = replay_all(case, order, &jobs, ranges)?;
    Ok(costs.chunks(seeds.len()).map(<[Cost]>::to_vec).collect())
}

/// Replays a part of the run, from its begin on, under each policy and one placement. Nothing of it is kept.
pub(crate) fn rehearse_part(case: &Traced, part: Part, policies: &[Policy], seed: u64) -> Result<Vec<Cost>, CaseError> {
    let _turn = case.rehearsing.lock().unwrap_or_else(PoisonError::into_inner);
    let machine = case.machine();
    let jobs: Vec<Job<'_>> = policies.iter().map(|policy| Job { machine, policy, seed }).collect();
    replay_jobs(case, Replayable { blocks: part.blocks, ..case.replayable() }, case.model.order, &jobs, &[])
}

/// Replays the run under each pair of a policy and the seed of a placement, in their order.
pub fn rehearse_each(case: &Traced, each: &[(&Policy, u64)]) -> Result<Vec<Cost>, CaseError> {
    let machine = case.machine();
    let jobs: Vec<Job<'_>> = each.iter().map(|&(policy, seed)| Job { machine, policy, seed }).collect();
    replay_all(case, case.model.order, &jobs, &[])
}

/// Costs of a run as it was on a machine, by seed: replays in one pass, on this thread.
pub(crate) fn as_it_was(
    replayable: Replayable<'_>,
    machine: &Machine,
    order: Order,
    seeds: &[u64],
) -> Result<Vec<Cost>, CaseError> {
    let policy = &Policy::default();
    let jobs: Vec<Job<'_>> = seeds.iter().map(|&seed| Job { machine, policy, seed }).collect();
    replay_group(replayable, order, &jobs, &[], &|| ())
}

/// Replays the run without a policy on each machine and each placement. By machine, then by seed.
pub(crate) fn rehearse_on(case: &Traced, machines: &[&Machine], seeds: &[u64]) -> Result<Vec<Vec<Cost>>, CaseError> {
    let policy = &Policy::default();
    let on_machine = |machine| seeds.iter().map(move |seed| Job { machine, policy, seed: *seed });
    let jobs: Vec<Job<'_>> = machines.iter().copied().flat_map(on_machine).collect();
    let costs = replay_all(case, case.model.order, &jobs, &[])?;
    Ok(costs.chunks(seeds.len()).map(<[Cost]>::to_vec).collect())
}

/// One replay.
#[derive(Clone, Copy)]
struct Job<'a> {
    machine: &'a Machine,
    policy: &'a Policy,
    seed: u64,
}

/// Returns the costs of replays; the run as it was is replayed once, for all callers.
fn replay_all(case: &Traced, order: Order, jobs: &[Job<'_>], ranges: &[(u64, u64)]) -> Result<Vec<Cost>, CaseError> {
    let _turn = case.rehearsing.lock().unwrap_or_else(PoisonError::into_inner);
    let as_it_was = |job: &Job<'_>| {
        ranges.is_empty() && *job.policy == Policy::default() && std::ptr::eq(job.machine, case.machine())
    };
    let known = |job: &Job<'_>| as_it_was(job).then(|| case.baselines.cost(order, job.seed)).flatten();
    let costs: Vec<Option<Cost>> = jobs.iter().map(known).collect();
    let unknown: Vec<Job<'_>> =
        jobs.iter().zip(&costs).filter(|(_, cost)| cost.is_none()).map(|(job, _)| *job).collect();
    let mut replayed = replay_jobs(case, case.replayable(), order, &unknown, ranges)?.into_iter();
    let cost = |(job, known): (&Job<'_>, Option<Cost>)| {
        let cost = known.or_else(|| replayed.next()).ok_or_else(no_result)?;
        if as_it_was(job) {
            case.baselines.keep(order, job.seed, &cost);
        }
        Ok(cost)
    };
    jobs.iter().zip(costs).map(cost).collect()
}

fn no_result() -> CaseError {
    CaseError::Unfit("a replay ended without a result".to_owned())
}

/// Makes as many passes over the trace as there are CPUs to work on, with as many replays in each as make
/// [`MOST_AT_ONCE`] in all.
fn replay_jobs(
    case: &Traced,
    replayable: Replayable<'_>,
    order: Order,
    jobs: &[Job<'_>],
    ranges: &[(u64, u64)],
) -> Result<Vec<Cost>, CaseError> {
    let workers = workers(jobs.len());
    let together = jobs.len().div_ceil(workers).clamp(1, MOST_AT_ONCE / workers);
    let whole = jobs.len() * replay::blocks(&case.run)?.min(replayable.blocks);
    let done = AtomicUsize::new(0);
    let heard = || (case.heard)(done.fetch_add(1, Ordering::Relaxed) + 1, whole);
    let groups: Vec<_> = jobs.chunks(together).collect();
    Ok(side_by_side(&groups, workers, |group| replay_group(replayable, order, group, ranges, &heard))?.concat())
}

/// Returns as many workers as there are CPUs to work on, and no more than jobs.
pub(crate) fn workers(jobs: usize) -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(jobs).clamp(1, MOST_AT_ONCE)
}

/// The results of so many workers, each of which takes what nobody works on yet.
pub(crate) fn side_by_side<J: Sync, R: Send + Sync>(
    jobs: &[J],
    workers: usize,
    work: impl Fn(&J) -> Result<R, CaseError> + Sync,
) -> Result<Vec<R>, CaseError> {
    let results: Vec<OnceLock<Result<R, CaseError>>> = jobs.iter().map(|_| OnceLock::new()).collect();
    let next = AtomicUsize::new(0);
    let worker = || {
        while let Some((job, result)) = next_of(&next, jobs, &results) {
            result.get_or_init(|| work(job));
        }
    };
    std::thread::scope(|scope| {
        (0..workers).for_each(|_| {
            scope.spawn(worker);
        });
    });
    let missing = || Err(no_result());
    results.into_iter().map(|result| result.into_inner().unwrap_or_else(missing)).collect()
}

/// Returns the next job that nobody works on yet, and the place for its result.
fn next_of<'a, J, R>(next: &AtomicUsize, jobs: &'a [J], results: &'a [R]) -> Option<(&'a J, &'a R)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    jobs.get(at).zip(results.get(at))
}

fn replay_group<'a>(
    replayable: Replayable<'_>,
    order: Order,
    jobs: &[Job<'a>],
    ranges: &'a [(u64, u64)],
    heard: &dyn Fn(),
) -> Result<Vec<Cost>, CaseError> {
    let part = |&Job { machine, policy, seed }: &Job<'a>| {
        let mut machine = machine.clone();
        machine.memory.placement = Placement::Random;
        machine.memory.placement_seed = seed;
        replay::Part { observer: Watcher::new(&machine, ranges), machine, policy }
    };
    let parts = jobs.iter().map(part).collect();
    Ok(replay::replay_group(replayable, order, parts, heard)?.into_iter().map(Watcher::finish).collect())
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
    use nearmiss_machine::describe::{cut, preset};
    use nearmiss_machine::model::{Model, ModelOptions};
    use nearmiss_record::abi::ChunkHeader;
    use nearmiss_record::machine::Sharing;
    use nearmiss_record::policy::{AddressPolicy, Order};
    use nearmiss_record::reference::ControlKind;
    use nearmiss_record::run;
    use nearmiss_record::trace::TraceHeader;
    use nearmiss_record::units::InsnId;

    const PAGE_BYTES: u64 = 4096;

    /// A walk over the first line of each of 16 pages, twice; `rounds` walks in all.
    fn walk(pages: u64, insn: u32, rounds: u64) -> Vec<Record> {
        let load = |page: u64| Record::reference(Kind::Load, page * PAGE_BYTES, 8, 0, InsnId(insn), page, 1);
        (0..rounds).flat_map(|_| (pages..pages + 16).map(load)).collect()
    }

    fn switch(tid: u64) -> Vec<Record> {
        let mut records = vec![Record::control(ControlKind::Switch, 0x1000 + tid, 0, tid | tid << 32)];
        records.resize(6, Record::default());
        records
    }

    fn begin() -> Vec<Record> {
        let mut records = vec![Record::control(ControlKind::Mark, 1, 0, 0)];
        records.resize(4, Record::default());
        records
    }

    /// Costs of a command on CPU 0, as recorded and colored, with strangers on CPU 1 or not.
    fn costs(strangers: bool) -> [Cost; 2] {
        let mut machine = cut(&preset("zen3-milan").unwrap().machine().unwrap(), 2);
        machine.caches.retain(|cache| cache.shared_by == Sharing::Core);
        machine.latency.level_cycles.truncate(machine.levels());
        machine.memory.placement = Placement::AsRecorded;
        let colored =
            AddressPolicy::Color { ranges: vec![(0, 64 * PAGE_BYTES)], align: PAGE_BYTES, colors: 16, line: 64 };
        [AddressPolicy::Recorded, colored].map(|address| {
            let filter = run::Filter { line_log2: 6, fetches: true, clear_on_slice: true, ..Default::default() };
            let header = TraceHeader { cpus: 2, filter, ..TraceHeader::default() };
            let policy = Policy { address, ..Policy::default() };
            let options = ModelOptions::of(&header, Order::Recorded);
            let watcher = Watcher::new(&machine, &[(0, 64 * PAGE_BYTES)]);
            let mut model = Model::new(&machine, &policy, &options, watcher).unwrap();
            let mut chunks = vec![(0, [switch(50), begin(), walk(1, 3, 4)].concat())];
            if strangers {
                // On a CPU with caches of its own.
                chunks.push((1, [switch(30), walk(101, 3, 40)].concat()));
                chunks.push((0, [switch(0), switch(50)].concat()));
            }
            chunks.push((0, walk(1, 4, 4)));
            for (seq, (vcpu, records)) in chunks.iter().enumerate() {
                let (seq, records_there) = (seq as u64, records.len() as u32);
                let header = ChunkHeader { seq, vcpu: *vcpu, records: records_there, ..ChunkHeader::default() };
                model.chunk(&header, records).unwrap();
            }
            model.finish().unwrap().1.finish()
        })
    }

    #[test]
    fn strangers_change_neither_the_cost_of_a_command_nor_its_gain() {
        let [alone, colored] = costs(false);
        // 16 lines for one set of eight ways: all but what two walks could share miss, and colored only the first walk.
        assert!(alone.misses[0] > 8 * 16 / 2 && alone.stall_cycles > colored.stall_cycles, "{alone:?} {colored:?}");
        assert_eq!(colored.misses[0], 16);
        assert_eq!(costs(true), [alone, colored]);
    }

    #[test]
    fn the_middle_of_an_even_number_is_between_two() {
        assert_eq!(spread([3.0, 1.0, 2.0].into_iter()), (2.0, 1.0, 3.0));
        assert_eq!(spread([4.0, 1.0].into_iter()), (2.5, 1.0, 4.0));
        assert_eq!(spread(std::iter::empty()), (0.0, 0.0, 0.0));
    }
}
