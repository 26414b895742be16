//! A stage ahead of the replay: takes a recorded stream apart by task, and puts the tasks on the CPUs that a policy names.
//!
//! A task's kept references are those to user addresses, be it by the kernel that copies for it: a kernel address is
//! often the recorded CPU's own. Beside those references go the task's calling contexts, fences and heap events. Tasks
//! that the policy does not name are left out, idle ones with them; those that it names are the command. Code goes out
//! with the next window, so ahead of all that executes it.
//!
//! All CPUs run at the same time, window by window of so many instructions. A number of records is no measure, since
//! the filter drops more of one task than of another. Tasks of one CPU follow one another there as they did when
//! recorded. A CPU with idle tasks so far is waited for until [`MOST_HELD`] records are held; then the others go on
//! without it. So memory is bounded, and a task that starts late joins the others there where they are.
//!
//! Or the CPUs have their turns as recorded ([`Turns::Recorded`]): each stay of a task on a vCPU is handled, in its
//! order, by the CPU of the task. Data that a task reads was then written before, which windows do not keep: only this
//! order shows who touches a page first.

use crate::model::options::{ModelError, ModelOptions, Position};
use crate::model::quick_map::QuickMap;
use crate::model::stream::instructions::Instructions;
use nearmiss_record::abi::ChunkHeader;
use nearmiss_record::machine::Machine;
use nearmiss_record::policy::{Bound, PlacePolicy, Placed, Policy};
use nearmiss_record::reference::{Control, ControlKind, Kind, Record, Usage};
use std::collections::VecDeque;

/// Most records held back, of all CPUs together; one recorded chunk more at times.
const MOST_HELD: usize = 1 << 22;

/// The mark at which the command begins, with an empty report.
fn begins() -> [Record; 4] {
    let mark = Record::control(ControlKind::Mark, 1, 0, 0);
    [mark, Record::default(), Record::default(), Record::default()]
}

/// A recorded vCPU.
#[derive(Clone, Debug, Default)]
struct Source {
    /// Thread that runs.
    pid: Option<u32>,
    context: u32,
    instructions: Instructions,
    /// Sum of the reports of usage.
    reported: u64,
    /// The latest reference was of the kind that is kept.
    kept: bool,
}

/// Records of a CPU in one window.
#[derive(Clone, Debug)]
struct Window {
    number: u64,
    /// Calling context in force when it begins.
    context: u32,
    records: Vec<Record>,
}

/// A CPU of the machine.
#[derive(Clone, Debug, Default)]
struct Lane {
    windows: VecDeque<Window>,
    /// Instructions of its tasks so far.
    instructions: u64,
    /// Instructions of these without a record yet.
    unrecorded: u64,
    /// Instructions of these in records that were given out.
    given_out: u64,
    /// The window that it executes next.
    next: u64,
    /// Task and calling context of the latest record.
    pid: Option<u32>,
    context: u32,
    /// Some task was placed here.
    is_used: bool,
    /// Instructions of the lane's tasks by the CPU that they were recorded on.
    by_source: Vec<u64>,
}

impl Lane {
    /// The window in which the latest instruction lies.
    fn now(&self, window: u64) -> u64 {
        self.instructions.saturating_sub(1) / window
    }

    /// Whether the next window is whole; at the end of the stream, whether there is one.
    fn is_ready(&self, window: u64, ended: bool) -> bool {
        let now = self.now(window);
        self.next < now || ended && self.next == now && (self.instructions > 0 || !self.windows.is_empty())
    }

    /// Counts instructions that the lane's task executed on a recorded vCPU.
    fn execute(&mut self, instructions: u64, vcpu: usize) {
        self.instructions += instructions;
        self.unrecorded += instructions;
        if let Some(there) = self.by_source.get_mut(vcpu) {
            *there += instructions;
        }
    }

    fn push(&mut self, record: Record, window: u64) {
        let number = self.now(window);
        match self.windows.back_mut().filter(|last| last.number == number) {
            Some(last) => last.records.push(record),
            None => self.windows.push_back(Window { number, context: self.context, records: vec![record] }),
        }
    }
}

/// Turns in which CPUs execute the windows that they hold.
#[derive(Clone, Debug)]
enum Turns {
    /// All at the same time, window by window.
    Windows,
    /// As recorded: the windows of one go out before another one holds any.
    Recorded {
        /// The CPU that holds something.
        holder: Option<usize>,
        /// Slice of the recorder.
        slice: u64,
        /// Goes out next.
        ready: VecDeque<(ChunkHeader, Vec<Record>)>,
    },
}

/// See the module's text.
#[derive(Clone, Debug)]
pub(in crate::model) struct Placing {
    turns: Turns,
    /// Instructions of a window; without windows, the most there are.
    window: u64,
    /// CPU by thread; none: the CPU that it was recorded on.
    cpu_of: QuickMap<u32, Option<usize>>,
    sources: Vec<Source>,
    lanes: Vec<Lane>,
    /// Latest records that started a thread, by thread.
    switches: QuickMap<u32, Vec<Record>>,
    /// Code that came since a window was given.
    code: Vec<Record>,
    held: usize,
    /// CPUs still in this turn.
    turn: VecDeque<usize>,
    /// Windows given out.
    given: u64,
}

impl Placing {
    /// Prepares the places of a policy; none where tasks stay on their recorded CPUs.
    pub fn of(machine: &Machine, policy: &Policy, options: &ModelOptions) -> Result<Option<Self>, ModelError> {
        let (recorded, cpus) = (options.cpus, machine.topology.cpus());
        match &policy.place {
            PlacePolicy::Recorded => Ok(None),
            PlacePolicy::Tasks { tasks, window_instructions } => {
                Placing::new(tasks, *window_instructions, recorded, cpus).map(Some)
            }
            PlacePolicy::InOrder { tasks } => Placing::in_order(tasks, recorded, cpus).map(Some),
        }
    }

    /// For a recording of so many CPUs on a machine of so many. Refuses, in one sentence, what makes no sense.
    pub fn new(tasks: &[Placed], window: u64, recorded: u32, cpus: u32) -> Result<Self, ModelError> {
        if window == 0 || tasks.is_empty() {
            let why = "place: no task, or windows of no instructions; give at least one of each";
            return Err(ModelError::Refused(why.into()));
        }
        let tasks = tasks.iter().map(|task| (task.pid, Some(task.cpu)));
        Self::with(Turns::Windows, window, tasks, recorded, cpus)
    }

    /// Prepares for the recorded order.
    pub fn in_order(tasks: &[Bound], recorded: u32, cpus: u32) -> Result<Self, ModelError> {
        if recorded > cpus {
            let why = format!("place: recorded on {recorded} CPUs, which a machine of {cpus} has not all");
            return Err(ModelError::Refused(why));
        }
        let turns = Turns::Recorded { holder: None, slice: 0, ready: VecDeque::new() };
        Self::with(turns, u64::MAX, tasks.iter().map(|task| (task.pid, task.cpu)), recorded, cpus)
    }

    fn with(
        turns: Turns,
        window: u64,
        tasks: impl Iterator<Item = (u32, Option<u32>)>,
        recorded: u32,
        cpus: u32,
    ) -> Result<Self, ModelError> {
        let refused = |why: String| Err(ModelError::Refused(why));
        let lane = Lane { by_source: vec![0; recorded as usize], ..Lane::default() };
        let mut lanes = vec![lane; cpus as usize];
        let mut cpu_of = QuickMap::default();
        for (pid, cpu) in tasks {
            match cpu.map(|cpu| (cpu, lanes.get_mut(cpu as usize))) {
                Some((cpu, None)) => {
                    return refused(format!(
                        "place: task {pid} on CPU {cpu} of a machine of {cpus}; name one from 0 on"
                    ));
                }
                Some((_, Some(lane))) => lane.is_used = true,
                None => {}
            }
            if cpu_of.insert(pid, cpu.map(|cpu| cpu as usize)).is_some() {
                return refused(format!("place: task {pid} is named twice; a task runs on one CPU"));
            }
        }
        let sources = vec![Source::default(); recorded as usize];
        let (switches, code) = (QuickMap::default(), Vec::new());
        Ok(Placing { turns, window, cpu_of, sources, lanes, switches, code, held: 0, turn: VecDeque::new(), given: 0 })
    }

    /// Takes a recorded chunk.
    pub fn take(&mut self, header: &ChunkHeader, records: &[Record]) -> Result<(), ModelError> {
        if let Turns::Recorded { slice, .. } = &mut self.turns {
            *slice = header.slice;
        }
        let vcpu = header.vcpu as usize;
        self.sources[vcpu].context = header.context;
        let mut at = 0;
        while let Some(&record) = records.get(at) {
            let here = Position { chunk: header.seq, record: at };
            if record.kind() == Some(Kind::Control) {
                let group = here.group(records)?;
                self.control(vcpu, group, here)?;
                at += group.len();
            } else {
                self.reference(vcpu, record);
                at += 1;
            }
        }
        self.executed(vcpu, header.instructions);
        self.hold(None);
        Ok(())
    }

    /// In the recorded order, a CPU holds windows from here on: those of another one go out.
    fn hold(&mut self, cpu: Option<usize>) {
        let Turns::Recorded { holder, .. } = &mut self.turns else { return };
        if *holder == cpu {
            return;
        }
        let before = std::mem::replace(holder, cpu);
        let given = before.map(|before| self.give(before));
        if let Turns::Recorded { ready, .. } = &mut self.turns {
            ready.extend(given);
        }
    }

    /// Notes that a vCPU executed so many instructions in all: those without a record yet are its present task's.
    fn executed(&mut self, vcpu: usize, total: u64) {
        let rest = self.sources[vcpu].instructions.chunk(total);
        if let Some(cpu) = self.lane_of(vcpu).filter(|_| self.sources[vcpu].kept) {
            self.lanes[cpu].execute(rest, vcpu);
        }
    }

    /// Handles a report of the task that leaves, or goes on.
    fn leave(&mut self, vcpu: usize, usage: Usage) {
        let reported = usage.user_instructions.saturating_add(usage.kernel_instructions);
        self.sources[vcpu].reported = self.sources[vcpu].reported.saturating_add(reported);
        self.executed(vcpu, self.sources[vcpu].reported);
    }

    /// The CPU of the task that runs on a vCPU.
    fn lane_of(&self, vcpu: usize) -> Option<usize> {
        self.cpu_of.get(&self.sources[vcpu].pid?).map(|cpu| cpu.unwrap_or(vcpu))
    }

    fn reference(&mut self, vcpu: usize, record: Record) {
        let source = &mut self.sources[vcpu];
        let new = source.instructions.record(record.instructions());
        source.kept = record.vaddr() >> 63 == 0;
        let (kept, context) = (source.kept, source.context);
        let Some(cpu) = self.lane_of(vcpu).filter(|_| kept) else { return };
        self.enter(cpu, vcpu);
        let lane = &mut self.lanes[cpu];
        lane.execute(new, vcpu);
        if lane.context != context {
            lane.context = context;
            lane.push(Record::control(ControlKind::Context, context.into(), 0, 0), self.window);
            self.held += 1;
        }
        let counted = lane.unrecorded.min(255);
        lane.unrecorded -= counted;
        lane.push(record.with_instructions(counted as u8), self.window);
        self.held += 1;
    }

    /// Adds the start of a lane's current task, if it is another one.
    fn enter(&mut self, cpu: usize, vcpu: usize) {
        self.hold(Some(cpu));
        let (pid, lane) = (self.sources[vcpu].pid, &mut self.lanes[cpu]);
        if lane.pid == pid {
            return;
        }
        lane.pid = pid;
        for record in pid.and_then(|pid| self.switches.get(&pid)).into_iter().flatten() {
            lane.push(*record, self.window);
            self.held += 1;
        }
    }

    fn control(&mut self, vcpu: usize, group: &[Record], here: Position) -> Result<(), ModelError> {
        let control = Control::decode(group[0], &group[1..]).map_err(|what| here.bad(what))?;
        match control {
            Control::Switch { pid, usage, .. } => {
                self.leave(vcpu, usage);
                self.sources[vcpu].pid = Some(pid);
                let mut start = group.to_vec();
                // The counts of dropped references were made for another order of tasks.
                start[3..].fill(Record::default());
                start[1].b = 0;
                start.extend(begins());
                self.switches.insert(pid, start);
            }
            Control::Mark { usage, .. } => self.leave(vcpu, usage),
            Control::Context(context) => self.sources[vcpu].context = context,
            Control::Heap { .. } | Control::Fence | Control::Branch { .. } => {
                if let Some(cpu) = self.lane_of(vcpu) {
                    self.enter(cpu, vcpu);
                    group.iter().for_each(|record| self.lanes[cpu].push(*record, self.window));
                    self.held += group.len();
                }
            }
            Control::Code(_) => {
                self.code.extend_from_slice(group);
                self.held += group.len();
            }
            _ => {}
        }
        Ok(())
    }

    /// Code that came since it was taken or a window was given.
    pub fn take_code(&mut self) -> Vec<Record> {
        self.held -= self.code.len();
        std::mem::take(&mut self.code)
    }

    /// Returns the records that start a task; none if it never ran.
    pub fn begins(&self, pid: u32) -> Vec<Record> {
        self.switches.get(&pid).cloned().unwrap_or_default()
    }

    /// Instructions of the tasks on a task's CPU, by the CPU that they were recorded on.
    pub fn executed_on(&self, pid: u32) -> Vec<u64> {
        let cpu = self.cpu_of.get(&pid).copied().flatten();
        cpu.map_or_else(Vec::new, |cpu| self.lanes[cpu].by_source.clone())
    }

    /// The next window to be executed, if all that it must wait for is there; `ended`: nothing more comes.
    pub fn next(&mut self, ended: bool) -> Option<(ChunkHeader, Vec<Record>)> {
        if let Turns::Recorded { ready, .. } = &mut self.turns {
            if let Some(next) = ready.pop_front() {
                return Some(next);
            }
            // Instructions behind a CPU's last record.
            let late = self.lanes.iter().position(|lane| ended && lane.given_out < lane.instructions)?;
            return Some(self.give(late));
        }
        if self.turn.is_empty() {
            let lanes = self.lanes.iter().enumerate();
            self.turn = lanes.filter(|(_, lane)| lane.is_ready(self.window, ended)).map(|(cpu, _)| cpu).collect();
            let wanted = self.lanes.iter().filter(|lane| lane.is_used).count();
            if self.turn.len() < wanted && self.held < MOST_HELD && !ended {
                self.turn.clear();
            }
        }
        let cpu = self.turn.pop_front()?;
        Some(self.give(cpu))
    }

    /// The next window of a CPU, or in the recorded order all that it holds; no records where nothing of it was kept.
    fn give(&mut self, cpu: usize) -> (ChunkHeader, Vec<Record>) {
        let slice = match self.turns {
            Turns::Windows => self.given,
            Turns::Recorded { slice, .. } => slice,
        };
        let lane = &mut self.lanes[cpu];
        let has_records = lane.windows.front().is_some_and(|front| front.number == lane.next);
        let window = if has_records { lane.windows.pop_front() } else { None };
        let (context, mut records) =
            window.map_or((lane.context, Vec::new()), |window| (window.context, window.records));
        records.splice(0..0, self.code.drain(..));
        // Without windows all is the first one.
        lane.next += u64::from(self.window < u64::MAX);
        lane.given_out = lane.instructions.min(lane.next.max(1).saturating_mul(self.window));
        let header = ChunkHeader {
            seq: self.given,
            slice,
            vcpu: cpu as u32,
            records: records.len() as u32,
            instructions: lane.given_out,
            context,
            ..ChunkHeader::default()
        };
        self.held -= records.len();
        self.given += 1;
        (header, records)
    }
}
