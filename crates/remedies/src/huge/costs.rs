//! Cost of a run with its memory in large pages: all of it, or single objects.

use super::walks_and_touches::WalksAndTouches;
use nearmiss_analysis::{CaseError, Compared, PartSaving, Traced, waits};
use nearmiss_machine::attribution::Reach;
use nearmiss_record::figures::{Cell, Table};
use nearmiss_record::finding::SavingRange;
use nearmiss_record::policy::{PagePolicy, Policy};
use nearmiss_record::rehearsal::Rehearsal;

/// Name of the parameter, as its option is named.
pub const PARAMETER: &str = "objects";
/// Value of the parameter for all memory.
pub const ALL: &str = "all";

/// Memory that is to lie in large pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// All that could.
    All,
    /// One object, by its index among those that walks lead to.
    Object(usize),
}

impl Memory {
    fn reach<'s>(&self, seen: &'s WalksAndTouches) -> &'s Reach {
        match self {
            Memory::All => &seen.walks.all,
            Memory::Object(at) => &seen.objects()[*at].reach,
        }
    }

    fn name(&self, seen: &WalksAndTouches) -> String {
        match self {
            Memory::All => ALL.to_owned(),
            Memory::Object(at) => format!("{}: {}", at + 1, seen.objects()[*at].name),
        }
    }
}

/// Costs of the run as it was, number 0, and with memory in large pages.
pub struct LargePageCosts<'s> {
    seen: &'s WalksAndTouches,
    changes: Vec<Memory>,
    /// Cycles of both.
    pub compared: Compared,
}

impl<'s> LargePageCosts<'s> {
    /// Replays the run as it was, and with each of these in large pages.
    pub fn new(case: &Traced, seen: &'s WalksAndTouches, changes: Vec<Memory>) -> Result<Self, CaseError> {
        let large = |memory: &Memory| Policy {
            pages: PagePolicy::Large { ranges: memory.reach(seen).ranges.clone() },
            ..Policy::default()
        };
        let policies: Vec<Policy> = [Policy::default()].into_iter().chain(changes.iter().map(large)).collect();
        let totals = &case.model.totals;
        let computing_cycles = totals.cycles - totals.stall_cycles + seen.price.beyond_model();
        let saved_in_faults = changes.iter().map(|memory| seen.saved_in_faults(memory.reach(seen)));
        let saved_in_faults = [0.0].into_iter().chain(saved_in_faults).collect();
        let compared = Compared::new(case, &policies, computing_cycles, saved_in_faults)?;
        Ok(LargePageCosts { seen, changes, compared })
    }

    /// Cycles of page faults that the change of this number saves; 0: as it was.
    fn saved_in_faults(&self, at: usize) -> f64 {
        at.checked_sub(1).map_or(0.0, |at| self.seen.saved_in_faults(self.changes[at].reach(self.seen)))
    }

    /// Share of the command's cycles that the change of this number saves in page faults alone.
    pub fn gain_in_faults(&self, at: usize) -> f64 {
        self.saved_in_faults(at) / self.compared.cycles(0).max(1) as f64
    }

    /// Ends of what the change of this number saves of the whole run, where parts of it were recorded. A part has so
    /// many of the page faults as it has of the first touches.
    pub fn of_whole_run(&self, at: usize) -> Option<SavingRange> {
        let touches = &self.seen.walks.first_touches;
        let all = touches.iter().sum::<u64>().max(1) as f64;
        let (beyond_model, saved) = (self.seen.price.beyond_model() as f64, self.saved_in_faults(at));
        let share = |touches: &u64| *touches as f64 / all;
        let part = |share: f64| PartSaving { cycles: beyond_model * share, saved: saved * share };
        self.compared.of_whole_run(at, &touches.iter().map(share).map(part).collect::<Vec<_>>())
    }

    /// The table of what was tried.
    pub fn table(&self, case: &Traced) -> Rehearsal {
        let columns = [PARAMETER, "large pages", "memory", "touched", "first touches", "cycles", "saved"];
        let priced = if self.seen.price.figure().is_some() { ", first touches by the machine's figure" } else { "" };
        Rehearsal {
            remedy: super::NAME.to_owned(),
            subject: "memory without a file in pages of 2 MiB".to_owned(),
            basis: format!("medians over {} page placements, {}{priced}", self.compared.placements.len(), waits(case)),
            placements: self.compared.placements.clone(),
            table: Table {
                title: "rehearsal".to_owned(),
                columns: columns.map(str::to_owned).to_vec(),
                rows: self.compared.numbers().map(|at| self.row(at)).collect(),
            },
            more: Vec::new(),
        }
    }

    fn row(&self, at: usize) -> Vec<Cell> {
        let memory = at.checked_sub(1).map(|at| self.changes[at]);
        let reach = memory.map(|memory| memory.reach(self.seen));
        let of = |cell: &dyn Fn(&Reach) -> Cell| reach.map_or(Cell::Unknown, cell);
        vec![
            Cell::text(memory.map_or("as it was".to_owned(), |memory| memory.name(self.seen))),
            of(&|reach| Cell::Count(reach.blocks)),
            of(&|reach| Cell::Bytes(reach.large_bytes())),
            of(&|reach| Cell::Bytes(reach.touched_bytes())),
            of(&|reach| Cell::Count(reach.first_touches)),
            Cell::Cycles(self.compared.cycles(at)),
            Cell::Share(self.compared.gain_of(at).0),
        ]
    }
}
