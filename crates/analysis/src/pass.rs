//! One pass over a trace, with several replays in it.

use crate::cost::{Cost, Watcher};
use crate::placements::placed;
use crate::replay::{self, CaseError, Replayable};
use nearmiss_record::machine::Machine;
use nearmiss_record::policy::{Order, Policy};

/// One replay.
#[derive(Clone, Copy)]
pub(crate) struct Job<'a> {
    pub machine: &'a Machine,
    pub policy: &'a Policy,
    pub seed: u64,
}

/// Returns the costs of replays that are made in one pass over the trace, on this thread.
pub(crate) fn one_pass(
    replayable: Replayable<'_>,
    order: Order,
    jobs: &[Job<'_>],
    inside: &[(u64, u64)],
    progress: &dyn Fn(),
) -> Result<Vec<Cost>, CaseError> {
    let listener = |&Job { machine, policy, seed }: &Job<'_>| {
        let machine = placed(machine, seed);
        replay::Listener { observer: Watcher::new(&machine, inside), machine, policy: policy.clone() }
    };
    let listeners = jobs.iter().map(listener).collect();
    Ok(replay::in_one_pass(replayable, order, listeners, progress)?.into_iter().map(Watcher::finish).collect())
}
