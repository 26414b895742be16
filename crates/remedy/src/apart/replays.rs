//! What a run would have cost with the tenants of its shared lines apart, in both orders.

use super::subject::Subject;
use crate::rehearsal::{Cost, rehearse_in, seeds, spread};
use crate::replay::CaseError;
use crate::traced::Traced;
use nearmiss_record::figures::{Cell, Table};
use nearmiss_record::model::ModelRecord;
use nearmiss_record::policy::{AddressPolicy, Order, Policy};
use nearmiss_record::rehearsal::Rehearsal;

/// What a rehearsal varies, as its option is named.
pub const PARAMETER: &str = "spacings";
/// Page placements replayed. Where a page lies hardly matters to who takes whose line.
const PLACEMENTS: usize = 2;

/// Both orders: a lower bound first.
pub const ORDERS: [Order; 2] = [Order::Recorded, Order::Modelled];

/// Costs of the run as it was, and under other addresses.
pub struct Replays {
    /// By order, policy and placement; the first policy is the run as it was.
    costs: [Vec<Vec<Cost>>; 2],
    /// By order: cycles of the command as it was.
    cycles: [u64; 2],
    /// Seeds of the placements.
    pub placements: Vec<u64>,
}

impl Replays {
    /// Replays the run as it was, and under each of these.
    pub fn new(case: &Traced, modelled: &ModelRecord, addresses: Vec<AddressPolicy>) -> Result<Self, CaseError> {
        let placements = seeds(case.machine(), PLACEMENTS);
        let all = [AddressPolicy::Recorded].into_iter().chain(addresses);
        let policies: Vec<Policy> = all.map(|address| Policy { address, ..Policy::default() }).collect();
        let costs = |order| rehearse_in(case, order, &policies, &placements, &[]);
        let recorded = if case.model.order == Order::Recorded { &case.model } else { modelled };
        Ok(Replays {
            costs: [costs(ORDERS[0])?, costs(ORDERS[1])?],
            cycles: [recorded.totals.cycles, modelled.totals.cycles],
            placements,
        })
    }

    /// Share of the command's cycles that the `at`-th policy saves in an order: median, least, most.
    pub fn gain(&self, order: usize, at: usize) -> (f64, f64, f64) {
        let costs = &self.costs[order];
        let saved = |(before, after): (&Cost, &Cost)| before.stall_cycles as f64 - after.stall_cycles as f64;
        spread(costs[0].iter().zip(&costs[at]).map(|pair| saved(pair) / self.cycles[order].max(1) as f64))
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
                "medians over {} page placements, overlap {}; the recorded order is a lower bound; {}",
                self.placements.len(),
                case.machine().overlap,
                exactness(case)
            ),
            placements: self.placements.clone(),
            table: Table {
                title: "rehearsal".to_owned(),
                columns: columns.map(str::to_owned).to_vec(),
                rows: first.map(|(at, spacing)| self.row(at, *spacing)).collect(),
            },
        }
    }

    fn row(&self, at: usize, spacing: u64) -> Vec<Cell> {
        let figures = (0..ORDERS.len()).flat_map(|order| {
            let gain = self.gain(order, at).0;
            [Cell::Cycles((self.cycles[order] as f64 * (1.0 - gain)) as u64), Cell::Share(gain)]
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

/// What the filter that made the trace allows to say.
pub fn exactness(case: &Traced) -> &'static str {
    match nearmiss_machine::describe::can_move_addresses(case.filter) {
        Ok(()) => "exact: the trace was made with the one-line filter",
        Err(_) => {
            "approximate at the first level: the trace's filter of several lines assumed that lines stay where they are"
        }
    }
}
