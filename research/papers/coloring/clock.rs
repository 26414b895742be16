//! The discrete-event simulation: CPUs that work, and wait for the run queue's lock while another holds it.
//!
//! The machine model gives the time of a piece of work or a walk; it gets the pieces in the order in which they begin.
//! Two waits that the model's recorded order leaves out are added here: CPUs that wait for one another on the bus
//! (M/D/1 at the load that the other CPUs' present pieces put on it), and the lock's line on its way to the next holder
//! past those who spin on it.

use super::queue::{RunQueue, Scheduled};
use super::server::{Piece, Server};
use crate::PaperError;
use nearmiss_record::machine::Machine;
use std::collections::VecDeque;

/// HZ = 100.
const TICKS_PER_SECOND: u64 = 100;
/// A queue's waiting time grows without bound at load 1; a CPU that waits sends less.
const MOST_BUS_LOAD: f64 = 0.95;

/// Step of a task between two calls of `schedule()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Runs the task's own work, as many parts in 1,000 of a usual one.
    Work(u64),
    /// Wakes a task.
    Wake(usize),
    /// Calls `schedule()`; true: the task blocks.
    Schedule(bool),
}

/// Work of the tasks.
pub trait Load {
    /// The stages of a task that got a CPU at `now`, `Schedule` last.
    fn stages(&mut self, now: u64, stages: &mut VecDeque<Stage>);
    /// A task went to sleep.
    fn blocked(&mut self, task: usize, now: u64);
    /// Touches what a piece of work touches; returns its instructions.
    fn work(&mut self, cpu: usize, parts: u64, server: &mut Server) -> u64;
}

/// Counts of a simulation since [`Simulation::reset`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Calls of `schedule()`.
    pub schedules: u64,
    /// Calls that found the lock taken.
    pub contended: u64,
    /// Slices that their tasks finished.
    pub slices: u64,
    /// Cycles that calls of `schedule()` waited for the lock.
    pub waited_cycles: u64,
    /// Cycles of `schedule()` with the lock, bus waits included.
    pub held_cycles: u64,
    /// The walks.
    pub walks: Piece,
    /// Everything.
    pub all: Piece,
    /// Cycles of own work, bus waits included.
    pub work_cycles: u64,
    /// When counting began.
    pub since: u64,
    /// The time now.
    pub now: u64,
}

impl Counts {
    /// Returns the sum of this run's counts and another's.
    pub fn plus(mut self, other: &Counts) -> Counts {
        self.walks.add(other.walks);
        self.all.add(other.all);
        Counts {
            schedules: self.schedules + other.schedules,
            contended: self.contended + other.contended,
            slices: self.slices + other.slices,
            waited_cycles: self.waited_cycles + other.waited_cycles,
            held_cycles: self.held_cycles + other.held_cycles,
            work_cycles: self.work_cycles + other.work_cycles,
            since: 0,
            now: self.elapsed_cycles() + other.elapsed_cycles(),
            ..self
        }
    }

    /// Cycles of the server's time.
    pub fn elapsed_cycles(&self) -> u64 {
        self.now - self.since
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// The next stage begins at `at`.
    Ready,
    /// Spins.
    Waiting,
    /// Releases the lock at `at`.
    Holding(usize),
    Idle,
}

struct Cpu {
    state: State,
    at: u64,
    task: Option<usize>,
    stages: VecDeque<Stage>,
    since: u64,
    next_tick: u64,
    /// Another task should have this CPU.
    preempted: bool,
    /// Share of the bus's time that its present piece takes.
    bus_load: f64,
}

#[derive(Default)]
struct Lock {
    taken: bool,
    waiters: VecDeque<usize>,
}

/// CPUs, locks and time.
pub struct Simulation<L> {
    pub(super) server: Server,
    pub(super) queue: RunQueue,
    pub(super) load: L,
    cpus: Vec<Cpu>,
    locks: Vec<Lock>,
    /// Remaining stages of tasks that lost their CPU.
    unfinished: Vec<VecDeque<Stage>>,
    tick_cycles: u64,
    transaction_cycles: u64,
    hand_over_cycles: u64,
    stalling_share: f64,
    counts: Counts,
}

impl<L: Load> Simulation<L> {
    /// All CPUs call `schedule()` first.
    pub fn new(machine: &Machine, server: Server, queue: RunQueue, load: L, cpus: usize) -> Self {
        let tick_cycles = u64::from(machine.clock_mhz) * 1_000_000 / TICKS_PER_SECOND;
        let cpu = |number: usize| Cpu {
            state: State::Ready,
            at: number as u64,
            task: None,
            stages: VecDeque::from([Stage::Schedule(false)]),
            since: 0,
            next_tick: tick_cycles * (number as u64 + 1) / cpus as u64,
            preempted: false,
            bus_load: 0.0,
        };
        Simulation {
            unfinished: vec![VecDeque::new(); queue.tasks()],
            server,
            queue,
            load,
            cpus: (0..cpus).map(cpu).collect(),
            locks: (0..cpus).map(|_| Lock::default()).collect(),
            tick_cycles,
            transaction_cycles: u64::from(machine.bus.transaction_cycles),
            hand_over_cycles: u64::from(machine.latency.core_modified_cycles),
            stalling_share: 1.0 - machine.overlap,
            counts: Counts::default(),
        }
    }

    /// Counting begins.
    pub fn reset(&mut self) {
        self.counts = Counts { since: self.counts.now, now: self.counts.now, ..Counts::default() };
    }

    /// Returns the counts.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Until so many slices were finished since the last [`Simulation::reset`].
    pub fn run(&mut self, slices: u64) -> Result<(), PaperError> {
        while self.counts.slices < slices {
            let busy = (0..self.cpus.len()).filter(|&c| !matches!(self.cpus[c].state, State::Waiting | State::Idle));
            let Some(cpu) = busy.min_by_key(|&c| (self.cpus[c].at, c)) else {
                return Err(PaperError::Stuck);
            };
            self.counts.now = self.counts.now.max(self.cpus[cpu].at);
            match self.cpus[cpu].state {
                State::Holding(lock) => self.release(cpu, lock)?,
                _ => self.next_stage(cpu)?,
            }
        }
        Ok(())
    }

    fn next_stage(&mut self, cpu: usize) -> Result<(), PaperError> {
        let front = self.cpus[cpu].stages.front().copied();
        if self.cpus[cpu].preempted && matches!(front, Some(Stage::Work(_) | Stage::Wake(_))) {
            self.cpus[cpu].stages.push_front(Stage::Schedule(false));
        }
        match self.cpus[cpu].stages.front().copied() {
            None => {
                let now = self.cpus[cpu].at;
                self.load.stages(now, &mut self.cpus[cpu].stages);
                Ok(())
            }
            Some(Stage::Work(parts)) => {
                self.cpus[cpu].stages.pop_front();
                let task = self.cpus[cpu].task.ok_or(PaperError::Stuck)?;
                while self.cpus[cpu].next_tick <= self.cpus[cpu].at {
                    self.queue.tick(task, &mut self.server);
                    self.cpus[cpu].next_tick += self.tick_cycles;
                }
                let instructions = self.load.work(cpu, parts, &mut self.server);
                let piece = self.server.run(cpu, instructions)?;
                self.counts.all.add(piece);
                let cycles = self.with_bus(cpu, piece);
                self.counts.work_cycles += cycles;
                self.cpus[cpu].at += cycles;
                Ok(())
            }
            Some(Stage::Wake(task)) => self.request_lock(cpu, self.queue.lock_of_wake(task)),
            Some(Stage::Schedule(_)) => self.request_lock(cpu, self.queue.lock_of_cpu(cpu)),
        }
    }

    fn request_lock(&mut self, cpu: usize, lock: usize) -> Result<(), PaperError> {
        let scheduling = matches!(self.cpus[cpu].stages.front(), Some(Stage::Schedule(_)));
        self.cpus[cpu].since = self.cpus[cpu].at;
        if scheduling {
            self.counts.schedules += 1;
            self.counts.contended += u64::from(self.locks[lock].taken);
        }
        if self.locks[lock].taken {
            self.locks[lock].waiters.push_back(cpu);
            self.cpus[cpu].state = State::Waiting;
            self.cpus[cpu].bus_load = 0.0;
            return Ok(());
        }
        self.hold(cpu, lock)
    }

    /// The CPU has the lock from `at` on.
    fn hold(&mut self, cpu: usize, lock: usize) -> Result<(), PaperError> {
        self.locks[lock].taken = true;
        let stage = self.cpus[cpu].stages.pop_front();
        let cycles = match stage {
            Some(Stage::Schedule(blocks)) => {
                self.counts.waited_cycles += self.cpus[cpu].at - self.cpus[cpu].since;
                let previous = self.cpus[cpu].task;
                let Scheduled { next, walk, held } = self.queue.schedule(cpu, previous, blocks, &mut self.server)?;
                let rest = std::mem::take(&mut self.cpus[cpu].stages);
                if let Some(task) = previous {
                    self.unfinished[task] = rest;
                }
                if let Some(task) = next {
                    self.cpus[cpu].stages = std::mem::take(&mut self.unfinished[task]);
                }
                self.cpus[cpu].preempted = false;
                self.cpus[cpu].task = next;
                if let Some(task) = previous.filter(|_| blocks) {
                    self.counts.slices += 1;
                    self.load.blocked(task, self.cpus[cpu].at);
                }
                self.counts.walks.add(walk);
                self.counts.all.add(held);
                let cycles = self.with_bus(cpu, held);
                self.counts.held_cycles += cycles;
                cycles
            }
            Some(Stage::Wake(task)) => {
                let mut piece = self.queue.wake(task, cpu, &mut self.server)?;
                let running: Vec<Option<usize>> = self.cpus.iter().map(|c| c.task).collect();
                let (target, cost) = self.queue.preempts(task, cpu, &running, &mut self.server)?;
                piece.add(cost);
                if let Some(target) = target.filter(|_| self.cpus.iter().all(|c| c.state != State::Idle)) {
                    self.cpus[target].preempted = true;
                }
                self.counts.all.add(piece);
                let cycles = self.with_bus(cpu, piece);
                let at = self.cpus[cpu].at + cycles;
                if let Some(idle) = self.cpus.iter_mut().find(|c| c.state == State::Idle) {
                    (idle.state, idle.at) = (State::Ready, at);
                    idle.stages.push_back(Stage::Schedule(false));
                }
                cycles
            }
            _ => 0,
        };
        self.cpus[cpu].state = State::Holding(lock);
        self.cpus[cpu].at += cycles;
        Ok(())
    }

    fn release(&mut self, cpu: usize, lock: usize) -> Result<(), PaperError> {
        let now = self.cpus[cpu].at;
        self.cpus[cpu].state =
            if self.cpus[cpu].task.is_none() && self.cpus[cpu].stages.is_empty() { State::Idle } else { State::Ready };
        self.cpus[cpu].bus_load = 0.0;
        self.locks[lock].taken = false;
        let spinning = self.locks[lock].waiters.len() as u64;
        if let Some(next) = self.locks[lock].waiters.pop_front() {
            self.cpus[next].at = now + self.hand_over_cycles + spinning * self.transaction_cycles;
            self.hold(next, lock)?;
        }
        Ok(())
    }

    /// A piece's cycles with what it waits for the other CPUs' transactions.
    fn with_bus(&mut self, cpu: usize, piece: Piece) -> u64 {
        let others: f64 = (0..self.cpus.len()).filter(|&c| c != cpu).map(|c| self.cpus[c].bus_load).sum();
        let load = others.min(MOST_BUS_LOAD);
        let occupied = (piece.transactions() * self.transaction_cycles) as f64;
        let waits = occupied * load / (2.0 * (1.0 - load)) * self.stalling_share;
        let cycles = piece.cycles + waits as u64;
        self.cpus[cpu].bus_load = if cycles > 0 { (occupied / cycles as f64).min(1.0) } else { 0.0 };
        cycles
    }
}
