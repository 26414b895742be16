//! Cycles of a run as it was, and under changes, on the same placements of pages.

use crate::cost::Cost;
use crate::parts::{self, PartSaving};
use crate::placements::{AGREED_BY_TWO, seeds};
use crate::replay::CaseError;
use crate::replays::{Replays, spread};
use crate::traced::Traced;
use nearmiss_record::finding::SavingRange;
use nearmiss_record::policy::Policy;

/// Placements that changes are compared on, and on one more where these do not agree: both sides of each have the same
/// one.
const FIRST_PLACEMENTS: usize = 2;

/// A run as it was, number 0, and under changes, numbers from 1 on.
pub struct Compared {
    /// By change and placement.
    costs: Vec<Vec<Cost>>,
    /// By change.
    saved_cycles: Vec<f64>,
    computing_cycles: u64,
    /// Seeds of the placements.
    pub placements: Vec<u64>,
}

impl Compared {
    /// Replays the run under each of these policies; the first leaves it as it was. `computing_cycles` are those of
    /// the command that are no stalls of a replay, and `saved_cycles` those that each change saves beside its stalls.
    pub fn new(
        case: &Traced,
        policies: &[Policy],
        computing_cycles: u64,
        saved_cycles: Vec<f64>,
    ) -> Result<Self, CaseError> {
        let costs = vec![Vec::new(); policies.len()];
        let mut compared = Compared { costs, saved_cycles, computing_cycles, placements: Vec::new() };
        let seeds = seeds(case.machine(), FIRST_PLACEMENTS + 1);
        for some in [&seeds[..FIRST_PLACEMENTS], &seeds[FIRST_PLACEMENTS..]] {
            let costs = Replays::of(case).policies(policies).placements(some).run()?;
            compared.costs.iter_mut().zip(costs).for_each(|(all, more)| all.extend(more));
            compared.placements.extend(some);
            if (1..policies.len()).map(|at| compared.gain_of(at)).all(|(_, low, high)| high - low <= AGREED_BY_TWO) {
                break;
            }
        }
        Ok(compared)
    }

    /// Returns the costs with other cycles beside the stalls of the replays: see [`Compared::new`].
    #[must_use]
    pub fn with_computing(self, computing_cycles: u64, saved_cycles: Vec<f64>) -> Self {
        Compared { computing_cycles, saved_cycles, ..self }
    }

    /// Numbers of the run as it was and of the changes.
    pub fn numbers(&self) -> std::ops::Range<usize> {
        0..self.costs.len()
    }

    fn of_placement(&self, at: usize, cost: &Cost) -> f64 {
        (self.computing_cycles + cost.stall_cycles) as f64 - self.saved_cycles.get(at).copied().unwrap_or_default()
    }

    /// The command's cycles: median over the placements.
    pub fn cycles(&self, at: usize) -> u64 {
        spread(self.costs[at].iter().map(|cost| self.of_placement(at, cost))).0.max(0.0) as u64
    }

    /// Share of the command's cycles that a change saves: median, least, most.
    pub fn gain_of(&self, at: usize) -> (f64, f64, f64) {
        let saved = |(before, after)| 1.0 - self.of_placement(at, after) / self.of_placement(0, before).max(1.0);
        spread(self.costs[0].iter().zip(&self.costs[at]).map(saved))
    }

    /// Instructions of the command, by recorded part.
    pub fn instructions(&self) -> Vec<u64> {
        let cost = self.costs.first().and_then(|costs| costs.first());
        cost.map_or(Vec::new(), |cost| cost.by_part.iter().map(|part| part.instructions).collect())
    }

    /// Ends of the share that a change saves of the whole run, where parts of it were recorded. `beside`: by part,
    /// what it saves beside its stalls, and cycles among the computing ones that are not spread over all instructions.
    pub fn of_whole_run(&self, at: usize, beside: &[PartSaving]) -> Option<SavingRange> {
        let [before, after] = [0, at].map(|at| self.costs[at].first());
        let apart: f64 = beside.iter().map(|part| part.cycles).sum();
        let computing_cycles = self.computing_cycles.saturating_sub(apart as u64);
        parts::interval(&before?.by_part, &after?.by_part, computing_cycles, beside)
    }
}
