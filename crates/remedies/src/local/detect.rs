//! Which reads of the command go to another node's memory, and why.

use super::finding::Local;
use super::plan::Treatment;
use nearmiss_analysis::{Case, CaseError, Suspicion, Suspicions, Traced, replay};
use nearmiss_machine::attribution::{Cause, RemoteObject, RemoteReads};
use std::sync::Arc;

/// Remote reads of a run, and their objects.
#[derive(Debug)]
pub struct Seen {
    /// Most waits first.
    pub objects: Vec<RemoteObject>,
    /// Share of the command's bus reads that went to other nodes.
    pub share: f64,
    /// Threads with their bus reads and those of other nodes' memory.
    pub threads: Vec<(u32, u64, u64)>,
    /// Share of the heap blocks handed out again that another node had freed.
    pub handed_elsewhere: f64,
    /// Cycles of the command.
    pub cycles: u64,
}

impl Seen {
    /// Cycles that wait for what goes remote for this reason.
    pub fn waits(&self, cause: Cause) -> u64 {
        self.objects.iter().filter(|object| object.cause == cause).map(|object| object.waits).sum()
    }
}

/// Everything in a run that homes, places or pools may help with, and what looks like it and is not.
pub fn detect(case: &Case) -> Result<Suspicions, CaseError> {
    let case = case.traced()?;
    if case.machine().memory.nodes < 2 || replay::header(&case.run)?.node_bytes.len() < 2 {
        return Ok(Vec::new());
    }
    let seen = Arc::new(look(case)?);
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

fn look(case: &Traced) -> Result<Seen, CaseError> {
    let observer = RemoteReads::new(case.machine().topology.cpus() as usize, &case.symbols);
    let mut reads = case.listen(observer)?;
    Ok(Seen {
        objects: reads.objects(&replay::side(&case.run)?, &case.symbols),
        share: reads.share(),
        threads: reads.threads(),
        handed_elsewhere: reads.handed_elsewhere(),
        cycles: case.model.totals.cycles.max(1),
    })
}
