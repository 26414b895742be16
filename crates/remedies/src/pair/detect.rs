//! Which tasks of a run could do harm to one another where they share a cache. Nothing is replayed yet.

use super::finding::{Pairing, unrehearsed};
use super::tasks::{Sample, USUAL_WINDOW};
use nearmiss_analysis::{Case, CaseError, Suspicion, Suspicions, Traced};
use nearmiss_machine::describe::{can_place_tasks, domains};

/// Everything in a run that other neighbours may help with: where several tasks wait for caches, on a machine that has
/// several groups of CPUs to place them on.
pub fn detect(case: &Case) -> Result<Suspicions, CaseError> {
    let case = case.traced()?;
    if case.model.tasks_of_command() < 3 {
        return Ok(Vec::new());
    }
    let Some(domains) = domains(case.machine()).filter(|domains| domains.count > 1) else { return Ok(Vec::new()) };
    let Some(sample) = Sample::of(case, USUAL_WINDOW).filter(|sample| sample.tasks.len() > domains.count as usize)
    else {
        return Ok(Vec::new());
    };
    let most_gain = most_gain(case, &sample);
    Ok(vec![match can_place_tasks(case.filter) {
        Ok(()) => Box::new(Pairing { domains, most_gain }) as Box<dyn Suspicion>,
        Err(why) => Box::new(unrehearsed(why, most_gain)),
    }])
}

/// Share of the command's cycles in which these tasks wait in user mode: no neighbour can save more.
fn most_gain(case: &Traced, sample: &Sample) -> f64 {
    let of = |tid| case.model.tasks.iter().filter(move |row| row.tid == tid).map(|row| row.user.stall_cycles);
    let waits: u64 = sample.tasks.iter().flat_map(|task| of(task.tid)).sum();
    waits as f64 / case.model.totals.cycles.max(1) as f64
}
