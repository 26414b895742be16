//! Follows processes, the objects in their memory, and the page frames that the kernel clears for them: shared by
//! listeners that look at the pages of user mode.

use super::tracker::{HeapCall, RecordedData, Tracker, USER_END};
use super::{MAX_OBJECTS, index};
use crate::observer::Effective;
use crate::owner::{Owner, Running};
use nearmiss_record::machine::Machine;
use nearmiss_record::maps::{Event, MapLog};
use nearmiss_record::reference::{Control, Kind, Record};
use nearmiss_record::symbols::{CLEARING, Symbols};
use rustc_hash::FxHashSet;

/// State of a CPU.
#[derive(Clone, Copy, Default)]
struct Cpu {
    pid: u32,
    thread: u32,
    context: u32,
    user_context: u32,
    kernel: bool,
}

/// See the module's text.
pub(super) struct Touches {
    pub tracker: Tracker,
    /// Mappings by the instruction that came first after them.
    pub log: MapLog,
    running: Running,
    seen: u32,
    cpus: Vec<Cpu>,
    /// A bit an instruction: it clears pages for user mode.
    clears: Vec<u64>,
    /// Frames that were cleared and not used since.
    cleared: FxHashSet<u64>,
}

impl Touches {
    /// For a run on this machine.
    pub fn new(machine: &Machine, symbols: &Symbols) -> Self {
        let cpus = machine.topology.cpus().max(1) as usize;
        Touches {
            tracker: Tracker::new(Box::new(RecordedData::new(symbols)), MAX_OBJECTS),
            log: MapLog::default(),
            running: Running::new(cpus),
            seen: 0,
            cpus: vec![Cpu::default(); cpus],
            clears: clears(symbols),
            cleared: FxHashSet::default(),
        }
    }

    /// Number of CPUs.
    pub fn cpus(&self) -> usize {
        self.cpus.len()
    }

    /// Process that runs on the CPU of this index.
    pub fn pid(&self, at: usize) -> u32 {
        self.cpus[at].pid
    }

    /// Thread that runs on the CPU of this index: the process's number for its first one.
    pub fn thread(&self, at: usize) -> u32 {
        self.cpus[at].thread
    }

    /// Whether the CPU of this index runs the command.
    pub fn runs_command(&self, at: usize) -> bool {
        self.running.owner(at) == Owner::Command
    }

    /// Notes a control record. Returns the index of its CPU.
    pub fn control(&mut self, vcpu: u32, control: &Control<'_>, mut seen: impl FnMut(&Event)) -> usize {
        let at = index(vcpu, self.cpus.len());
        match *control {
            Control::Switch { task, pid, tgid, .. } => {
                self.running.control(vcpu, control);
                let cpu = &mut self.cpus[at];
                (cpu.pid, cpu.thread, cpu.user_context, cpu.kernel) = (tgid, pid, 0, true);
                self.log.task(self.seen, task, tgid);
            }
            Control::Context(context) => {
                let cpu = &mut self.cpus[at];
                cpu.user_context = if cpu.kernel { cpu.user_context } else { cpu.context };
                cpu.context = context;
            }
            Control::Maps(bytes) => self.maps(at, bytes, &mut seen),
            Control::Heap { op, address, size, old, alignment } => {
                let (pid, context) = (self.cpus[at].pid, self.cpus[at].context);
                self.tracker.heap(pid, context, HeapCall { op, address, bytes: size, old, alignment });
            }
            Control::Mark { .. } | Control::Irq(_) => self.running.control(vcpu, control),
            Control::Share { .. } | Control::Halt | Control::Fence | Control::Code(_) | Control::Branch { .. } => {}
        }
        at
    }

    fn maps(&mut self, vcpu: usize, bytes: &[u8], seen: &mut impl FnMut(&Event)) {
        let mut events = Vec::new();
        self.running.maps(vcpu, bytes, |event| events.push(event));
        for event in events {
            let cpu = &mut self.cpus[vcpu];
            match &event {
                Event::Map { pid, .. } | Event::Name { pid, exec: true, .. } => cpu.pid = *pid,
                _ => {}
            }
            let user = if cpu.kernel { cpu.user_context } else { cpu.context };
            self.tracker.event(&event, (cpu.context, user));
            seen(&event);
            self.log.event(self.seen, &event);
        }
    }

    /// Notes a reference. Returns the index of its CPU, if it is one to data.
    #[inline]
    pub fn data(&mut self, reference: &Effective) -> Option<usize> {
        let record = reference.record;
        self.seen = self.seen.max(record.insn().0 + 1);
        let at = index(reference.cpu, self.cpus.len());
        self.cpus[at].kernel = record.is_kernel();
        if reference.kind == Kind::Fetch {
            return None;
        }
        if record.vaddr() >= USER_END && reference.kind == Kind::Store && self.is_clearing(record) {
            self.cleared.insert(record.physical_page());
        }
        Some(at)
    }

    /// Whether this reference of user mode is the first to a frame that the kernel cleared. It is so once.
    #[inline]
    pub fn is_first(&mut self, record: Record) -> bool {
        !self.cleared.is_empty() && self.cleared.remove(&record.physical_page())
    }

    fn is_clearing(&self, record: Record) -> bool {
        let insn = record.insn().0 as usize;
        self.clears.get(insn / 64).is_some_and(|word| word >> (insn % 64) & 1 != 0)
    }
}

/// Marks the instructions of the functions that clear pages.
fn clears(symbols: &Symbols) -> Vec<u64> {
    let functions = &symbols.functions;
    let does = |function: u32| {
        let function = functions.get(function as usize);
        function.is_some_and(|function| function.kernel && CLEARING.contains(&function.name.as_str()))
    };
    let mut marks = vec![0u64; symbols.insns.len().div_ceil(64)];
    for (insn, _) in symbols.insns.iter().enumerate().filter(|(_, (function, ..))| does(*function)) {
        marks[insn / 64] |= 1 << (insn % 64);
    }
    marks
}
