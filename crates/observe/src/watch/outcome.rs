//! Result of an observation, with its conclusions.

use super::classify;
use super::log::Log;
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
    // A task that others keep from the CPU looks idle where nobody saw it wait.
    if outcome.observed.tasks.is_empty() && outcome.observed.phases.iter().any(|phase| phase.class == "CPU-idle") {
        outcome.observed.phases.clear();
        outcome.observed.notes.push(
            "No class: the program had a CPU for less than 70% of the time, and whether it waited for one or for \
             something else was not observed; add --sched."
                .to_owned(),
        );
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use nearmiss_record::observed::{Task, Tick};

    #[test]
    fn a_task_whose_waits_nobody_saw_is_not_called_idle() {
        let (step, half) = (100_000_000, 50_000_000);
        let tick = |nth: u64| Tick { at_ns: (nth + 1) * step, length_ns: step, cpu_ns: half, ..Tick::default() };
        let classes = |tasks: Vec<Task>| {
            let timeline = (0..40).map(tick).collect();
            let observed = Observed { cpus: 2, duration_ns: 40 * step, timeline, tasks, ..Observed::default() };
            let mut outcome = Outcome { observed, finished: None, log: Log::default() };
            concluded(&mut outcome, false);
            let classes: Vec<String> = outcome.observed.phases.into_iter().map(|phase| phase.class).collect();
            (classes, outcome.observed.notes.len())
        };
        assert_eq!(classes(Vec::new()), (Vec::new(), 1));
        let seen = Task { cpu_ns: 40 * half, life_ns: 40 * step, ..Task::default() };
        assert_eq!(classes(vec![seen]), (vec!["CPU-idle".to_owned()], 0));
    }
}
