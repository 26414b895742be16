//! Cost of a run with its memory in large pages: all of it, or single objects.

use super::walks_and_touches::WalksAndTouches;
use nearmiss_analysis::{CaseError, Compared, CountedPages, PartSaving, Traced, pages_by_part, waits};
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
    /// Page faults of all of the run, where parts were recorded.
    pub counted: Option<CountedPages>,
}

impl<'s> LargePageCosts<'s> {
    /// Replays the run as it was, and with each of these in large pages.
    pub fn new(case: &Traced, seen: &'s WalksAndTouches, changes: Vec<Memory>) -> Result<Self, CaseError> {
        let large = |memory: &Memory| Policy {
            pages: PagePolicy::Large { ranges: memory.reach(seen).ranges.clone() },
            ..Policy::default()
        };
        let policies: Vec<Policy> = [Policy::default()].into_iter().chain(changes.iter().map(large)).collect();
        let (computing_cycles, saved) = beside_stalls(case, seen, &changes, 1.0);
        let compared = Compared::new(case, &policies, computing_cycles, saved)?;
        let costs = LargePageCosts { seen, changes, compared, counted: None };
        let counted = CountedPages::of(case).zip(costs.of_whole_run(1));
        Ok(match counted.map(|(counted, ends)| counted.within(ends, |times| costs.gain_at(times))) {
            Some(counted) => costs.with(case, counted),
            None => costs,
        })
    }

    /// Returns the costs of a run with so many times the page faults of its parts.
    fn with(self, case: &Traced, counted: CountedPages) -> Self {
        let (computing_cycles, saved) = beside_stalls(case, self.seen, &self.changes, counted.allowed);
        let compared = self.compared.with_computing(computing_cycles, saved);
        LargePageCosts { compared, counted: Some(counted), ..self }
    }

    /// Share of the command's cycles that the first change saves with so many times the page faults of the parts.
    fn gain_at(&self, times: f64) -> f64 {
        let (cycles, more) = (self.compared.cycles(0) as f64, times - 1.0);
        let saved = self.compared.gain_of(1).0 * cycles + more * self.saved_in_faults(1);
        saved / (cycles + more * self.seen.price.all()).max(1.0)
    }

    /// Cycles of page faults that the change of this number saves; 0: as it was.
    fn saved_in_faults(&self, at: usize) -> f64 {
        let of = |at: usize| self.seen.saved_in_faults(self.changes[at].reach(self.seen));
        self.times() * at.checked_sub(1).map_or(0.0, of)
    }

    fn times(&self) -> f64 {
        self.counted.map_or(1.0, |counted| counted.allowed)
    }

    /// Share of the command's cycles that the change of this number saves in page faults alone.
    pub fn gain_in_faults(&self, at: usize) -> f64 {
        self.saved_in_faults(at) / self.compared.cycles(0).max(1) as f64
    }

    /// Ends of what the change of this number saves of the whole run, where parts of it were recorded. A part has so
    /// many of the page faults as it has of the first touches, and where those of all of the run were counted, as it has
    /// of the instructions.
    pub fn of_whole_run(&self, at: usize) -> Option<SavingRange> {
        let touches = &self.seen.walks.first_touches;
        let pages = pages_by_part(touches, touches, &self.compared.instructions(), self.counted);
        let all = pages.iter().sum::<f64>().max(1.0);
        let price = self.seen.price;
        let (apart, saved) =
            (price.beyond_model() as f64 + (self.times() - 1.0) * price.all(), self.saved_in_faults(at));
        let part = |pages: f64| PartSaving { cycles: apart * pages / all, saved: saved * pages / all };
        self.compared.of_whole_run(at, &pages.into_iter().map(part).collect::<Vec<_>>())
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

/// Returns the cycles of the command that are no stalls of a replay, and those that each change saves of them, with so
/// many times the page faults.
fn beside_stalls(case: &Traced, seen: &WalksAndTouches, changes: &[Memory], times: f64) -> (u64, Vec<f64>) {
    let (totals, price) = (&case.model.totals, seen.price);
    let modelled = totals.cycles - totals.stall_cycles + price.beyond_model();
    let computing_cycles = modelled as f64 + (times - 1.0) * price.all();
    let saved = changes.iter().map(|memory| times * seen.saved_in_faults(memory.reach(seen)));
    (computing_cycles.max(0.0) as u64, [0.0].into_iter().chain(saved).collect())
}
