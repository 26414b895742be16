//! Cost of a run with the fields of one structure in other places.

use super::pieces::Element;
use super::proposals::{Ground, Proposal};
use nearmiss_analysis::{AGREED_BY_TWO, CaseError, Cost, PageFaults, Replays as Made, Traced, seeds, spread, waits};
use nearmiss_machine::attribution::UsedElements;
use nearmiss_record::figures::{Cell, Table};
use nearmiss_record::finding::SavingRange;
use nearmiss_record::policy::{AddressPolicy, Policy, Rearranged};
use nearmiss_record::rehearsal::Rehearsal;

/// Placements that a prediction is made on, and on one more where these do not agree.
const PLACEMENTS: usize = 2;

/// Costs of the run as it was, and under each proposal.
pub struct Replays {
    /// By change and placement; the first change is the run as it was.
    costs: Vec<Vec<Cost>>,
    /// Cycles of the command but for stalls: modelled ones, and those of first touches beyond the model.
    computing_cycles: u64,
    /// Seeds of the placements.
    pub placements: Vec<u64>,
}

impl Replays {
    /// Replays the run as it was, and with each of these.
    pub fn new(
        case: &Traced,
        used: &UsedElements,
        element: &Element,
        ground: Ground,
        proposals: &[Proposal],
    ) -> Result<Self, CaseError> {
        let changed = |proposal: &Proposal| {
            let array = Rearranged { elements: used.elements.clone(), ..proposal.rearranged(element, ground) };
            Policy { address: AddressPolicy::Fields { arrays: vec![array] }, ..Policy::default() }
        };
        // Its elements are followed as those of the changes are, and stay where they were.
        let as_it_was = Rearranged { elements: used.elements.clone(), bytes: used.bytes, ..Rearranged::default() };
        let as_it_was = Policy { address: AddressPolicy::Fields { arrays: vec![as_it_was] }, ..Policy::default() };
        let policies: Vec<Policy> = [as_it_was].into_iter().chain(proposals.iter().map(changed)).collect();
        let seeds = seeds(case.machine(), PLACEMENTS + 1);
        let totals = &case.model.totals;
        let mut replays = Replays {
            costs: vec![Vec::new(); policies.len()],
            computing_cycles: totals.cycles - totals.stall_cycles + PageFaults::of(&case.model).beyond_cycles(),
            placements: Vec::new(),
        };
        for some in [&seeds[..PLACEMENTS], &seeds[PLACEMENTS..]] {
            let costs = Made::of(case).policies(&policies).placements(some).run()?;
            replays.costs.iter_mut().zip(costs).for_each(|(all, more)| all.extend(more));
            replays.placements.extend(some);
            if (1..replays.costs.len()).all(|at| replays.agrees(at)) {
                break;
            }
        }
        Ok(replays)
    }

    fn agrees(&self, at: usize) -> bool {
        let (_, low, high) = self.gain_of(at);
        high - low <= AGREED_BY_TWO
    }

    fn cycles(&self, cost: &Cost) -> f64 {
        (self.computing_cycles + cost.stall_cycles) as f64
    }

    /// The command's cycles as it was: median over the placements.
    pub fn cycles_before(&self) -> u64 {
        spread(self.costs[0].iter().map(|cost| self.cycles(cost))).0 as u64
    }

    /// Share of the command's cycles that the change of this number saves: median, least, most. 0: as it was.
    pub fn gain_of(&self, at: usize) -> (f64, f64, f64) {
        let saved = |(before, after)| 1.0 - self.cycles(after) / self.cycles(before).max(1.0);
        spread(self.costs[0].iter().zip(&self.costs[at]).map(saved))
    }

    /// Ends of what the change of this number saves of the whole run, where parts of it were recorded.
    pub fn of_whole_run(&self, at: usize) -> Option<SavingRange> {
        let [before, after] = [0, at].map(|at| self.costs[at].first());
        before?.saved_of_whole_run(after?, self.computing_cycles)
    }

    /// The table of what was tried.
    pub fn table(&self, case: &Traced, subject: String, element: &Element, proposals: &[Proposal]) -> Rehearsal {
        let columns = [super::PARAMETER, "arrays", "bytes", "cycles", "saved"];
        let row = |at: usize| {
            let proposal = at.checked_sub(1).map(|at| &proposals[at]);
            vec![
                Cell::text(proposal.map_or("as it was", |proposal| proposal.change.name())),
                Cell::Count(proposal.map_or(1, |proposal| proposal.parts.len() as u64)),
                Cell::Bytes(proposal.map_or(element.bytes, Proposal::bytes)),
                Cell::Cycles(spread(self.costs[at].iter().map(|cost| self.cycles(cost))).0 as u64),
                Cell::Share(self.gain_of(at).0),
            ]
        };
        Rehearsal {
            remedy: super::NAME.to_owned(),
            subject,
            basis: format!("medians over {} page placements, {}", self.placements.len(), waits(case)),
            placements: self.placements.clone(),
            table: Table {
                title: "rehearsal".to_owned(),
                columns: columns.map(str::to_owned).to_vec(),
                rows: (0..self.costs.len()).map(row).collect(),
            },
            more: Vec::new(),
        }
    }
}
