//! Source of the daemon's knowledge of pairs.

use super::counters::{Counted, Counters, Learned, mixed};
use super::plan_basis::PlanBasis;
use crate::pair::kept::KeptPairs;
use nearmiss_pairing::Costs;
use nearmiss_pairing::table::USUAL_CONFIDENCE;

/// Tasks with counters: more would take too long to be seen beside each other.
const MOST_COUNTED: usize = 64;

/// A table of pairs.
pub enum Table {
    /// Table from a rehearsal; the second is what groups cost by it.
    Kept(KeptPairs, Costs),
    /// Table learned while the command runs.
    Counted(Box<dyn Counters>, Learned),
}

impl Table {
    /// Makes the table of a rehearsal.
    pub fn kept(kept: KeptPairs) -> Self {
        // As the rehearsal chose: what is not certain of a pair is no reason to move anybody.
        let costs = kept.table().certain(USUAL_CONFIDENCE).costs(&kept.weights());
        Table::Kept(kept, costs)
    }

    /// The number in the table of the command's `order`-th task, where the table has it. `taken` are numbers in use.
    pub fn slot_of(&self, order: usize, taken: impl Fn(usize) -> bool) -> Option<usize> {
        match self {
            Table::Kept(kept, _) => kept.slot_of(order),
            Table::Counted(..) => (0..MOST_COUNTED).find(|slot| !taken(*slot)),
        }
    }

    /// Returns the knowledge on these tasks.
    pub fn known(&self, members: &[usize]) -> PlanBasis {
        match self {
            Table::Kept(_, costs) => PlanBasis::Costs(costs.clone()),
            Table::Counted(_, learned) => learned.known(members),
        }
    }

    /// A period has passed: who ran on which place; each a number in the table, a task and a place. Whether plans may
    /// differ from now on.
    pub fn period(&mut self, ran: &[(usize, i32, usize)]) -> bool {
        let Table::Counted(counters, learned) = self else { return false };
        let counted = |(slot, task, place): &(usize, i32, usize)| -> Option<(usize, usize, Counted)> {
            Some((*slot, *place, counters.since_last(*task)?))
        };
        let counted: Vec<_> = ran.iter().filter_map(counted).collect();
        learned.add(&counted);
        true
    }

    /// A task of this number has ended.
    pub fn forget(&mut self, slot: usize, task: i32) {
        if let Table::Counted(counters, learned) = self {
            counters.forget(task);
            learned.forget(slot);
        }
    }

    /// Names the source of the table.
    pub fn source(&self) -> &'static str {
        match self {
            Table::Kept(..) => "a rehearsal",
            Table::Counted(..) => "counters",
        }
    }
}

/// Members, one group a place, in an order that changes with each turn.
pub fn mixed_groups(members: usize, sizes: &[usize], turn: u64) -> Vec<Vec<usize>> {
    let all: Vec<usize> = (0..members).collect();
    let mut order = mixed(&all, turn).into_iter();
    sizes.iter().map(|size| order.by_ref().take(*size).collect()).collect()
}
