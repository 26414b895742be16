//! Whose the misses are: by code, call stack, object, task, CPU, node, set and page offset.
//!
//! [`Attribution`] listens to a model while it replays and keeps compact counts; [`Attribution::into_record`] names and
//! adds up when the run is over. What an interrupt handler of the timer did ("ticks") and what idle CPUs did are counted
//! apart and never part of the command's.

mod alias_tables;
mod aliases;
mod balance;
mod blocks;
mod charged;
mod code_tables;
mod cpu;
mod crowd_tables;
mod crowds;
mod data_tables;
mod finish;
mod instructions;
mod kernel;
mod ledger;
mod names;
mod objects;
mod pages;
mod repeats;
mod sharing;
mod spaces;
mod stack_tables;
mod task_tables;
mod tasks;
mod tracker;

#[cfg(test)]
mod tests;

pub use alias_tables::{Alias, Party};
pub use crowd_tables::Crowd;
pub use finish::ModelledRun;
pub use nearmiss_record::symbols::DataSymbols;
pub use tracker::RecordedData;

use crate::observer::{BusRead, Effective, Observer, Outcome};
use aliases::Aliases;
use cpu::{Cpu, Mode};
use crowds::Crowds;
use ledger::{Count, Ledger, References, Row};
use nearmiss_record::abi::MAX_VCPUS;
use nearmiss_record::machine::StoreAliasing;
use nearmiss_record::maps::{Event, MapLog};
use nearmiss_record::model::{MAX_LEVELS, MissClass, PageOffsets, StallSources};
use nearmiss_record::reference::{Control, Kind, Record};
use objects::Objects;
use pages::PageSet;
use repeats::{Met, Repeats};
use rustc_hash::FxHashMap;
use sharing::SharedLines;
use stack_tables::Visits;
use tasks::Tasks;
use tracker::{HeapCall, Tracker};

const PAGE_BYTES: u64 = 4096;
const MARK_BEGIN: u64 = 1;
/// Instruction ids from here on are counted as one: no run has so many, a damaged file may claim so.
const MAX_INSNS: usize = 1 << 24;
/// Most rows of the object table while the run goes on.
const MAX_OBJECTS: usize = 1 << 20;
/// Most pairs of calling context and instruction that are told apart.
const MAX_STACKS: usize = 1 << 20;

/// What an attribution must know beforehand.
#[derive(Clone, Debug)]
pub struct Options {
    /// CPUs of the guest.
    pub cpus: u32,
    /// Cache levels of the machine.
    pub levels: usize,
    /// Line size of the machine's first data cache in bytes, a power of two.
    pub line_bytes: u32,
    /// Sets of each level's data cache, nearest first, to look for objects that crowd on few of them; empty: do not.
    pub crowd_sets: Vec<u64>,
    /// What tells loads that wait for a store to the same offset of another page; `None`: do not look for them.
    pub aliasing: Option<StoreAliasing>,
}

/// Counts of one instruction.
#[derive(Clone, Copy, Debug, Default)]
struct InsnRow {
    references: References,
    misses: Row,
}

/// Misses of one instruction in one calling context.
#[derive(Clone, Copy, Debug, Default)]
struct StackCount {
    misses: [u64; MAX_LEVELS],
    stall_cycles: u64,
}

/// Listens to a model; see the module's text.
pub struct Attribution {
    options: Options,
    ledger: Ledger,
    /// By [`Mode`], by instruction id.
    insns: [Vec<InsnRow>; 3],
    cpus: Vec<Cpu>,
    tasks: Tasks,
    tracker: Tracker,
    log: MapLog,
    /// Of idle and of ticks, by [`Mode`]; the command's is the sum of its instructions.
    modes: [Row; 3],
    nodes: Vec<InsnRow>,
    code: InsnRow,
    stacks: FxHashMap<(u32, u32), StackCount>,
    visits: Visits,
    stacks_full: bool,
    repeats: Repeats,
    sharing: SharedLines,
    page_offsets: PageOffsets,
    stalls: StallSources,
    /// Pages that user mode missed on.
    user_pages: PageSet,
    crowds: Option<Crowds>,
    aliases: Option<Aliases>,
    lost_events: u64,
    damaged_rings: u64,
}

impl Attribution {
    /// `data`: where the variables of mapped files come from.
    pub fn new(options: Options, data: Box<dyn DataSymbols>) -> Self {
        let line = options.line_bytes.clamp(8, PAGE_BYTES as u32).next_power_of_two();
        let bins = (PAGE_BYTES / u64::from(line)) as usize;
        let cpus = (options.cpus as usize).clamp(1, MAX_VCPUS);
        let mut tasks = Tasks::default();
        let cpus: Vec<Cpu> = (0..cpus).map(|_| Cpu::new(tasks.first())).collect();
        let levels = options.levels.min(MAX_LEVELS);
        let crowds = (!options.crowd_sets.is_empty()).then(|| Crowds::new(&options.crowd_sets, cpus.len()));
        let aliases = options.aliasing.map(|aliasing| Aliases::new(aliasing, cpus.len()));
        Attribution {
            options: Options { line_bytes: line, levels, ..options },
            ledger: Ledger::default(),
            insns: [Vec::new(), Vec::new(), Vec::new()],
            cpus,
            tasks,
            tracker: Tracker::new(data, MAX_OBJECTS),
            log: MapLog::default(),
            modes: [Row::default(); 3],
            nodes: Vec::new(),
            code: InsnRow::default(),
            stacks: FxHashMap::default(),
            visits: Visits::default(),
            stacks_full: false,
            repeats: Repeats::default(),
            sharing: SharedLines::default(),
            page_offsets: PageOffsets { bin_bytes: line, user: vec![0; bins], kernel: vec![0; bins] },
            stalls: StallSources { levels: vec![0; levels], ..StallSources::default() },
            user_pages: PageSet::default(),
            crowds,
            aliases,
            lost_events: 0,
            damaged_rings: 0,
        }
    }

    /// Who mapped what, when: names the run's instructions.
    pub fn map_log(&self) -> &MapLog {
        &self.log
    }

    fn seen(&self) -> u32 {
        self.insns.iter().map(Vec::len).max().unwrap_or(0) as u32
    }

    fn maps(&mut self, vcpu: usize, bytes: &[u8]) {
        let seen = self.seen();
        let cpu = &mut self.cpus[vcpu];
        let mut events = Vec::new();
        // What came before the damage is told all the same.
        let damaged = cpu.decoder.feed(bytes, |event| events.push(event)).is_err();
        self.damaged_rings += u64::from(damaged);
        for event in events {
            match &event {
                Event::Lost(count) => self.lost_events += count,
                // A CPU's ring tells of the task that runs on it.
                Event::Map { pid, .. } => self.tasks.assume(cpu.task, *pid, *pid),
                Event::Name { pid, tid, exec: true, .. } => self.tasks.assume(cpu.task, *tid, *pid),
                _ => {}
            }
            self.tasks.event(&event);
            self.tracker.event(&event, (cpu.context, cpu.user_context()));
            self.log.event(seen, &event);
        }
        cpu.pid = self.tasks.pid(cpu.task);
    }

    /// Counts what `record` met. `again`: it was counted as a reference before, only its effects are new.
    fn met(&mut self, vcpu: usize, record: Record, outcome: &Outcome, again: bool) {
        let cpu = &mut self.cpus[vcpu];
        if cpu.mode() != Mode::Command {
            self.ledger.add(&mut self.modes[cpu.mode() as usize], record, outcome);
            return;
        }
        let (kernel, pid) = (record.is_kernel(), cpu.pid);
        let mut met =
            Met { vcpu, task: cpu.task, context: cpu.context, object: None, again, record, outcome: *outcome };
        let transactions = ledger::transactions(outcome);
        if transactions > 0 {
            let bins = if kernel { &mut self.page_offsets.kernel } else { &mut self.page_offsets.user };
            let bin = (outcome.line_paddr % PAGE_BYTES) as usize / self.page_offsets.bin_bytes as usize;
            bins[bin] += transactions;
        }
        if record.kind() == Some(Kind::Fetch) {
            return self.count_or_add(&met);
        }
        if !kernel {
            self.user_pages.insert(record.physical_page());
        }
        let (object, start) = self.tracker.find(pid, record.vaddr(), record.physical_page());
        met.object = Some(object);
        self.count_or_add(&met);
        if let Some(crowds) = &mut self.crowds {
            crowds.met(vcpu, pid, object, record, outcome, &self.tracker);
        }
        if let Some(class) = sharing_class(outcome) {
            let line = record.paddr() & !u64::from(self.options.line_bytes - 1);
            let offset = (record.vaddr() & !u64::from(self.options.line_bytes - 1)).saturating_sub(start);
            self.sharing.missed(line, class, object, offset, record.insn().0);
        }
    }

    #[inline]
    fn count_or_add(&mut self, met: &Met) {
        if let Some((before, count)) = self.repeats.note(met) {
            if let Some((before, more)) = before {
                self.add(&before, more);
            }
            self.add(met, count);
        }
    }

    /// Adds misses that were counted, but for the first of their kind, to the tables.
    fn add_repeats(&mut self) {
        for (met, more) in self.repeats.drain() {
            self.add(&met, more);
        }
    }

    /// Adds misses to the tables in which like ones share their rows.
    fn add(&mut self, met: &Met, count: Count) {
        let Met { vcpu, task, context, object, again, record, ref outcome } = *met;
        let insn = row(&mut self.insns[Mode::Command as usize], record);
        let misses = &mut self.tasks.rows[task as usize].misses[usize::from(record.is_kernel())];
        for row in [&mut insn.misses, &mut self.cpus[vcpu].misses, misses] {
            self.ledger.add_all(row, record, outcome, count);
        }
        self.stall(outcome, count.stall_cycles);
        self.stack(context, record, outcome, count);
        let Some(object) = object else {
            return self.ledger.add_all(&mut self.code.misses, record, outcome, count);
        };
        let home = usize::from(outcome.home);
        if home >= self.nodes.len() {
            self.nodes.resize(home + 1, InsnRow::default());
        }
        self.ledger.add_all(&mut self.nodes[home].misses, record, outcome, count);
        self.tracker.objects.met(object, &mut self.ledger, record, outcome, count);
        if !again {
            self.nodes[home].references.count_all(record, count.times);
            self.tracker.objects.count(object, record, count.times);
        }
    }

    fn stall(&mut self, outcome: &Outcome, cycles: u64) {
        let levels = self.stalls.levels.len();
        let hit_level = outcome.missed.iter().take(levels).position(Option::is_none);
        let waited_for = if sharing_class(outcome).is_some()
            || outcome.read == Some(BusRead::LocalModified)
            || outcome.invalidated
        {
            &mut self.stalls.coherence
        } else {
            match (outcome.read, hit_level) {
                (Some(BusRead::Remote), _) => &mut self.stalls.memory_remote,
                (Some(_), _) => &mut self.stalls.memory_local,
                (None, Some(level)) if outcome.missed[0].is_some() => &mut self.stalls.levels[level],
                (None, _) => &mut self.stalls.other,
            }
        };
        *waited_for += cycles;
    }

    fn stack(&mut self, context: u32, record: Record, outcome: &Outcome, count: Count) {
        if outcome.missed.iter().all(Option::is_none) && count.stall_cycles == 0 {
            return;
        }
        let key = (context, record.insn().0);
        if self.stacks.len() >= MAX_STACKS && !self.stacks.contains_key(&key) {
            self.stacks_full = true;
            return;
        }
        let row = self.stacks.entry(key).or_default();
        for (misses, class) in row.misses.iter_mut().zip(outcome.missed) {
            *misses += count.times * u64::from(class.is_some());
        }
        row.stall_cycles += count.stall_cycles;
    }
}

/// The row of the instruction of `record`.
#[inline]
fn row(rows: &mut Vec<InsnRow>, record: Record) -> &mut InsnRow {
    let index = (record.insn().0 as usize).min(MAX_INSNS);
    if index >= rows.len() {
        rows.resize(index + 1, InsnRow::default());
    }
    &mut rows[index]
}

/// Whether it was a coherence miss at any level, and of which class.
fn sharing_class(outcome: &Outcome) -> Option<MissClass> {
    let shared = |c: &MissClass| matches!(c, MissClass::TrueSharing | MissClass::FalseSharing);
    outcome.missed.iter().flatten().copied().find(shared)
}

fn index(vcpu: u32, cpus: usize) -> usize {
    (vcpu as usize).min(cpus - 1)
}

impl Observer for Attribution {
    fn control(&mut self, vcpu: u32, control: &Control<'_>) {
        let vcpu = index(vcpu, self.cpus.len());
        let cpu = &mut self.cpus[vcpu];
        match control {
            Control::Switch { task, pid, tgid, outgoing, comm, usage, .. } => {
                cpu.settle(&mut self.tasks);
                cpu.report(&mut self.tasks, usage);
                self.tasks.was(cpu.task, *outgoing);
                cpu.switch_to(&mut self.tasks, *task, *pid, *tgid, comm);
                let seen = self.seen();
                self.log.task(seen, *task, *tgid);
            }
            Control::Mark { number, usage } => {
                cpu.settle(&mut self.tasks);
                cpu.report(&mut self.tasks, usage);
                if *number == MARK_BEGIN {
                    self.tasks.begin(cpu.task);
                }
            }
            Control::Irq(entered) => {
                cpu.settle(&mut self.tasks);
                cpu.interrupt(*entered);
            }
            Control::Context(context) => cpu.enter_context(*context, &mut self.visits),
            Control::Maps(bytes) => self.maps(vcpu, bytes),
            Control::Heap { op, address, size, old, alignment } => {
                let call = HeapCall { op: *op, address: *address, bytes: *size, old: *old, alignment: *alignment };
                let (pid, context) = (cpu.pid, cpu.context);
                self.tracker.heap(pid, context, call);
            }
            Control::Share { .. } | Control::Halt | Control::Fence => {}
        }
    }

    #[inline]
    fn hit(&mut self, met: &Effective) {
        let record = met.record;
        let vcpu = index(met.cpu, self.cpus.len());
        let cpu = &mut self.cpus[vcpu];
        row(&mut self.insns[cpu.mode() as usize], record).references.count(record);
        cpu.kernel = record.is_kernel();
        cpu.pending[usize::from(cpu.kernel)].count(record);
        cpu.visit(record.insn().0);
        if let Some(aliases) = self.aliases.as_mut().filter(|_| !cpu.kernel && cpu.mode() == Mode::Command) {
            aliases.met(vcpu, cpu.pid, met, &mut self.tracker);
        }
    }

    fn miss(&mut self, met: &Effective, outcome: &Outcome) {
        self.hit(met);
        self.met(index(met.cpu, self.cpus.len()), met.record, outcome, false);
    }

    // Instructions come from the tables beside the stream: what a record says of them belongs to whatever ran since the
    // last record, which may be another task.
    fn instructions(&mut self, _: u32, _: u64) {}

    fn drained(&mut self, last: &Effective, full: u8, partial: u8, home: u8) {
        let line_paddr = last.address & !u64::from(self.options.line_bytes - 1);
        let outcome = Outcome { nt_full: full, nt_partial: partial, home, line_paddr, ..Outcome::default() };
        let vcpu = index(last.cpu, self.cpus.len());
        self.met(vcpu, last.record, &outcome, true);
    }
}

impl Objects {
    fn limit_note(&self) -> Option<String> {
        self.full.then(|| format!("more than {MAX_OBJECTS} objects: later ones are counted as unattributed"))
    }
}
