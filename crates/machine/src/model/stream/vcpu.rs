//! What a replay keeps of each CPU.

use crate::model::engine::{Drained, Quiet};
use crate::model::stream::instructions::Instructions;
use crate::model::stream::misses::Misses;
use crate::observer::Observer;
use nearmiss_record::model::{MAX_LEVELS, MissClass, Tally};
use nearmiss_record::reference::{Kind, Record};

/// What is kept of each CPU.
#[derive(Clone, Debug, Default)]
pub(in crate::model) struct Cpu {
    /// But for its levels, which `misses` has.
    pub tally: Tally,
    pub misses: [Misses; MAX_LEVELS],
    /// Plain references by kind, not in `tally` yet; what no kind has for a number stays 0.
    pub plain: [u64; 8],
    pub instructions: Instructions,
    /// Address space, for virtual tags.
    pub space: u64,
    /// Levels that the previous reference missed.
    pub missed: u8,
    /// The latest miss of the first level missed the next one too: others will, and need more than a look.
    pub deep: bool,
    /// The latest record was executed in kernel mode.
    pub in_kernel: bool,
    pub halted: bool,
    /// Calling context of the latest record.
    pub context: u32,
    /// Memory node.
    pub node: u8,
}

impl Cpu {
    /// A CPU of this node that has executed nothing.
    pub fn new(node: u8) -> Self {
        Cpu { space: 1, node, ..Cpu::default() }
    }

    /// Adds the plain references to the tally.
    pub fn count_plain(&mut self) {
        let plain = std::mem::take(&mut self.plain);
        let (loads, stores) = (plain[Kind::Load as usize], plain[Kind::Store as usize]);
        self.tally.loads += loads;
        self.tally.stores += stores;
        self.tally.line_accesses += loads + stores;
    }

    /// Counts a miss of an engine without classes.
    #[inline(always)]
    pub fn count_quiet(&mut self, kind: Kind, quiet: Quiet) {
        self.missed = quiet.missed;
        self.tally.bus.write_backs += u64::from(quiet.write_backs);
        for (level, misses) in self.misses.iter_mut().enumerate() {
            if quiet.missed >> level & 1 != 0 {
                misses.count(kind, MissClass::Capacity);
            }
        }
    }

    /// What tells a line apart without physical addresses: the address space, none for the kernel's, and the address.
    #[inline]
    pub fn virtual_address(&self, record: Record) -> u64 {
        let space = if record.vaddr() >> 63 != 0 { 0 } else { self.space };
        space << 48 | record.vaddr() & ((1 << 48) - 1)
    }
}

/// Counts and tells a write-combining buffer that no reference drained.
pub(in crate::model) fn tell_drained<O: Observer>(cpus: &mut [Cpu], observer: &mut O, drained: Drained) {
    let bus = &mut cpus[drained.last.cpu as usize].tally.bus;
    bus.nt_full += u64::from(drained.full);
    bus.nt_partial += u64::from(drained.partial);
    observer.drained(&drained.last, drained.full, drained.partial, drained.home);
}
