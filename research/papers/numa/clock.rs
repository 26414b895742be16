//! The discrete-event simulation: CPUs that work, allocate memory, and wait for locks that others hold.
//!
//! The machine model gives the time of a piece of work; it gets the pieces in the order in which they begin. Two waits
//! that the model's recorded order leaves out are added here: CPUs that wait for one another on their node's bus (M/D/1
//! at the load that the other CPUs' present pieces put on it), and a lock's line on its way to the next holder past
//! those who spin on it.

use super::Kernel;
use super::chassis::{CPUS, Chassis, Piece};
use super::load::{Function, KERNEL_LOCK, Load, Step};
use super::memory::Memory;
use super::pools::{Class, Object, Pools};
use super::tasks::Tasks;
use crate::PaperError;
use nearmiss_record::model::BusTally;
use std::collections::VecDeque;

/// A queue's waiting time grows without bound at load 1; a CPU that waits sends less.
const MOST_BUS_LOAD: f64 = 0.95;
/// Instructions of an allocation or a free in a CPU's own cache (assumed).
const CACHE_INSTRUCTIONS: u64 = 100;
/// Counts of a simulation since [`Simulation::reset`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// Requests or transactions that were done.
    pub done: u64,
    /// Cycles of all CPUs by function; waits for locks are a function's.
    pub cycles: [u64; Function::ALL.len()],
    /// Transactions of all CPUs.
    pub bus: BusTally,
    /// Lock requests.
    pub lock_requests: u64,
    /// Lock requests that found it taken.
    pub contended: u64,
}

impl Counts {
    /// Cycles of one function, a request.
    pub fn of(&self, function: Function) -> f64 {
        self.each(self.cycles[function as usize])
    }

    /// Returns one request's part of a total.
    pub fn each(&self, all: u64) -> f64 {
        all as f64 / self.done.max(1) as f64
    }

    /// Cycles of user mode, a request.
    pub fn user(&self) -> f64 {
        self.of(Function::User)
    }

    /// Cycles of the kernel, a request.
    pub fn kernel(&self) -> f64 {
        self.total() - self.user()
    }

    /// Cycles, a request.
    pub fn total(&self) -> f64 {
        self.each(self.cycles.iter().sum())
    }

    /// Returns the sum of this run's counts and another's.
    pub fn plus(mut self, other: &Counts) -> Counts {
        self.done += other.done;
        self.cycles.iter_mut().zip(other.cycles).for_each(|(mine, theirs)| *mine += theirs);
        self.lock_requests += other.lock_requests;
        self.contended += other.contended;
        self.bus = sum(self.bus, other.bus);
        self
    }
}

fn sum(a: BusTally, b: BusTally) -> BusTally {
    BusTally {
        read_remote: a.read_remote + b.read_remote,
        read_local_none: a.read_local_none + b.read_local_none,
        read_local_shared: a.read_local_shared + b.read_local_shared,
        read_local_modified: a.read_local_modified + b.read_local_modified,
        write_backs: a.write_backs + b.write_backs,
        invalidations: a.invalidations + b.invalidations,
        nt_full: a.nt_full + b.nt_full,
        nt_partial: a.nt_partial + b.nt_partial,
    }
}

#[derive(Default)]
struct Cpu {
    at: u64,
    /// Since when it spins.
    waiting: Option<u64>,
    steps: VecDeque<Step>,
    task: usize,
    /// Share of the bus's time that its present piece takes.
    bus_load: f64,
}

#[derive(Default)]
struct Lock {
    taken: bool,
    waiters: VecDeque<usize>,
}

/// CPUs, locks and time.
pub struct Simulation {
    chassis: Chassis,
    memory: Memory,
    pools: Pools,
    tasks: Tasks,
    load: Load,
    cpus: Vec<Cpu>,
    locks: Vec<Lock>,
    counts: Counts,
}

impl Simulation {
    /// All CPUs begin with a task each.
    pub fn new(load: Load, kernel: Kernel, nodes: usize, seed: u64) -> Result<Self, PaperError> {
        let chassis = Chassis::new(nodes)?;
        let mut memory = Memory::new(nodes, seed);
        let pools = Pools::new(kernel, &chassis, &mut memory);
        let tasks = Tasks::new(&load, kernel, &chassis, &mut memory, seed);
        let cpu = |number: usize| Cpu { at: number as u64, task: number, ..Cpu::default() };
        Ok(Simulation {
            locks: (0..=nodes).map(|_| Lock::default()).collect(),
            cpus: (0..CPUS).map(cpu).collect(),
            counts: Counts::default(),
            chassis,
            memory,
            pools,
            tasks,
            load,
        })
    }

    /// Counting begins.
    pub fn reset(&mut self) {
        self.counts = Counts::default();
    }

    /// Until so many requests are done since the last [`Simulation::reset`].
    pub fn run(&mut self, requests: u64) -> Result<Counts, PaperError> {
        while self.counts.done < requests {
            let busy = (0..CPUS).filter(|&cpu| self.cpus[cpu].waiting.is_none());
            let cpu = busy.min_by_key(|&cpu| (self.cpus[cpu].at, cpu)).ok_or(PaperError::Stuck)?;
            self.step(cpu)?;
        }
        Ok(self.counts)
    }

    fn step(&mut self, cpu: usize) -> Result<(), PaperError> {
        match self.cpus[cpu].steps.pop_front() {
            None => {
                self.cpus[cpu].task = self.tasks.next(cpu, self.cpus[cpu].task);
                self.cpus[cpu].steps.extend(self.load.steps());
            }
            Some(Step::Done) => self.counts.done += 1,
            Some(Step::Take(lock)) => self.take(cpu, lock),
            Some(Step::Release(lock)) => self.release(cpu, lock),
            Some(Step::Request(class)) => {
                let pool = self.pools.allocation_pool(class, cpu, self.chassis.node(cpu));
                self.locked(cpu, pool, Step::Obtain(class));
            }
            Some(Step::Obtain(class)) => {
                let is_cached = self.pools.allocation_pool(class, cpu, self.chassis.node(cpu)).is_none();
                let object = self.pools.allocate(class, cpu, &mut self.chassis, &mut self.memory);
                self.tasks.hold(self.cpus[cpu].task, object);
                self.piece(cpu, Function::Kmalloc, self.allocator_instructions(is_cached))?;
            }
            Some(Step::Give(class)) => {
                if let Some(object) = self.tasks.let_go(self.cpus[cpu].task, class) {
                    self.free(cpu, object);
                }
            }
            Some(Step::Return(object)) => {
                let node = self.chassis.node(cpu);
                let is_cached = self.pools.free_pool(object, cpu, node, &self.memory).is_none();
                self.pools.release(object, cpu, &mut self.chassis, &self.memory);
                self.piece(cpu, Function::Kfree, self.allocator_instructions(is_cached))?;
            }
            Some(Step::Interrupt(packets)) => self.interrupt(cpu, packets),
            Some(Step::Deliver) => self.tasks.deliver(cpu, self.cpus[cpu].task),
            Some(Step::Receive) => self.receive(cpu)?,
            Some(Step::Sent(class)) => self.tasks.sent(cpu, self.cpus[cpu].task, class),
            Some(Step::Work(work)) => {
                let task = self.cpus[cpu].task;
                self.tasks.work(&work, cpu, task, &mut self.chassis, &mut self.memory);
                self.piece(cpu, work.function, work.instructions)?;
            }
        }
        Ok(())
    }

    /// Puts a step ahead of all others, behind the lock of a pool if it needs one.
    fn locked(&mut self, cpu: usize, pool: Option<usize>, step: Step) {
        let lock = pool.map(|pool| KERNEL_LOCK + 1 + self.pools.lock(pool));
        let steps = [lock.map(Step::Release), Some(step), lock.map(Step::Take)];
        steps.into_iter().flatten().for_each(|step| self.cpus[cpu].steps.push_front(step));
    }

    fn free(&mut self, cpu: usize, object: Object) {
        let pool = self.pools.free_pool(object, cpu, self.chassis.node(cpu), &self.memory);
        self.locked(cpu, pool, Step::Return(object));
    }

    /// Handles the network on the CPU: packets that came get memory, those that went give theirs back.
    fn interrupt(&mut self, cpu: usize, packets: u64) {
        for object in self.tasks.gone(cpu) {
            self.free(cpu, object);
        }
        for _ in 0..packets {
            let coming = [Step::Request(Class::Head), Step::Request(Class::Small), Step::Deliver];
            coming.into_iter().rev().for_each(|step| self.cpus[cpu].steps.push_front(step));
        }
    }

    fn receive(&mut self, cpu: usize) -> Result<(), PaperError> {
        let came = self.tasks.came(cpu);
        for object in &came {
            self.tasks.read(*object, &mut self.chassis);
        }
        self.piece(cpu, Function::Network, self.load.packet_instructions * came.len() as u64 / 2)?;
        for object in came {
            self.free(cpu, object);
        }
        Ok(())
    }

    fn take(&mut self, cpu: usize, lock: usize) {
        self.counts.lock_requests += 1;
        if self.locks[lock].taken {
            self.counts.contended += 1;
            self.locks[lock].waiters.push_back(cpu);
            self.cpus[cpu].waiting = Some(self.cpus[cpu].at);
            self.cpus[cpu].bus_load = 0.0;
        }
        self.locks[lock].taken = true;
    }

    fn release(&mut self, cpu: usize, lock: usize) {
        self.locks[lock].taken = false;
        let spinning = self.locks[lock].waiters.len() as u64;
        let Some(next) = self.locks[lock].waiters.pop_front() else { return };
        let machine = &self.chassis.machine;
        let is_near = self.chassis.node(cpu) == self.chassis.node(next);
        let latency = &machine.latency;
        let line = u64::from(if is_near { latency.core_modified_cycles } else { latency.remote_cache_cycles });
        self.locks[lock].taken = true;
        let at = self.cpus[cpu].at + line + spinning * u64::from(machine.bus.transaction_cycles);
        let since = self.cpus[next].waiting.take().unwrap_or(at);
        self.counts.cycles[Function::LockWait as usize] += at.saturating_sub(since);
        self.cpus[next].at = at;
    }

    /// Runs what was touched, as a part of a function.
    fn piece(&mut self, cpu: usize, function: Function, instructions: u64) -> Result<(), PaperError> {
        let piece = self.chassis.run(cpu, instructions)?;
        let cycles = self.with_bus(cpu, piece);
        self.counts.cycles[function as usize] += cycles;
        self.counts.bus = sum(self.counts.bus, piece.bus);
        self.cpus[cpu].at += cycles;
        Ok(())
    }

    /// A piece's cycles with what it waits for the transactions of the other CPUs of its node.
    fn with_bus(&mut self, cpu: usize, piece: Piece) -> u64 {
        let node = self.chassis.node(cpu);
        let beside = (0..CPUS).filter(|&other| other != cpu && self.chassis.node(other) == node);
        let load = beside.map(|other| self.cpus[other].bus_load).sum::<f64>().min(MOST_BUS_LOAD);
        let machine = &self.chassis.machine;
        let occupied = (piece.bus.transactions() * u64::from(machine.bus.transaction_cycles)) as f64;
        let waits = occupied * load / (2.0 * (1.0 - load)) * (1.0 - machine.overlap);
        let cycles = piece.cycles + waits as u64;
        self.cpus[cpu].bus_load = if cycles > 0 { (occupied / cycles as f64).min(1.0) } else { 0.0 };
        cycles
    }

    /// Instructions of `kmalloc` or `kfree`.
    fn allocator_instructions(&self, is_cached: bool) -> u64 {
        if is_cached { CACHE_INSTRUCTIONS } else { self.load.pool_instructions }
    }
}
