//! Cost of a run with its memory in large pages: all of it, or single objects.

use super::seen::Seen;
use nearmiss_analysis::{AGREED_BY_TWO, CaseError, Cost, Replays as Made, Traced, seeds, spread, waits};
use nearmiss_machine::attribution::Reach;
use nearmiss_record::figures::{Cell, Table};
use nearmiss_record::finding::SavingRange;
use nearmiss_record::policy::{PagePolicy, Policy};
use nearmiss_record::rehearsal::Rehearsal;

/// Name of the parameter, as its option is named.
pub const PARAMETER: &str = "objects";
/// Value of the parameter for all memory.
pub const ALL: &str = "all";

/// Placements that a prediction is made on, and on one more where these do not agree: both sides of each have the same
/// one.
const PLACEMENTS: usize = 2;

/// Memory that is to lie in large pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// All that could.
    All,
    /// One object, by its index among those that walks lead to.
    Object(usize),
}

impl Memory {
    fn reach<'s>(&self, seen: &'s Seen) -> &'s Reach {
        match self {
            Memory::All => &seen.walks.all,
            Memory::Object(at) => &seen.objects()[*at].reach,
        }
    }

    fn name(&self, seen: &Seen) -> String {
        match self {
            Memory::All => ALL.to_owned(),
            Memory::Object(at) => format!("{}: {}", at + 1, seen.objects()[*at].name),
        }
    }
}

/// Costs of the run as it was, and with memory in large pages.
pub struct Replays<'s> {
    seen: &'s Seen,
    /// Costs by change and placement; the first change is the run as it was.
    costs: Vec<Vec<Cost>>,
    changes: Vec<Memory>,
    /// Cycles of the command but for stalls: modelled ones, and those of first touches beyond the model.
    computing_cycles: u64,
    /// Seeds of the placements.
    pub placements: Vec<u64>,
}

impl<'s> Replays<'s> {
    /// Replays the run as it was, and with each of these in large pages.
    pub fn new(case: &Traced, seen: &'s Seen, changes: Vec<Memory>) -> Result<Self, CaseError> {
        let large = |memory: &Memory| Policy {
            pages: PagePolicy::Large { ranges: memory.reach(seen).ranges.clone() },
            ..Policy::default()
        };
        let policies: Vec<Policy> = [Policy::default()].into_iter().chain(changes.iter().map(large)).collect();
        let seeds = seeds(case.machine(), PLACEMENTS + 1);
        let totals = &case.model.totals;
        let mut replays = Replays {
            seen,
            costs: vec![Vec::new(); policies.len()],
            changes,
            computing_cycles: totals.cycles - totals.stall_cycles + seen.price.beyond_model(),
            placements: Vec::new(),
        };
        for some in [&seeds[..PLACEMENTS], &seeds[PLACEMENTS..]] {
            let costs = Made::of(case).policies(&policies).placements(some).run()?;
            replays.costs.iter_mut().zip(costs).for_each(|(all, more)| all.extend(more));
            replays.placements.extend(some);
            if replays.agree() {
                break;
            }
        }
        Ok(replays)
    }

    /// Whether the placements agree on the gain of each change.
    fn agree(&self) -> bool {
        (1..self.costs.len()).map(|at| self.gain_of(at)).all(|(_, low, high)| high - low <= AGREED_BY_TWO)
    }

    /// Cycles of page faults that the change of this number saves; 0: as it was.
    fn saved_in_faults(&self, at: usize) -> f64 {
        at.checked_sub(1).map_or(0.0, |at| self.seen.saved_in_faults(self.changes[at].reach(self.seen)))
    }

    fn cycles(&self, at: usize, cost: &Cost) -> f64 {
        (self.computing_cycles + cost.stall_cycles) as f64 - self.saved_in_faults(at)
    }

    /// The command's cycles as it was: median over the placements.
    pub fn cycles_before(&self) -> u64 {
        spread(self.costs[0].iter().map(|cost| self.cycles(0, cost))).0 as u64
    }

    /// Share of the command's cycles that the change of this number saves: median, least, most.
    pub fn gain_of(&self, at: usize) -> (f64, f64, f64) {
        let saved = |(before, after)| 1.0 - self.cycles(at, after) / self.cycles(0, before).max(1.0);
        spread(self.costs[0].iter().zip(&self.costs[at]).map(saved))
    }

    /// Share of the command's cycles that the change of this number saves in page faults alone.
    pub fn gain_in_faults(&self, at: usize) -> f64 {
        self.saved_in_faults(at) / self.cycles_before().max(1) as f64
    }

    /// Ends of what the change of this number saves of the whole run, where parts of it were recorded. The parts show
    /// the walks; page faults are taken as in all parts together.
    pub fn of_whole_run(&self, at: usize) -> Option<SavingRange> {
        let [before, after] = [0, at].map(|at| self.costs[at].first());
        let whole = before?.saved_of_whole_run(after?, self.computing_cycles)?;
        let (gain, faults) = (self.gain_of(at).0, self.gain_in_faults(at));
        let by_walks = if gain > 0.0 { (1.0 - faults / gain).clamp(0.0, 1.0) } else { 1.0 };
        Some(SavingRange {
            low: whole.low + faults,
            high: whole.high + faults,
            by_one_part: whole.by_one_part * by_walks,
            ..whole
        })
    }

    /// The table of what was tried.
    pub fn table(&self, case: &Traced) -> Rehearsal {
        let columns = [PARAMETER, "large pages", "memory", "touched", "first touches", "cycles", "saved"];
        let priced = if self.seen.price.figure().is_some() { ", first touches by the machine's figure" } else { "" };
        Rehearsal {
            remedy: super::NAME.to_owned(),
            subject: "memory without a file in pages of 2 MiB".to_owned(),
            basis: format!("medians over {} page placements, {}{priced}", self.placements.len(), waits(case)),
            placements: self.placements.clone(),
            table: Table {
                title: "rehearsal".to_owned(),
                columns: columns.map(str::to_owned).to_vec(),
                rows: (0..self.costs.len()).map(|at| self.row(at)).collect(),
            },
            more: Vec::new(),
        }
    }

    fn row(&self, at: usize) -> Vec<Cell> {
        let cycles = spread(self.costs[at].iter().map(|cost| self.cycles(at, cost))).0;
        let memory = at.checked_sub(1).map(|at| self.changes[at]);
        let reach = memory.map(|memory| memory.reach(self.seen));
        let of = |cell: &dyn Fn(&Reach) -> Cell| reach.map_or(Cell::Unknown, cell);
        vec![
            Cell::text(memory.map_or("as it was".to_owned(), |memory| memory.name(self.seen))),
            of(&|reach| Cell::Count(reach.blocks)),
            of(&|reach| Cell::Bytes(reach.large_bytes())),
            of(&|reach| Cell::Bytes(reach.touched_bytes())),
            of(&|reach| Cell::Count(reach.first_touches)),
            Cell::Cycles(cycles.max(0.0) as u64),
            Cell::Share(self.gain_of(at).0),
        ]
    }
}
