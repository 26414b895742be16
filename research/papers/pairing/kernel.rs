//! The scheduler of Linux 2.6.3, as far as tasks of one priority see it: a run queue for each CPU with an active and an
//! expired array, time slices counted in ticks of a millisecond, and `load_balance()`.
//!
//! Its decisions go past a [`Desk`], where a policy may decide otherwise.

use std::collections::VecDeque;

/// HZ = 1000.
pub const TICKS_PER_SECOND: u64 = 1000;
/// The slice of a task of nice 0: 10 + (200 − 10) × 19 / 39 ticks.
pub const SLICE_TICKS: u32 = 102;
/// A busy CPU looks for a longer queue than its own so often, an idle one each tick.
const BUSY_REBALANCE_TICKS: u64 = 200;
/// A task that left its CPU this lately is "cache-hot", and a busy CPU does not pull it: 512 KB at 350 MB/s, and one tick.
const CACHE_DECAY_TICKS: u64 = 2;
/// Hardware threads of a core.
pub const THREADS: usize = 2;

/// Decisions that the kernel leaves to a policy.
pub trait Desk {
    /// `schedule()` begins on a CPU of this core; these tasks were running on its hardware threads.
    fn switching(&mut self, core: usize, running: [Option<usize>; THREADS]);
    /// The task to run next: the one picked, or another of the active array.
    fn next(&mut self, core: usize, picked: usize, beside: Option<usize>, active: &VecDeque<usize>) -> usize;
    /// Tasks that may migrate from one core to another (or the same), in the order in which they go.
    fn migrating(&mut self, from: usize, to: usize, tasks: &mut Vec<usize>);
}

#[derive(Clone, Debug, Default)]
struct Task {
    slice: u32,
    /// When it last left a CPU.
    left: u64,
    cpu: usize,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    active: VecDeque<usize>,
    expired: VecDeque<usize>,
    /// In the active array while it runs.
    running: Option<usize>,
    /// Lengths of all queues when this CPU last looked: a busy CPU counts a long queue only if it sees it twice.
    seen: Vec<usize>,
    /// Ticks for which a daemon has the CPU.
    daemon: u32,
}

impl Queue {
    fn length(&self) -> usize {
        self.active.len() + self.expired.len() + usize::from(self.daemon > 0)
    }

    fn remove(&mut self, task: usize) {
        self.active.retain(|other| *other != task);
        self.expired.retain(|other| *other != task);
    }
}

/// Run queues and tasks.
#[derive(Clone, Debug)]
pub struct Kernel {
    queues: Vec<Queue>,
    tasks: Vec<Task>,
    now: u64,
    /// Calls of `schedule()`.
    pub schedules: u64,
}

impl Kernel {
    /// CPUs without tasks; the clock of ticks begins at `now`.
    pub fn new(cpus: usize, now: u64) -> Self {
        let queue = Queue { seen: vec![0; cpus], ..Queue::default() };
        Kernel { queues: vec![queue; cpus], tasks: Vec::new(), now, schedules: 0 }
    }

    /// A task makes `number` others on a CPU, each with half of what is left of its own slice, and waits for their end.
    pub fn fork(&mut self, cpu: usize, number: usize, mut slice: u32) {
        for _ in 0..number {
            let task = self.tasks.len();
            self.tasks.push(Task { slice: slice.div_ceil(2).max(1), left: self.now, cpu });
            self.queues[cpu].active.push_back(task);
            slice /= 2;
            if slice == 0 {
                slice = SLICE_TICKS;
            }
        }
    }

    /// A task with a whole slice on a CPU.
    pub fn place(&mut self, cpu: usize) {
        self.tasks.push(Task { slice: SLICE_TICKS, left: self.now, cpu });
        self.queues[cpu].active.push_back(self.tasks.len() - 1);
    }

    /// A daemon wakes on a CPU and goes ahead of all others for some ticks.
    pub fn wake_daemon(&mut self, cpu: usize, ticks: u32) {
        self.queues[cpu].daemon += ticks;
    }

    /// Returns how many CPUs there are.
    pub fn cpus(&self) -> usize {
        self.queues.len()
    }

    /// The task that has a CPU; none while a daemon has it.
    pub fn running(&self, cpu: usize) -> Option<usize> {
        let queue = &self.queues[cpu];
        if queue.daemon > 0 { None } else { queue.running }
    }

    /// The tasks on a core's hardware threads.
    pub fn running_on(&self, core: usize) -> [Option<usize>; THREADS] {
        std::array::from_fn(|thread| self.running(core * THREADS + thread))
    }

    /// Returns the CPU of the queue that a task is on.
    pub fn cpu_of(&self, task: usize) -> usize {
        self.tasks[task].cpu
    }

    /// Tasks on a CPU's queue.
    pub fn tasks_of(&self, cpu: usize) -> impl Iterator<Item = usize> {
        let queue = &self.queues[cpu];
        queue.active.iter().chain(&queue.expired).copied()
    }

    /// A tick on all CPUs.
    pub fn tick(&mut self, desk: &mut dyn Desk) {
        self.now += 1;
        for cpu in 0..self.queues.len() {
            self.tick_of(cpu, desk);
        }
    }

    fn tick_of(&mut self, cpu: usize, desk: &mut dyn Desk) {
        let busy = self.now.is_multiple_of(BUSY_REBALANCE_TICKS);
        if self.queues[cpu].daemon > 0 {
            self.queues[cpu].daemon -= 1;
            if busy {
                self.balance(cpu, false, desk);
            }
            return;
        }
        let Some(task) = self.queues[cpu].running else {
            self.schedule(cpu, desk);
            return;
        };
        self.tasks[task].slice -= 1;
        let expired = self.tasks[task].slice == 0;
        if expired {
            self.tasks[task].slice = SLICE_TICKS;
            self.queues[cpu].remove(task);
            self.queues[cpu].expired.push_back(task);
        }
        if busy {
            self.balance(cpu, false, desk);
        }
        if expired {
            self.schedule(cpu, desk);
        }
    }

    /// `schedule()`: the first of the active array runs, unless the desk picks another of it.
    fn schedule(&mut self, cpu: usize, desk: &mut dyn Desk) {
        if self.queues[cpu].active.is_empty() && self.queues[cpu].expired.is_empty() {
            self.balance(cpu, true, desk);
        }
        let core = cpu / THREADS;
        let before = self.running_on(core);
        if let Some(task) = self.queues[cpu].running {
            self.tasks[task].left = self.now;
        }
        let queue = &mut self.queues[cpu];
        queue.running = None;
        if queue.active.is_empty() {
            std::mem::swap(&mut queue.active, &mut queue.expired);
        }
        let Some(picked) = queue.active.front().copied() else { return };
        self.schedules += 1;
        desk.switching(core, before);
        let beside = self.running(cpu ^ 1);
        let queue = &mut self.queues[cpu];
        queue.running = Some(desk.next(core, picked, beside, &queue.active));
    }

    /// `load_balance()`: pulls from the longest queue half of what it has more.
    fn balance(&mut self, cpu: usize, idle: bool, desk: &mut dyn Desk) {
        let Some((busiest, more)) = self.busiest(cpu, idle) else { return };
        let mut tasks = self.may_migrate(busiest, idle);
        desk.migrating(busiest / THREADS, cpu / THREADS, &mut tasks);
        // The kernel counts down before it checks whether anything is left to pull: half of one is none, and all go.
        let mut left = more as isize / 2;
        for task in tasks {
            self.pull(task, cpu);
            left -= 1;
            if idle || left == 0 {
                break;
            }
        }
    }

    /// `find_busiest_queue()`.
    fn busiest(&mut self, cpu: usize, idle: bool) -> Option<(usize, usize)> {
        let lengths: Vec<usize> = self.queues.iter().map(Queue::length).collect();
        let seen = std::mem::replace(&mut self.queues[cpu].seen, lengths.clone());
        let own = if idle { lengths[cpu] } else { lengths[cpu].max(seen[cpu]) };
        let load = |other: usize| if idle { lengths[other] } else { lengths[other].min(seen[other]) };
        let mut busiest: Option<usize> = None;
        let mut most = 1;
        for other in 0..lengths.len() {
            if load(other) > most && other != cpu {
                (busiest, most) = (Some(other), load(other));
            }
        }
        let more = most.checked_sub(own)?;
        let is_worth_it = (idle || more * 4 >= most) && lengths[busiest?] > own;
        busiest.filter(|_| is_worth_it).map(|other| (other, more))
    }

    /// Expired tasks first, each array from its end, without what runs or is cache-hot.
    fn may_migrate(&self, cpu: usize, idle: bool) -> Vec<usize> {
        let queue = &self.queues[cpu];
        let is_cold = |task: usize| idle || self.now - self.tasks[task].left > CACHE_DECAY_TICKS;
        let from_the_end = queue.expired.iter().rev().chain(queue.active.iter().rev()).copied();
        from_the_end.filter(|task| queue.running != Some(*task) && is_cold(*task)).collect()
    }

    fn pull(&mut self, task: usize, to: usize) {
        let from = std::mem::replace(&mut self.tasks[task].cpu, to);
        self.queues[from].remove(task);
        self.queues[to].active.push_back(task);
    }

    /// Two tasks of different CPUs change places: each takes the other's place in its queue, and runs if the other ran.
    pub fn swap(&mut self, a: usize, b: usize, desk: &mut dyn Desk) {
        let (of_a, of_b) = (self.tasks[a].cpu, self.tasks[b].cpu);
        if of_a == of_b {
            return;
        }
        let cores = [of_a / THREADS, of_b / THREADS];
        for core in if cores[0] == cores[1] { &cores[..1] } else { &cores[..] } {
            desk.switching(*core, self.running_on(*core));
        }
        for (cpu, leaves, comes) in [(of_a, a, b), (of_b, b, a)] {
            let queue = &mut self.queues[cpu];
            let slots = queue.active.iter_mut().chain(&mut queue.expired).chain(&mut queue.running);
            slots.filter(|slot| **slot == leaves).for_each(|slot| *slot = comes);
            self.tasks[comes].cpu = cpu;
        }
    }

    /// A task goes to a CPU, at the end of its active array.
    pub fn migrate(&mut self, task: usize, to: usize, desk: &mut dyn Desk) {
        let from = self.tasks[task].cpu;
        if from == to {
            return;
        }
        if self.queues[from].running == Some(task) {
            desk.switching(from / THREADS, self.running_on(from / THREADS));
            self.queues[from].running = None;
        }
        self.pull(task, to);
    }

    /// A task ends.
    pub fn end(&mut self, task: usize, desk: &mut dyn Desk) {
        let cpu = self.tasks[task].cpu;
        if self.queues[cpu].running == Some(task) {
            desk.switching(cpu / THREADS, self.running_on(cpu / THREADS));
            self.queues[cpu].running = None;
        }
        self.queues[cpu].remove(task);
    }
}
