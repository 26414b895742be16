//! Which tasks of a run do harm to one another where they share a cache.

use crate::case::Case;
use crate::contract::Suspicions;
use crate::replay::CaseError;

/// Everything in a run that other neighbours may help with.
pub fn detect(case: &Case) -> Result<Suspicions, CaseError> {
    let case = case.traced()?;
    if case.model.tasks_of_command() < 2 {
        return Ok(Vec::new());
    }
    Ok(Vec::new())
}
