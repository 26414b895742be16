//! Result of an observation, with its conclusions.

use super::classify;
use super::tables::Log;
use nearmiss_record::observed::Observed;
use nearmiss_workload::Finished;

/// Result of an observation.
pub struct Outcome {
    /// The record.
    pub observed: Observed,
    /// How the command ended, if one was observed.
    pub finished: Option<Finished>,
    /// Log of lock waits and polls, if requested.
    pub(crate) log: Log,
}

/// Adds what follows from what was observed.
pub(super) fn concluded(outcome: &mut Outcome, machine: bool) {
    if !machine && !outcome.observed.io.is_empty() {
        outcome.observed.notes.push(
            "Block I/O is what the target requested itself; what the kernel's flusher writes later shows with -a."
                .to_owned(),
        );
    }
    outcome.observed.phases = classify(&outcome.observed);
}
