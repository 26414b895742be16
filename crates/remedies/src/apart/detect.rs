//! Which lines of the command's move between CPUs at a cost.

use super::finding::Apart;
use super::subject::{DOMINATES, Subject};
use nearmiss_analysis::{Case, CaseError, Suspicion, Suspicions};
use nearmiss_record::finding::LEAST_GAIN;
use std::sync::Arc;

/// Everything in a run that lines of its own may help with, and true sharing that dominates.
pub fn detect(case: &Case) -> Result<Suspicions, CaseError> {
    let case = case.traced()?;
    if case.model.cpus.len() < 2 || case.model.tasks_of_command() < 2 {
        return Ok(Vec::new());
    }
    // Lines that wait too little in any order need not be modelled in both.
    if !case.thorough && case.most_shared()? < LEAST_GAIN {
        return Ok(Vec::new());
    }
    let modelled = Arc::new(case.in_modelled_order()?.clone());
    let dominates = |subject: &Subject| {
        subject.apart_cycles() > 0 || subject.stall_cycles() as f64 >= DOMINATES * modelled.totals.cycles.max(1) as f64
    };
    let subjects = Subject::all(&modelled).into_iter().filter(dominates);
    Ok(subjects.map(|subject| Box::new(Apart::new(subject, Arc::clone(&modelled))) as Box<dyn Suspicion>).collect())
}
