//! Cost of a run with the tenants of its shared lines apart, in both orders.

use super::subject::Subject;
use crate::exactness::exactness;
use nearmiss_analysis::{CaseError, Cost, Replays, Traced, seeds, spread, waits};
use nearmiss_record::figures::{Cell, Table};
use nearmiss_record::finding::SavingRange;
use nearmiss_record::model::ModelRecord;
use nearmiss_record::policy::{AddressPolicy, Order, Policy};
use nearmiss_record::rehearsal::Rehearsal;

/// Name of the parameter, as its option is named.
pub const PARAMETER: &str = "spacings";
/// Page placements replayed. The place of a page hardly matters to who takes which line.
const PLACEMENTS: usize = 2;

/// A smaller share is none.
const NOTHING: f64 = 0.0005;

/// Both orders: a lower bound first.
pub const ORDERS: [Order; 2] = [Order::Recorded, Order::Modelled];

/// Costs of the run as it was, and under other addresses.
pub struct AddressCosts {
    /// Costs by order, policy and placement; the first policy is the run as it was.
    costs: [Vec<Vec<Cost>>; 2],
    /// Cycles of the command but for stalls, by order.
    computing_cycles: [u64; 2],
    /// Seeds of the placements.
    pub placements: Vec<u64>,
}

impl AddressCosts {
    /// Replays the run as it was, and under each of these.
    pub fn new(case: &Traced, modelled: &ModelRecord, addresses: Vec<AddressPolicy>) -> Result<Self, CaseError> {
        let placements = seeds(case.machine(), PLACEMENTS);
        let all = [AddressPolicy::Recorded].into_iter().chain(addresses);
        let policies: Vec<Policy> = all.map(|address| Policy { address, ..Policy::default() }).collect();
        let costs = |order| Replays::of(case).policies(&policies).placements(&placements).in_order(order).run();
        let recorded = if case.model.order == Order::Recorded { &case.model } else { modelled };
        let computing_cycles = [recorded, modelled].map(|model| model.totals.cycles - model.totals.stall_cycles);
        Ok(AddressCosts { costs: [costs(ORDERS[0])?, costs(ORDERS[1])?], computing_cycles, placements })
    }

    /// The command's cycles under a policy and a placement.
    fn cycles(&self, order: usize, cost: &Cost) -> f64 {
        (self.computing_cycles[order] + cost.stall_cycles) as f64
    }

    /// The command's cycles as it was, in the modelled order: median over the placements.
    pub fn cycles_before(&self) -> u64 {
        spread(self.costs[1][0].iter().map(|cost| self.cycles(1, cost))).0 as u64
    }

    /// Share of the command's cycles that the `at`-th policy saves in an order: median, least, most.
    pub fn gain(&self, order: usize, at: usize) -> (f64, f64, f64) {
        let costs = &self.costs[order];
        let saved = |(before, after)| {
            let gain = 1.0 - self.cycles(order, after) / self.cycles(order, before).max(1.0);
            if gain.abs() < NOTHING { 0.0 } else { gain }
        };
        spread(costs[0].iter().zip(&costs[at]).map(saved))
    }

    /// Ends of what the `at`-th policy saves of the whole run in the modelled order, where parts of it were recorded.
    pub fn of_whole_run(&self, at: usize) -> Option<SavingRange> {
        let [before, after] = [0, at].map(|at| self.costs[1][at].first());
        before?.saved_of_whole_run(after?, self.computing_cycles[1])
    }

    /// Least and most of both orders.
    pub fn range(&self, at: usize) -> (f64, f64) {
        let ((_, low, high), (_, other_low, other_high)) = (self.gain(0, at), self.gain(1, at));
        (low.min(other_low), high.max(other_high))
    }

    /// The table of the spacings that were tried, from the second policy on.
    pub fn table(&self, case: &Traced, name: String, spacings: &[u64]) -> Rehearsal {
        let columns = [PARAMETER, "cycles, recorded order", "gain", "cycles, modelled order", "gain"];
        let first = [0u64].iter().chain(spacings).enumerate();
        Rehearsal {
            remedy: super::NAME.to_owned(),
            subject: name,
            basis: format!(
                "medians over {} page placements, {}; the recorded order is a lower bound; {}",
                self.placements.len(),
                waits(case),
                exactness(case)
            ),
            placements: self.placements.clone(),
            table: Table {
                title: "rehearsal".to_owned(),
                columns: columns.map(str::to_owned).to_vec(),
                rows: first.map(|(at, spacing)| self.row(at, *spacing)).collect(),
            },
            more: Vec::new(),
        }
    }

    fn row(&self, at: usize, spacing: u64) -> Vec<Cell> {
        let figures = (0..ORDERS.len()).flat_map(|order| {
            let (cycles, ..) = spread(self.costs[order][at].iter().map(|cost| self.cycles(order, cost)));
            [Cell::Cycles(cycles as u64), Cell::Share(self.gain(order, at).0)]
        });
        let spacing = if at == 0 { Cell::text("as it was") } else { Cell::Bytes(spacing) };
        [spacing].into_iter().chain(figures).collect()
    }
}

/// Bytes from one tenant to the next that no cache of the machine keeps together.
pub fn least_spacing(case: &Traced) -> u64 {
    case.machine().caches.iter().map(|cache| cache.line.0).max().unwrap_or(64).next_power_of_two()
}

/// The policies of these spacings.
pub fn apart(subject: &Subject, spacings: &[u64]) -> Vec<AddressPolicy> {
    spacings.iter().map(|spacing| subject.apart(*spacing)).collect()
}
