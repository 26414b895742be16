//! Misses by owner: by code, call stack, object, task, CPU, node, set and page offset.
//!
//! [`Attribution`] observes a model while it replays and keeps compact counts; [`Attribution::into_record`] names and
//! adds up when the run is over. Work of other tasks, of the timer's interrupt handler ("ticks") and of idle CPUs is
//! counted apart and never part of the command's: [`crate::owner`] separates them.

mod alias_tables;
mod aliases;
mod balance;
mod blocks;
mod callers;
mod charged;
mod code_tables;
mod columns;
mod cpu;
mod crowd_tables;
mod crowds;
mod data_tables;
mod distances;
mod fields;
mod finish;
mod instructions;
mod kernel;
mod late_waits;
mod ledger;
mod names;
mod objects;
mod pages;
mod parts;
mod pressure;
mod remote;
mod repeats;
mod reuse;
mod sharing;
mod sharing_tables;
mod sites;
mod spaces;
mod spacing;
mod spread;
mod stack_tables;
mod stack_variables;
mod task_tables;
mod tasks;
mod touches;
mod tracker;
mod walks;

#[cfg(test)]
mod tests;

pub use alias_tables::{Alias, Party};
pub use crowd_tables::Crowd;
pub use fields::{ElementSize, ElementSizes, FieldUses, SizesByObject, UsedElements, UsedField};
pub use finish::ModelledRun;
pub use nearmiss_record::symbols::DataSymbols;
pub use remote::{Cause, PageRun, RemoteObject, RemoteReads};
pub use reuse::{HeapReuse, Reuse, ReuseWithin, ReusedObject};
pub use sites::Site;
pub use tracker::RecordedData;
pub use walks::{PageWalks, Reach, WalkedObject, Walks};

use crate::observer::{Effective, Mispredicted, Observer, Outcome};
use crate::owner::{Class, Owner, Running};
use aliases::Aliases;
use callers::Callers;
use columns::ColumnWalks;
use cpu::Cpu;
use crowds::Crowds;
use distances::Distances;
use ledger::{Count, InsnRow, Ledger, References, Row};
use nearmiss_code::CodeMap;
use nearmiss_record::abi::MAX_VCPUS;
use nearmiss_record::machine::{Machine, StoreAliasing};
use nearmiss_record::maps::{Event, MapLog};
use nearmiss_record::model::{MAX_LEVELS, PageOffsets};
use nearmiss_record::reference::{Control, Kind, Record, Usage};
use pages::PageSet;
use parts::Parts;
use pressure::Pressure;
use repeats::{Miss, Repeats};
use rustc_hash::FxHashMap;
use sharing::SharedLines;
use stack_tables::{StackCount, Visits};
use tasks::Tasks;
use tracker::{HeapCall, Tracker};

const PAGE_BYTES: u64 = 4096;
/// Instruction ids from here on are counted as one: no run has so many, a damaged file may claim so.
const MAX_INSNS: usize = 1 << 24;
/// Most rows of the object table while the run goes on.
const MAX_OBJECTS: usize = 1 << 20;
/// Most pairs of calling context and instruction that are kept apart.
const MAX_STACKS: usize = 1 << 20;

/// Options of an attribution.
#[derive(Clone, Debug)]
pub struct Options {
    /// CPUs of the guest.
    pub cpus: u32,
    /// Cache levels of the machine.
    pub levels: usize,
    /// Line size of the machine's first data cache in bytes, a power of two.
    pub line_bytes: u32,
    /// Machine of the data caches in which to find objects that crowd on few sets; `None`: do not look for them.
    pub crowds: Option<Machine>,
    /// Parameters of loads that wait for a store to the same offset of another page; `None`: do not look for them.
    pub aliasing: Option<StoreAliasing>,
}

/// Observes a model; see the module's text.
pub struct Attribution {
    options: Options,
    ledger: Ledger,
    /// Rows by [`Owner`], by instruction id; misses of the command and of others alone.
    insns: [Vec<InsnRow>; 4],
    cpus: Vec<Cpu>,
    running: Running,
    tasks: Tasks,
    tracker: Tracker,
    log: MapLog,
    /// Rows of idle and of ticks, by [`Owner`]; the others' are the sums of their instructions.
    apart: [Row; 4],
    nodes: Vec<InsnRow>,
    code: InsnRow,
    stacks: FxHashMap<(u32, u32), StackCount>,
    visits: Visits,
    stacks_full: bool,
    callers: Callers,
    repeats: Repeats,
    columns: ColumnWalks,
    distances: Distances,
    sharing: SharedLines,
    page_offsets: PageOffsets,
    pressure: Pressure,
    parts: Parts,
    /// Pages that user mode missed on.
    user_pages: PageSet,
    /// Instructions that tasks reported, by [`Class`], then user and kernel.
    reported: [[u64; 2]; 3],
    /// Kept references by the [`Class`] of the task that ran, then by their [`Owner`].
    kept_by: [[u64; 4]; 3],
    crowds: Option<Crowds>,
    aliases: Option<Aliases>,
    lost_events: u64,
    damaged_rings: u64,
    /// The code that ran, where cycles depend on it.
    codes: Option<CodeMap>,
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
        let crowds = options.crowds.as_ref().map(|machine| Crowds::new(machine, cpus.len()));
        let sharing = SharedLines::new(cpus.len());
        let aliases = options.aliasing.map(|aliasing| Aliases::new(aliasing, cpus.len()));
        let callers = Callers::new(cpus.len());
        Attribution {
            options: Options { line_bytes: line, levels, ..options },
            ledger: Ledger::default(),
            insns: Default::default(),
            running: Running::new(cpus.len()),
            cpus,
            tasks,
            tracker: Tracker::new(data, MAX_OBJECTS),
            log: MapLog::default(),
            apart: [Row::default(); 4],
            nodes: Vec::new(),
            code: InsnRow::default(),
            stacks: FxHashMap::default(),
            visits: Visits::default(),
            stacks_full: false,
            callers,
            repeats: Repeats::default(),
            columns: ColumnWalks::new(line),
            distances: Distances::new(line),
            sharing,
            page_offsets: PageOffsets { bin_bytes: line, user: vec![0; bins], kernel: vec![0; bins] },
            pressure: Pressure::new(levels),
            parts: Parts::new(levels),
            user_pages: PageSet::default(),
            reported: Default::default(),
            kept_by: Default::default(),
            crowds,
            aliases,
            lost_events: 0,
            damaged_rings: 0,
            codes: None,
        }
    }

    /// Mappings by process and time: they name the run's instructions.
    pub fn map_log(&self) -> &MapLog {
        &self.log
    }

    fn seen(&self) -> u32 {
        self.insns.iter().map(Vec::len).max().unwrap_or(0) as u32
    }

    fn maps(&mut self, vcpu: usize, bytes: &[u8]) {
        self.settle_all();
        let seen = self.seen();
        let mut events = Vec::new();
        let sound = self.running.maps(vcpu, bytes, |event| events.push(event));
        self.damaged_rings += u64::from(!sound);
        let cpu = &mut self.cpus[vcpu];
        for event in events {
            match &event {
                Event::Lost(count) => self.lost_events += count,
                // A CPU's ring describes the task that runs on it.
                Event::Map { pid, .. } => self.tasks.assume(cpu.task, *pid, *pid),
                Event::Name { pid, tid, exec: true, .. } => self.tasks.assume(cpu.task, *tid, *pid),
                _ => {}
            }
            self.tasks.event(&event);
            self.tracker.event(&event, (cpu.context, cpu.user_context()));
            self.log.event(seen, &event);
        }
        cpu.pid = self.tasks.pid(cpu.task);
        self.judge_tasks();
    }

    fn settle(&mut self, vcpu: usize) {
        let (cpu, owner) = (&mut self.cpus[vcpu], self.running.owner(vcpu));
        let class = self.running.class(vcpu) as usize;
        self.kept_by[class][owner as usize] += cpu.pending.iter().map(References::all).sum::<u64>();
        cpu.settle(&mut self.tasks, owner);
    }

    fn settle_all(&mut self) {
        (0..self.cpus.len()).for_each(|vcpu| self.settle(vcpu));
    }

    /// Moves running tasks to rows of their current owner.
    fn judge_tasks(&mut self) {
        for (vcpu, cpu) in self.cpus.iter_mut().enumerate() {
            cpu.task = self.tasks.belongs(cpu.task, self.running.class(vcpu) == Class::Command);
        }
    }

    /// Adds the running task's report of references that the filter dropped for it.
    fn report(&mut self, vcpu: usize, usage: &Usage) {
        let class = self.running.class(vcpu);
        self.reported[class as usize][0] += usage.user_instructions;
        self.reported[class as usize][1] += usage.kernel_instructions;
        self.cpus[vcpu].report(&mut self.tasks, class, usage);
    }

    /// Counts the outcome of `record`. `again`: it was counted as a reference before, only its effects are new.
    fn count_outcome(&mut self, vcpu: usize, record: Record, outcome: &Outcome, again: bool) {
        let cpu = &mut self.cpus[vcpu];
        match self.running.owner(vcpu) {
            Owner::Command => {}
            Owner::Others => return self.count_of_others(vcpu, record, outcome, Count::once(outcome)),
            apart => return self.ledger.add(&mut self.apart[apart as usize], record, outcome),
        }
        self.parts.add_stall(outcome);
        let (kernel, pid) = (record.is_kernel(), cpu.pid);
        if kernel {
            self.callers.waited(vcpu, outcome.stall_cycles.into());
        }
        self.pressure.count(record, outcome);
        let mut miss =
            Miss { vcpu, task: cpu.task, context: cpu.context, object: None, again, record, outcome: *outcome };
        let transactions = ledger::transactions(outcome);
        if transactions > 0 {
            let bins = if kernel { &mut self.page_offsets.kernel } else { &mut self.page_offsets.user };
            let bin = (outcome.line_paddr % PAGE_BYTES) as usize / self.page_offsets.bin_bytes as usize;
            bins[bin] += transactions;
        }
        if record.kind() == Some(Kind::Fetch) {
            if let Some(crowds) = &mut self.crowds {
                crowds.charge(None, pid, record, outcome, &self.tracker);
            }
            return self.count_or_add(&miss);
        }
        if !kernel {
            self.user_pages.insert(record.physical_page());
            if !again && outcome.missed[0].is_some() {
                self.columns.miss(vcpu, record, outcome.stall_cycles);
            }
        }
        let (object, start) = self.tracker.find(pid, record.vaddr(), record.physical_page());
        let piece = self.tracker.objects.piece(object, record.vaddr());
        if !again && outcome.missed[0].is_some() {
            self.distances.missed(piece, outcome.line_paddr);
        }
        miss.object = Some(piece);
        self.count_or_add(&miss);
        if let Some(crowds) = self.crowds.as_mut().filter(|_| !again) {
            crowds.charge(Some((object, start)), pid, record, outcome, &self.tracker);
        }
    }

    /// Counts a kept reference, whether it hit or missed.
    #[inline]
    fn reference(&mut self, reference: &Effective) {
        let record = reference.record;
        let vcpu = index(reference.cpu, self.cpus.len());
        let owner = self.running.owner(vcpu);
        let cpu = &mut self.cpus[vcpu];
        row(&mut self.insns[owner as usize], record).references.count(record);
        cpu.kernel = record.is_kernel();
        cpu.pending[usize::from(cpu.kernel)].count(record);
        if owner == Owner::Command {
            cpu.visit(record.insn().0);
            if !cpu.kernel {
                self.callers.user(vcpu, cpu.context, record);
            }
        }
        if let Some(aliases) = self.aliases.as_mut().filter(|_| !cpu.kernel && owner == Owner::Command) {
            aliases.reference(vcpu, cpu.pid, reference, &mut self.tracker);
        }
    }

    /// A reference of the command hit the first level, where it would have missed with its lines spread.
    fn missed_if_spread(&mut self, vcpu: usize, record: Record) {
        let pid = self.cpus[vcpu].pid;
        let (object, _) = self.tracker.find(pid, record.vaddr(), record.physical_page());
        if let Some(crowds) = &mut self.crowds {
            crowds.missed_if_spread(0, object);
        }
    }

    #[inline]
    fn count_or_add(&mut self, miss: &Miss) {
        if let Some((before, count)) = self.repeats.note(miss) {
            if let Some((before, more)) = before {
                self.add(&before, more);
            }
            self.add(miss, count);
        }
    }

    /// Adds misses that were counted, but for the first of their kind, to the tables.
    fn add_repeats(&mut self) {
        for (miss, more) in self.repeats.drain() {
            self.add(&miss, more);
        }
    }

    /// Adds misses to the tables in which like ones share their rows.
    fn add(&mut self, miss: &Miss, count: Count) {
        let Miss { vcpu, task, context, object, again, record, ref outcome } = *miss;
        let insn = row(&mut self.insns[Owner::Command as usize], record);
        let misses = &mut self.tasks.rows[task as usize].misses[usize::from(record.is_kernel())];
        for row in [&mut insn.misses, &mut self.cpus[vcpu].misses, misses] {
            self.ledger.add_all(row, record, outcome, count);
        }
        self.stack(context, record, outcome, count);
        let Some(object) = object else {
            return self.ledger.add_all(&mut self.code.misses, record, outcome, count);
        };
        let home = usize::from(outcome.home);
        if home >= self.nodes.len() {
            self.nodes.resize(home + 1, InsnRow::default());
        }
        self.ledger.add_all(&mut self.nodes[home].misses, record, outcome, count);
        self.tracker.objects.add_outcomes(object, &mut self.ledger, record, outcome, count);
        if !again {
            self.nodes[home].references.count_all(record, count.times);
            self.tracker.objects.count(object, record, count.times);
        }
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

fn index(vcpu: u32, cpus: usize) -> usize {
    (vcpu as usize).min(cpus - 1)
}

impl Observer for Attribution {
    fn ended(&mut self, codes: &mut Option<CodeMap>) {
        self.codes = codes.take();
    }

    fn control(&mut self, vcpu: u32, control: &Control<'_>) {
        let vcpu = index(vcpu, self.cpus.len());
        match control {
            Control::Switch { task, pid, tgid, outgoing, comm, usage, .. } => {
                self.settle(vcpu);
                self.report(vcpu, usage);
                self.tasks.was(self.cpus[vcpu].task, *outgoing);
                self.running.control(vcpu as u32, control);
                let row = self.tasks.known(*task, *pid, *tgid, comm);
                self.callers.switch(vcpu, self.cpus[vcpu].task, row);
                self.cpus[vcpu].switch_to(row, *tgid);
                self.judge_tasks();
                let seen = self.seen();
                self.log.task(seen, *task, *tgid);
            }
            Control::Mark { number, usage } => {
                self.parts.mark(*number);
                self.settle_all();
                self.report(vcpu, usage);
                self.running.control(vcpu as u32, control);
                self.judge_tasks();
            }
            Control::Irq(_) => {
                self.settle(vcpu);
                self.running.control(vcpu as u32, control);
            }
            Control::Context(context) => self.cpus[vcpu].enter_context(*context, &mut self.visits),
            Control::Maps(bytes) => self.maps(vcpu, bytes),
            Control::Heap { op, address, size, old, alignment } => {
                let call = HeapCall { op: *op, address: *address, bytes: *size, old: *old, alignment: *alignment };
                let cpu = &self.cpus[vcpu];
                self.tracker.heap(cpu.pid, cpu.context, call);
            }
            Control::Share { .. } | Control::Halt | Control::Fence | Control::Code(_) | Control::Branch { .. } => {}
        }
    }

    #[inline]
    fn hit(&mut self, reference: &Effective) {
        self.reference(reference);
        let vcpu = index(reference.cpu, self.cpus.len());
        let crowds = self.crowds.as_mut();
        let missed_if_spread = crowds.is_some_and(|crowds| crowds.hit(vcpu, reference));
        if missed_if_spread && self.running.owner(vcpu) == Owner::Command {
            self.missed_if_spread(vcpu, reference.record);
        }
        if self.sharing.may_watch(reference.address) {
            self.share(vcpu, reference);
        }
    }

    fn miss(&mut self, reference: &Effective, outcome: &Outcome) {
        let vcpu = index(reference.cpu, self.cpus.len());
        self.move_line(vcpu, reference, outcome);
        self.reference(reference);
        if self.sharing.may_watch(reference.address) {
            self.share(vcpu, reference);
        }
        if let Some(crowds) = &mut self.crowds {
            crowds.missed(vcpu, reference, outcome);
        }
        self.count_outcome(vcpu, reference.record, outcome, false);
    }

    // Those of the tables come from beside the stream: a record's count belongs to the code that ran since the last
    // record, which may be another task's.
    fn instructions(&mut self, vcpu: u32, instructions: u64) {
        if self.running.owner(index(vcpu, self.cpus.len())) == Owner::Command {
            self.parts.add_instructions(instructions);
        }
    }

    fn redirected(&mut self, branch: &Mispredicted, cycles: u32) {
        self.add_redirection(branch, cycles);
    }

    fn waited_for(&mut self, reference: &Effective, outcome: &Outcome, cycles: u32) {
        self.add_wait_for(reference, outcome, cycles);
    }

    fn drained(&mut self, last: &Effective, full: u8, partial: u8, home: u8) {
        let line_paddr = last.address & !u64::from(self.options.line_bytes - 1);
        let outcome = Outcome { nt_full: full, nt_partial: partial, home, line_paddr, ..Outcome::default() };
        let vcpu = index(last.cpu, self.cpus.len());
        self.count_outcome(vcpu, last.record, &outcome, true);
    }
}
