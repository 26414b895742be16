//! Reads of another node's memory in a run, with the objects that they go to.

use nearmiss_analysis::{CaseError, Traced, replay};
use nearmiss_machine::attribution::{Cause, RemoteObject, RemoteReads};

/// Remote reads of a run, and their objects.
#[derive(Debug)]
pub struct RemoteAccesses {
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

impl RemoteAccesses {
    /// Finds the remote reads of a run: one replay, of the run as it was.
    pub fn of(case: &Traced) -> Result<Self, CaseError> {
        let observer = RemoteReads::new(case.machine().topology.cpus() as usize, &case.symbols);
        let mut reads = case.listen(observer)?;
        Ok(RemoteAccesses {
            objects: reads.objects(&replay::side(&case.run)?, &case.symbols),
            share: reads.share(),
            threads: reads.threads(),
            handed_elsewhere: reads.handed_elsewhere(),
            cycles: case.model.totals.cycles.max(1),
        })
    }

    /// Cycles that wait for what goes remote for this reason.
    pub fn waits(&self, cause: Cause) -> u64 {
        self.objects.iter().filter(|object| object.cause == cause).map(|object| object.waits).sum()
    }
}
