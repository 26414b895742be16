//! Interface between the stream's front and the caches behind it: the model proper, or its slow twin.

use crate::model::options::{ModelError, ModelOptions};
use crate::model::sites::Sites;
use crate::model::totals::ModelTotals;
use crate::observer::{Effective, Outcome};
use nearmiss_record::machine::Machine;
use nearmiss_record::policy::Policy;
use nearmiss_record::reference::{Control, Kind, Record};

/// One access to one first-level line.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// Guest CPU.
    pub cpu: usize,
    /// Load, store, atomic, non-temporal store or fetch.
    pub kind: Kind,
    /// Address that identifies lines: the recorded physical one, or virtual address and address space (cachegrind).
    pub address: u64,
    /// Virtual address.
    pub vaddr: u64,
    /// Bytes, all in one first-level line.
    pub size: u32,
    /// Number of the access's call site, if reasons are requested: see [`Sites`].
    pub site: u32,
    /// Levels, a bit each, that the first half of this reference missed: it does not miss there again.
    pub missed_before: u8,
    /// Levels, a bit each, at which the cache had the line all the same if it never saw it, as a pause leaves open.
    pub was_there: u8,
    /// Levels, a bit each, at which the cache still has the line though it was not used since a pause, in which others
    /// brought in theirs.
    pub stayed: u8,
    /// The CPU's time in cycles.
    pub now: u64,
    /// As recorded, but for its kind.
    pub record: Record,
}

impl Access {
    /// Returns the observers' view of the access, given the node of its CPU.
    #[inline(always)]
    pub fn effective(&self, node: u8) -> Effective {
        let &Access { cpu, kind, address, vaddr, size, record, .. } = self;
        Effective { cpu: cpu as u32, node, kind, address, vaddr, size, record }
    }
}

/// A write-combining buffer that no reference drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Latest store into the buffer.
    pub last: Effective,
    /// Full lines.
    pub full: u8,
    /// Parts of lines.
    pub partial: u8,
    /// Memory node.
    pub home: u8,
}

/// Result of a miss in an engine that only counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet {
    /// Levels that were missed, a bit each.
    pub missed: u8,
    /// Modified lines written back to memory because of the miss.
    pub write_backs: u8,
}

/// Caches, coherence, buffers and bus.
pub trait Engine: Sized {
    /// Builds the engine for a machine.
    fn new(machine: &Machine, policy: &Policy, options: &ModelOptions) -> Result<Self, ModelError>;
    /// A first-level hit that changes nothing elsewhere, done at once; `false`: use [`Engine::access`].
    fn hit(&mut self, cpu: usize, kind: Kind, address: u64, vaddr: u64) -> bool;
    /// Whether it helps to prepare accesses.
    fn is_far(&self) -> bool {
        false
    }
    /// An access will come soon. Changes nothing that counts.
    fn prepare(&mut self, cpu: usize, kind: Kind, address: u64, vaddr: u64) {
        let _ = (cpu, kind, address, vaddr);
    }
    /// An access is next, and may miss more than the first level. Changes nothing that counts.
    fn prepare_fills(&self, cpu: usize, kind: Kind, address: u64, vaddr: u64) {
        let _ = (cpu, kind, address, vaddr);
    }
    /// An access that is a whole reference, and neither a hit nor an atomic nor a non-temporal store; as
    /// [`Engine::access`].
    fn miss(&mut self, access: &Access, outcome: &mut Outcome) -> u8 {
        self.access(access, outcome)
    }
    /// Handles a miss as [`Engine::miss`], if misses and write-backs are all that the engine reports; `None`: there is
    /// more, and nothing was done.
    fn miss_quietly(&mut self, kind: Kind, address: u64, record: Record) -> Option<Quiet> {
        let _ = (kind, address, record);
        None
    }
    /// Any access. Fills `outcome`; returns the levels that it missed, a bit each, second halves included.
    fn access(&mut self, access: &Access, outcome: &mut Outcome) -> u8;
    /// A core's write-combining buffers drain.
    fn fence(&mut self, cpu: usize, now: u64, sink: &mut dyn FnMut(Drained));
    /// Notes that `owner` wrote these bytes at `address` before other CPUs used the line.
    fn share(&mut self, address: u64, owner: usize, written: u64);
    /// Handles a control record of this CPU, which the homes of pages may depend on.
    fn control(&mut self, cpu: usize, control: &Control<'_>) {
        let _ = (cpu, control);
    }
    /// Places pages in the order of these addresses, before any reference comes. By default pages are placed in the order
    /// of the references.
    fn lay(&mut self, addresses: &[u64]) {
        let _ = addresses;
    }
    /// The node of a CPU.
    fn node(&self, cpu: usize) -> u8;
    /// The window closes. `sites`: the call sites by number.
    fn finish(self, sites: &Sites, sink: &mut dyn FnMut(Drained)) -> ModelTotals;
}
