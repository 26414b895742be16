//! Events of the model, reference by reference: attribution observes them.
//!
//! The model has caches, CPUs and lines, but no functions, objects or tasks. An [`Observer`] has.

use nearmiss_code::CodeMap;
use nearmiss_record::model::{BusTally, MAX_LEVELS, MissClass};
use nearmiss_record::reference::{Control, Kind, Record};
use nearmiss_record::units::InsnId;

/// A reference, or its part in one first-level line, as the machine handled it: after the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effective {
    /// CPU that it ran on.
    pub cpu: u32,
    /// Memory node of that CPU; the node of the line is [`Outcome::home`].
    pub node: u8,
    /// Load, store, atomic, non-temporal store or fetch.
    pub kind: Kind,
    /// Address that identifies lines: the recorded physical one, moved as the policy moves it; without coherence the
    /// virtual one with its address space.
    pub address: u64,
    /// Virtual address.
    pub vaddr: u64,
    /// Bytes.
    pub size: u32,
    /// As recorded, but for its kind: its addresses are those by which objects were recorded.
    pub record: Record,
}

/// A branch that was predicted wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mispredicted {
    /// CPU that it ran on.
    pub cpu: u32,
    /// The branch.
    pub insn: InsnId,
    /// Executed in kernel mode.
    pub kernel: bool,
}

/// Outcome of a reference that missed the first level, or that caused bus traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Class of the miss by level, nearest first; `None` if it hit, was not looked up, or does not count as a miss (see
    /// [`Outcome::continuation`]). Every `Some` counts, regardless of the other fields.
    pub missed: [Option<MissClass>; MAX_LEVELS],
    /// Set of the lookup by level; valid where `missed` is `Some`.
    pub set: [u32; MAX_LEVELS],
    /// The read transaction that the reference caused on the bus, if it left the outermost cache.
    pub read: Option<BusRead>,
    /// The first level gave up a modified line for the reference's line.
    pub gives_up_modified: bool,
    /// Modified lines written back to memory because of the reference.
    pub write_backs: u8,
    /// The reference sent an invalidation without data (an upgrade).
    pub invalidated: bool,
    /// Write-combining transactions that the reference forced: full lines. Those that no reference forced come by
    /// [`Observer::drained`].
    pub nt_full: u8,
    /// Write-combining transactions that the reference forced: parts of lines, 8 bytes each.
    pub nt_partial: u8,
    /// The reference hit, and waited for a line that another CPU had given up just before.
    pub given_up: bool,
    /// Cycles that the CPU waited for the reference, overlap already taken off.
    pub stall_cycles: u32,
    /// Memory node the line belongs to.
    pub home: u8,
    /// Physical address of the line, in the modelled placement.
    pub line_paddr: u64,
    /// Second half of a straddling reference which missed only where its first half had missed too: fills and traffic
    /// count, the reference does not miss again, and `missed` is all `None`. (If only the second half missed, `missed`
    /// has its classes and this is false.)
    pub continuation: bool,
}

impl Outcome {
    /// Whether the reference went to memory because the outermost cache had never seen the line, and another CPU was no
    /// part of that.
    #[inline]
    pub fn is_first_touch(&self) -> bool {
        self.missed.iter().rev().flatten().next() == Some(&MissClass::Compulsory)
            && self.read.is_some_and(|read| read != BusRead::LocalModified)
            && !self.invalidated
            && !self.missed.iter().flatten().any(|class| class.is_sharing())
    }

    /// The class of the coherence miss, if the reference was one at any level.
    pub fn sharing_class(&self) -> Option<MissClass> {
        self.missed.iter().flatten().copied().find(|class| class.is_sharing())
    }

    /// Whether the time that the reference took is for other CPUs' sake.
    pub fn waited_for_others(&self) -> bool {
        self.sharing_class().is_some() || self.read == Some(BusRead::LocalModified) || self.invalidated || self.given_up
    }

    /// Whether the reference caused any transaction.
    #[inline]
    pub fn has_traffic(&self) -> bool {
        self.read.is_some() || self.write_backs | self.nt_full | self.nt_partial | u8::from(self.invalidated) != 0
    }

    /// Adds the transactions that the reference caused.
    #[inline]
    pub fn add_traffic(&self, bus: &mut BusTally) {
        self.add_traffic_of(1, bus);
    }

    /// Adds the transactions of so many references with this outcome.
    pub fn add_traffic_of(&self, times: u64, bus: &mut BusTally) {
        match self.read {
            Some(BusRead::Remote) => bus.read_remote += times,
            Some(BusRead::LocalNone) => bus.read_local_none += times,
            Some(BusRead::LocalShared) => bus.read_local_shared += times,
            Some(BusRead::LocalModified) => bus.read_local_modified += times,
            None => {}
        }
        bus.write_backs += times * u64::from(self.write_backs);
        bus.invalidations += times * u64::from(self.invalidated);
        bus.nt_full += times * u64::from(self.nt_full);
        bus.nt_partial += times * u64::from(self.nt_partial);
    }
}

/// P4's classes of a read on the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusRead {
    /// From another node's memory.
    Remote,
    /// Local, no other CPU had the line.
    LocalNone,
    /// Local, other CPUs had the line clean.
    LocalShared,
    /// Local, modified in another CPU's cache.
    LocalModified,
}

/// Observes a model. All calls come in the order in which the model handled the records.
pub trait Observer {
    /// A control record.
    fn control(&mut self, vcpu: u32, control: &Control<'_>);
    /// A kept reference or fetch that hit the first level and caused no traffic.
    fn hit(&mut self, reference: &Effective);
    /// A kept reference or fetch that missed the first level or caused traffic.
    fn miss(&mut self, reference: &Effective, outcome: &Outcome);
    /// Instructions this vCPU executed before the next record (or before its chunk's end).
    fn instructions(&mut self, vcpu: u32, instructions: u64);
    /// A branch was predicted wrongly: the core waits for its way, beyond the wait for the value that decides it.
    fn redirected(&mut self, branch: &Mispredicted, cycles: u32) {
        let _ = (branch, cycles);
    }
    /// A reference that was observed before, with this outcome, makes the core wait for more cycles: a branch that was
    /// predicted wrongly needs its value.
    fn waited_for(&mut self, reference: &Effective, outcome: &Outcome, cycles: u32) {
        let _ = (reference, outcome, cycles);
    }
    /// The stream is over. `codes`: the code that ran, of machines with cores that use it; an observer may take the
    /// code.
    fn ended(&mut self, codes: &mut Option<CodeMap>) {
        let _ = codes;
    }
    /// A write-combining buffer went to memory because of a fence or the window's end, not of a reference: `last` is
    /// the latest non-temporal store into it, `home` its memory node.
    fn drained(&mut self, last: &Effective, full: u8, partial: u8, home: u8) {
        let _ = (last, full, partial, home);
    }
}

/// Ignores all events: for replays that need totals only.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullObserver;

impl Observer for NullObserver {
    fn control(&mut self, _: u32, _: &Control<'_>) {}
    fn hit(&mut self, _: &Effective) {}
    fn miss(&mut self, _: &Effective, _: &Outcome) {}
    fn instructions(&mut self, _: u32, _: u64) {}
}

/// Passes events on to two observers.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn control(&mut self, vcpu: u32, control: &Control<'_>) {
        self.0.control(vcpu, control);
        self.1.control(vcpu, control);
    }
    fn hit(&mut self, reference: &Effective) {
        self.0.hit(reference);
        self.1.hit(reference);
    }
    fn miss(&mut self, reference: &Effective, outcome: &Outcome) {
        self.0.miss(reference, outcome);
        self.1.miss(reference, outcome);
    }
    fn redirected(&mut self, branch: &Mispredicted, cycles: u32) {
        self.0.redirected(branch, cycles);
        self.1.redirected(branch, cycles);
    }
    fn waited_for(&mut self, reference: &Effective, outcome: &Outcome, cycles: u32) {
        self.0.waited_for(reference, outcome, cycles);
        self.1.waited_for(reference, outcome, cycles);
    }
    fn instructions(&mut self, vcpu: u32, instructions: u64) {
        self.0.instructions(vcpu, instructions);
        self.1.instructions(vcpu, instructions);
    }
    fn ended(&mut self, codes: &mut Option<CodeMap>) {
        self.0.ended(codes);
        self.1.ended(codes);
    }
    fn drained(&mut self, last: &Effective, full: u8, partial: u8, home: u8) {
        self.0.drained(last, full, partial, home);
        self.1.drained(last, full, partial, home);
    }
}

impl<O: Observer> Observer for Option<O> {
    fn control(&mut self, vcpu: u32, control: &Control<'_>) {
        if let Some(observer) = self {
            observer.control(vcpu, control);
        }
    }
    fn hit(&mut self, reference: &Effective) {
        if let Some(observer) = self {
            observer.hit(reference);
        }
    }
    fn miss(&mut self, reference: &Effective, outcome: &Outcome) {
        if let Some(observer) = self {
            observer.miss(reference, outcome);
        }
    }
    fn redirected(&mut self, branch: &Mispredicted, cycles: u32) {
        if let Some(observer) = self {
            observer.redirected(branch, cycles);
        }
    }
    fn waited_for(&mut self, reference: &Effective, outcome: &Outcome, cycles: u32) {
        if let Some(observer) = self {
            observer.waited_for(reference, outcome, cycles);
        }
    }
    fn instructions(&mut self, vcpu: u32, instructions: u64) {
        if let Some(observer) = self {
            observer.instructions(vcpu, instructions);
        }
    }
    fn drained(&mut self, last: &Effective, full: u8, partial: u8, home: u8) {
        if let Some(observer) = self {
            observer.drained(last, full, partial, home);
        }
    }
    fn ended(&mut self, codes: &mut Option<CodeMap>) {
        if let Some(observer) = self {
            observer.ended(codes);
        }
    }
}
