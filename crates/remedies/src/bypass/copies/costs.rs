//! Cost of a run with the copies of its groups past the caches, each and together.

use super::advice::{Against, against};
use super::group::Group;
use nearmiss_analysis::{CaseError, Cost, Replays, Traced, replay, seeds, spread, waits};
use nearmiss_record::figures::{Cell, Table};
use nearmiss_record::finding::SavingRange;
use nearmiss_record::policy::{Policy, StorePolicy};
use nearmiss_record::rehearsal::Rehearsal;

/// Page placements replayed. The place of a page matters less here than which pages there are.
pub(super) const PLACEMENTS: usize = 2;
/// A smaller share is none.
const NOTHING: f64 = 0.0005;

/// Costs of the run as it was, and under policies.
///
/// The model lets nobody wait for a store past the caches. A core puts lines to memory no faster than it fetches them, so
/// the instructions that store are taken to wait as long as they did: what is gained is what others gain.
pub(super) struct CopyCosts {
    /// Costs by policy and placement; the first policy is the run as it was.
    costs: Vec<Vec<Cost>>,
    /// Instructions that go around the caches, by policy, ascending.
    around: Vec<Vec<u32>>,
    /// Cycles of the command but for stalls.
    computing_cycles: u64,
    /// Seeds of the placements.
    pub placements: Vec<u64>,
}

/// The copies of these groups go past the caches.
pub(super) fn policy<'g>(groups: impl IntoIterator<Item = &'g Group>) -> Policy {
    let sites = groups.into_iter().flat_map(|group| group.seen.sites.iter().copied()).collect();
    Policy { store: StorePolicy::NonTemporal { sites }, ..Policy::default() }
}

impl CopyCosts {
    /// Replays the run as it was, and under each of these, on so many page placements.
    pub fn new(
        case: &Traced,
        policies: impl IntoIterator<Item = Policy>,
        placements: usize,
    ) -> Result<Self, CaseError> {
        let placements = seeds(case.machine(), placements);
        let policies: Vec<Policy> = [Policy::default()].into_iter().chain(policies).collect();
        let costs = Replays::of(case).policies(&policies).placements(&placements).run()?;
        let computing_cycles = case.model.totals.cycles.saturating_sub(case.model.totals.stall_cycles);
        Ok(CopyCosts { costs, around: policies.iter().map(instructions).collect(), computing_cycles, placements })
    }

    /// The command's cycles under the `at`-th policy, by placement.
    fn cycles(&self, at: usize) -> impl Iterator<Item = f64> {
        let own = move |cost: &Cost| -> u64 {
            self.around[at].iter().filter_map(|insn| cost.by_insn.get(*insn as usize)).sum()
        };
        self.costs[0].iter().zip(&self.costs[at]).map(move |(before, after)| {
            let own = own(before).saturating_sub(own(after));
            (self.computing_cycles + after.stall_cycles + own) as f64
        })
    }

    /// The command's cycles under the `at`-th policy: median over the placements.
    pub fn median_cycles(&self, at: usize) -> u64 {
        spread(self.cycles(at)).0 as u64
    }

    /// Share of the command's cycles that the `at`-th policy saves: median, least, most.
    pub fn gain(&self, at: usize) -> (f64, f64, f64) {
        let saved = |(before, after): (f64, f64)| {
            let gain = 1.0 - after / before.max(1.0);
            if gain.abs() < NOTHING { 0.0 } else { gain }
        };
        spread(self.cycles(0).zip(self.cycles(at)).map(saved))
    }

    /// Ends of what the `at`-th policy saves of the whole run, where parts of it were recorded.
    pub fn of_whole_run(&self, at: usize) -> Option<SavingRange> {
        let [before, after] = [0, at].map(|at| self.costs[at].first());
        before?.saved_of_whole_run(after?, self.computing_cycles)
    }

    /// Data misses of a level that the `at`-th policy saves: those now, less those of its replay. It may cost some.
    pub fn savings(&self, at: usize, level: usize) -> i64 {
        let median = |at: usize| spread(self.costs[at].iter().map(|cost| misses(cost, level) as f64)).0;
        (median(0) - median(at)) as i64
    }

    /// A row of the table: name, misses by level, bus transactions, cycles, gain.
    fn row(&self, at: usize, name: String, levels: usize, blamed: u64, advice: &str) -> Vec<Cell> {
        let median = |of: &dyn Fn(&Cost) -> u64| spread(self.costs[at].iter().map(|cost| of(cost) as f64)).0 as u64;
        let misses = (0..levels).map(|level| Cell::Count(median(&|cost| misses(cost, level))));
        let figures = [
            Cell::Count(blamed),
            Cell::Count(median(&|cost| cost.transactions_inside + cost.transactions_outside)),
            Cell::Cycles(self.median_cycles(at)),
            Cell::Share(self.gain(at).0),
            Cell::text(advice),
        ];
        [Cell::text(name)].into_iter().chain(misses).chain(figures).collect()
    }
}

fn instructions(policy: &Policy) -> Vec<u32> {
    let StorePolicy::NonTemporal { sites } = &policy.store else { return Vec::new() };
    let mut insns: Vec<u32> = sites.iter().map(|site| site.insn).collect();
    insns.sort_unstable();
    insns.dedup();
    insns
}

fn misses(cost: &Cost, level: usize) -> u64 {
    cost.misses.get(level).copied().unwrap_or(0)
}

/// The rehearsal of groups: each, and where there are several those that nothing speaks against, together.
pub(super) fn table(case: &Traced, subject: String, groups: &[Group]) -> Result<Rehearsal, CaseError> {
    let line_bytes = line_bytes(case);
    let reasons: Vec<Vec<Against>> = groups.iter().map(|group| against(group, line_bytes)).collect();
    let fit: Vec<&Group> =
        groups.iter().zip(&reasons).filter(|(_, why)| !why.iter().any(Against::forbids)).map(|both| both.0).collect();
    let together = if fit.len() > 1 { vec![policy(fit.iter().copied())] } else { Vec::new() };
    let policies: Vec<Policy> = groups.iter().map(|group| policy([group])).chain(together).collect();
    let costs = CopyCosts::new(case, policies.iter().cloned(), PLACEMENTS)?;
    let levels = case.machine().levels();
    let mut rows = vec![costs.row(0, "as it was".to_owned(), levels, blamed_misses(case, &Policy::default())?, "")];
    for (at, policy) in policies.iter().enumerate() {
        let (name, advice) = match groups.get(at) {
            Some(group) => (group.site.to_string(), advice(&reasons[at])),
            None => (format!("these {} together", fit.len()), String::new()),
        };
        rows.push(costs.row(at + 1, name, levels, blamed_misses(case, policy)?, &advice));
    }
    let misses = (1..=levels).map(|level| format!("L{level} misses"));
    let columns = [super::super::PARAMETER.to_owned()].into_iter().chain(misses);
    let columns = columns.chain(["blamed", "bus", "cycles", "gain", "speaks against it"].map(str::to_owned)).collect();
    Ok(Rehearsal {
        remedy: super::super::NAME.to_owned(),
        subject,
        basis: format!(
            "medians over {} page placements, {}; blamed: misses of all levels on what lines evicted that were never used \
             again, in the recorded placement",
            costs.placements.len(),
            waits(case)
        ),
        placements: costs.placements.clone(),
        table: Table { title: "rehearsal".to_owned(), columns, rows },
        more: Vec::new(),
    })
}

fn advice(reasons: &[Against]) -> String {
    reasons.iter().map(Against::word).collect::<Vec<_>>().join(", ")
}

/// Misses for which somebody is to blame, of all caches.
fn blamed_misses(case: &Traced, policy: &Policy) -> Result<u64, CaseError> {
    let sum = |pairs: &[nearmiss_machine::model::Pollution]| pairs.iter().map(|pair| pair.misses).sum();
    if *policy == Policy::default() {
        return Ok(sum(&case.pollution));
    }
    Ok(sum(&replay::totals(&case.run, case.machine(), policy, case.model.order)?.pollution))
}

/// Bytes of the machine's first line.
pub(super) fn line_bytes(case: &Traced) -> u64 {
    case.machine().data_cache(1).map_or(64, |cache| cache.line.0)
}
