//! Which reads of the command go to another node's memory, and why.

use super::finding::Local;
use super::plan::Treatment;
use super::remote_accesses::RemoteAccesses;
use nearmiss_analysis::{Case, CaseError, Suspicion, Suspicions, replay};
use nearmiss_machine::attribution::Cause;
use std::sync::Arc;

/// Everything in a run that homes, places or pools may help with, and what looks like it and is not.
pub fn detect(case: &Case) -> Result<Suspicions, CaseError> {
    let case = case.traced()?;
    if case.machine().memory.nodes < 2 || replay::header(&case.run)?.node_bytes.len() < 2 {
        return Ok(Vec::new());
    }
    let seen = Arc::new(RemoteAccesses::of(case)?);
    let of = |cause: Cause| seen.objects.iter().filter(move |object| object.cause == cause);
    let homes = of(Cause::FirstTouch).chain(of(Cause::Elsewhere)).map(|object| Treatment::Home(object.clone()));
    let shared = of(Cause::Read).map(|object| Treatment::Interleave(object.clone()));
    let whole = [
        (Cause::Moved, Treatment::Bind),
        (Cause::Pool, Treatment::Pools),
        (Cause::Written, Treatment::NoneForWritten),
        (Cause::PageCache, Treatment::NoneForFiles),
    ];
    let whole = whole.into_iter().filter(|(cause, _)| seen.waits(*cause) > 0).map(|(_, treatment)| treatment);
    let treatments: Vec<Treatment> = homes.chain(shared).chain(whole).collect();
    Ok(treatments.into_iter().map(|t| Box::new(Local::new(t, Arc::clone(&seen))) as Box<dyn Suspicion>).collect())
}
