//! Result of an observation, with its conclusions.

use super::classify;
use super::tables::Log;
use crate::perf::MADE_AT_RUN_TIME;
use nearmiss_record::observed::{Observed, Profile};
use nearmiss_workload::Finished;

/// Share of the samples from which on code without names is worth a note.
const MUCH: f64 = 0.05;

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
    let nameless = outcome.observed.profile.as_ref().map_or(0.0, nameless);
    if nameless >= MUCH {
        outcome.observed.notes.push(format!(
            "{:.0}% of the samples are in code made at run time that has no names: start it with node --perf-basic-prof, \
             java -XX:+DumpPerfMapAtExit or python3 -X perf (from 3.12 on), which write /tmp/perf-PID.map.",
            nameless * 100.0
        ));
    }
    outcome.observed.phases = classify(&outcome.observed);
}

/// Returns the share of the samples in code that was made at run time and that no runtime named.
fn nameless(profile: &Profile) -> f64 {
    let is_nameless = |frame: &u32| {
        let frame = profile.frames.get(*frame as usize);
        frame.is_some_and(|frame| frame.module == MADE_AT_RUN_TIME && frame.function == MADE_AT_RUN_TIME)
    };
    let stack = |stack: u32| profile.stacks.get(stack as usize).and_then(|frames| frames.first());
    let nameless = profile.samples.iter().filter(|sample| stack(sample.stack).is_some_and(is_nameless)).count();
    nameless as f64 / profile.samples.len().max(1) as f64
}
