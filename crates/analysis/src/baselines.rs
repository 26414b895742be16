//! Costs of a run as it was, which every remedy compares its replays with.

use crate::cost::Cost;
use nearmiss_record::policy::Order;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Costs of a run as it was, by order and by seed of the placement: every remedy sets its own replays beside them.
#[derive(Default)]
pub(crate) struct Baselines(Mutex<Vec<(Order, u64, Cost)>>);

impl Baselines {
    fn known(&self) -> MutexGuard<'_, Vec<(Order, u64, Cost)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn cost(&self, order: Order, seed: u64) -> Option<Cost> {
        self.known().iter().find(|known| (known.0, known.1) == (order, seed)).map(|known| known.2.clone())
    }

    pub(crate) fn keep(&self, order: Order, seed: u64, cost: &Cost) {
        let mut known = self.known();
        if !known.iter().any(|known| (known.0, known.1) == (order, seed)) {
            known.push((order, seed, cost.clone()));
        }
    }
}
