//! State of each CPU in a replay.

use crate::model::core::{Core, Ticks, Waiting, ticks};
use crate::model::engine::{Access, Drained, Quiet};
use crate::model::stream::instructions::Instructions;
use crate::model::stream::latest_loads::LatestLoads;
use crate::model::stream::misses::Misses;
use crate::model::stream::pacing::Pacing;
use crate::observer::Observer;
use crate::observer::Outcome;
use nearmiss_code::CodeMap;
use nearmiss_record::model::{MAX_LEVELS, MissClass, Tally};
use nearmiss_record::reference::{Kind, Record};

/// State of a CPU.
#[derive(Clone, Debug, Default)]
pub(in crate::model) struct Cpu {
    /// Counts of the CPU, but for the levels, which `misses` has.
    pub tally: Tally,
    pub misses: [Misses; MAX_LEVELS],
    /// Plain references by kind, not in `tally` yet; entries without a kind stay 0.
    pub plain: [u64; 8],
    pub instructions: Instructions,
    /// Ticks of the instructions, without stalls.
    pub computed: Ticks,
    pub pace: Pacing,
    pub core: Core,
    /// Address space, for virtual tags and pages.
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
    pub latest_loads: LatestLoads,
}

impl Cpu {
    /// A CPU of this node that has executed nothing. `pace`: ticks of an instruction without known code.
    pub fn new(node: u8, pace: Ticks, core: Core) -> Self {
        Cpu { space: 1, node, pace: Pacing::new(pace), core, ..Cpu::default() }
    }

    /// Counts instructions executed.
    #[inline(always)]
    pub fn executes(&mut self, instructions: u64) {
        self.tally.instructions += instructions;
        self.computed = self.computed.saturating_add(self.pace.executes(instructions));
    }

    /// Returns the ticks of the CPU's instructions and stalls.
    #[inline]
    pub fn clock(&self) -> Ticks {
        self.computed.saturating_add(ticks(self.tally.stall_cycles))
    }

    /// The CPU gets to the instruction of a record.
    #[inline(always)]
    pub fn reaches_code(&mut self, codes: &mut CodeMap, record: Record) {
        if let Some(pace) = codes.pace(record.insn()) {
            self.pace.reaches(pace);
        }
    }

    /// Whether a reference makes the core wait even if it hits: for its page, for the stores before it, or for a line that
    /// another CPU has just given up. `page`: the virtual and the physical address that are translated.
    #[inline(always)]
    pub fn waits_if_hit(&mut self, kind: Kind, vaddr: u64, page: (u64, u64)) -> bool {
        if kind == Kind::Fetch {
            return false;
        }
        let walks = self.core.looks_up(page.0, page.1, self.space);
        match kind {
            Kind::Store => self.core.buffers(vaddr, self.tally.instructions) || walks,
            Kind::Load => walks || self.core.contends(vaddr),
            _ => walks,
        }
    }

    /// Turns the time that an access takes into the core's wait. `reread`: cycles until its line has come back from where a
    /// store past the caches wrote it.
    #[inline]
    pub fn waits(
        &mut self,
        codes: &mut Option<CodeMap>,
        access: &Access,
        missed: u8,
        reread: Option<u32>,
        outcome: &mut Outcome,
    ) {
        let latency_cycles = outcome.stall_cycles;
        let (lost, insn, contends) = (outcome.waited_for_others(), access.record.insn(), self.contends(access));
        let needs = (contends || lost) && access.kind == Kind::Load;
        let needed = codes.as_mut().filter(|_| needs).and_then(|codes| codes.needed(insn));
        let (clock, instructions, pace) = (self.clock(), self.tally.instructions, self.pace.lately());
        outcome.stall_cycles = match &mut self.core {
            Core::Share { shown } => ((u64::from(latency_cycles) * *shown) >> 16) as u32,
            Core::Interval(interval) => interval.waits(&Waiting {
                kind: access.kind,
                insn: insn.0,
                vaddr: access.vaddr,
                size: access.size,
                latency_cycles,
                missed,
                writes_back: outcome.gives_up_modified,
                reread,
                lost,
                needed: needed.unwrap_or_default(),
                instructions,
                clock,
                pace,
                at: codes.as_ref().and_then(|codes| codes.address(insn)),
                origin: codes.as_mut().and_then(|codes| codes.origin(insn)),
            }),
        };
        outcome.given_up = contends && missed == 0 && outcome.stall_cycles > 0;
    }

    /// Whether an access may wait for a line that another CPU has just given up.
    #[inline]
    fn contends(&self, access: &Access) -> bool {
        matches!(access.kind, Kind::Load | Kind::Store) && self.core.contends(access.vaddr)
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

    /// Returns the address that identifies a line without physical addresses: the address space, none for the kernel's,
    /// and the address.
    #[inline]
    pub fn virtual_address(&self, record: Record) -> u64 {
        let space = if record.vaddr() >> 63 != 0 { 0 } else { self.space };
        space << 48 | record.vaddr() & ((1 << 48) - 1)
    }
}

/// Counts and reports a write-combining buffer that no reference drained.
pub(in crate::model) fn report_drained<O: Observer>(cpus: &mut [Cpu], observer: &mut O, drained: Drained) {
    let bus = &mut cpus[drained.last.cpu as usize].tally.bus;
    bus.nt_full += u64::from(drained.full);
    bus.nt_partial += u64::from(drained.partial);
    observer.drained(&drained.last, drained.full, drained.partial, drained.home);
}
