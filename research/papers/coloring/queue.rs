//! Linux 2.4's run queue and scheduler, and the O(1) scheduler's queues: which lines they read and write.
//!
//! `task_struct` of 2.4.4 on IA-32 (P0, figure 3): `counter`, `nice`, `policy`, `mm`, `has_cpu`, `processor` and
//! `run_list.next` lie at offset 0x20 to 0x3F, `run_list.prev` right behind.

use super::Kernel;
use super::server::{Piece, Server};
use crate::PaperError;
use nearmiss_color::Coloring;
use nearmiss_record::reference::Kind;
use std::collections::VecDeque;

/// Offset of the fields that `schedule()` reads in a task structure.
const WALKED: u64 = 0x20;
/// Offset of `run_list.prev`.
const LINK: u64 = 0x40;
/// Instructions that the walk spends on a task: `goodness()`, inlined, and the list. Assumed.
const VISIT_INSTRUCTIONS: u64 = 16;
/// Instructions of `schedule()` beside the walk, the switch included. Assumed.
const SCHEDULE_INSTRUCTIONS: u64 = 400;
/// Instructions of `try_to_wake_up()` under the lock. Assumed.
const WAKE_INSTRUCTIONS: u64 = 100;
/// Bonus of `goodness()` for the same CPU on SMP IA-32 (2.4's `PROC_CHANGE_PENALTY`).
const SAME_CPU_BONUS: u64 = 15;
/// `runqueue_head`, on a line of its own in the kernel's data.
const HEAD_ADDRESS: u64 = 0x30_0000;
/// `aligned_data`: a line for each CPU's current task and time of its last switch.
const CPU_DATA_ADDRESS: u64 = 0x32_0000;
/// Instructions that `reschedule_idle()` spends on a CPU. Assumed.
const PREEMPT_INSTRUCTIONS: u64 = 30;
/// The O(1) scheduler's per-CPU queues.
const CPU_QUEUES_ADDRESS: u64 = 0x31_0000;
/// Instructions that new quanta cost a task. Assumed.
const RENEW_INSTRUCTIONS: u64 = 8;
/// Ticks of a new quantum (2.4, HZ = 100, nice 0).
const NICE_TICKS: u64 = 6;

/// A place in a list; the head is the last.
type ListIndex = usize;

/// Work of one `schedule()`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scheduled {
    /// Task that runs next.
    pub next: Option<usize>,
    /// The loop over the queue alone.
    pub walk: Piece,
    /// All that was done under the lock, the walk included.
    pub held: Piece,
}

/// All tasks, and which of them may run.
pub struct RunQueue {
    kernel: Kernel,
    /// Physical address of each task structure, colored or not.
    tasks: Vec<u64>,
    counter: Vec<u64>,
    last_cpu: Vec<usize>,
    on_cpu: Vec<bool>,
    queued: Vec<bool>,
    next: Vec<ListIndex>,
    prev: Vec<ListIndex>,
    length: usize,
    cpu_queues: Vec<VecDeque<usize>>,
}

impl RunQueue {
    /// Tasks in these stacks, none of them runnable. `way_bytes`: what one way of the second level covers; the color
    /// comes from the address bits above (P0, section 3.2).
    pub fn new(kernel: Kernel, stacks: &[u64], way_bytes: u64, cpus: usize) -> Result<Self, PaperError> {
        let tasks = match kernel {
            Kernel::Colored(colors) => {
                let coloring = Coloring::from_bit(8192, 32, colors as usize, way_bytes.max(8192).ilog2())
                    .ok_or(PaperError::Colors(colors))?;
                stacks.iter().map(|&stack| coloring.object(stack as usize) as u64).collect()
            }
            Kernel::Standard | Kernel::Constant => stacks.to_vec(),
        };
        let count = tasks.len();
        Ok(RunQueue {
            kernel,
            tasks,
            counter: vec![NICE_TICKS; count],
            last_cpu: (0..count).map(|task| task % cpus).collect(),
            on_cpu: vec![false; count],
            queued: vec![false; count],
            next: (0..=count).map(|_| count).collect(),
            prev: (0..=count).map(|_| count).collect(),
            length: 0,
            cpu_queues: vec![VecDeque::new(); cpus],
        })
    }

    /// Runnable tasks, running ones included (2.4 keeps them on the queue).
    pub fn length(&self) -> usize {
        self.length
    }

    /// All tasks.
    pub fn tasks(&self) -> usize {
        self.tasks.len()
    }

    /// Returns the lock that guards what a task's wake-up changes.
    pub fn lock_of_wake(&self, task: usize) -> usize {
        if self.kernel == Kernel::Constant { self.last_cpu[task] } else { 0 }
    }

    /// Returns the lock that guards a CPU's `schedule()`.
    pub fn lock_of_cpu(&self, cpu: usize) -> usize {
        if self.kernel == Kernel::Constant { cpu } else { 0 }
    }

    /// Returns whether a task is runnable.
    pub fn runnable(&self, task: usize) -> bool {
        self.queued[task]
    }

    fn next_address(&self, place: ListIndex) -> u64 {
        self.tasks.get(place).map_or(HEAD_ADDRESS, |task| task + WALKED)
    }

    fn prev_address(&self, place: ListIndex) -> u64 {
        self.tasks.get(place).map_or(HEAD_ADDRESS, |task| task + LINK)
    }

    /// `add_to_runqueue()`: to the front.
    fn link(&mut self, task: usize, server: &mut Server) {
        let head = self.tasks.len();
        let first = self.next[head];
        (self.next[head], self.prev[task], self.next[task], self.prev[first]) = (task, head, first, task);
        server.touch(Kind::Store, HEAD_ADDRESS, 8);
        server.touch(Kind::Store, self.next_address(task) + 0x1c, 4);
        server.touch(Kind::Store, self.prev_address(task), 4);
        server.touch(Kind::Store, self.prev_address(first), 4);
    }

    /// `del_from_runqueue()`.
    fn unlink(&mut self, task: usize, server: &mut Server) {
        let (before, behind) = (self.prev[task], self.next[task]);
        (self.next[before], self.prev[behind]) = (behind, before);
        server.touch(Kind::Load, self.next_address(task) + 0x1c, 4);
        server.touch(Kind::Load, self.prev_address(task), 4);
        server.touch(Kind::Store, self.next_address(before) + 0x1c, 4);
        server.touch(Kind::Store, self.prev_address(behind), 4);
    }

    /// Makes a task runnable without cost: before the time that is looked at.
    pub fn place(&mut self, task: usize, server: &mut Server) -> Result<(), PaperError> {
        let cpu = self.last_cpu[task];
        self.wake(task, cpu, server).map(|_| ())
    }

    /// `goodness()` of a task on a CPU.
    fn goodness(&self, task: usize, cpu: usize) -> u64 {
        let bonus = if self.last_cpu[task] == cpu { SAME_CPU_BONUS } else { 0 };
        if self.counter[task] == 0 { 0 } else { self.counter[task] + bonus + 20 }
    }

    /// `reschedule_idle()`, under the lock: returns the CPU with the task that a woken one should displace, if any.
    pub fn preempts(
        &self,
        woken: usize,
        waker: usize,
        running: &[Option<usize>],
        server: &mut Server,
    ) -> Result<(Option<usize>, Piece), PaperError> {
        if self.kernel == Kernel::Constant {
            return Ok((None, Piece::default()));
        }
        let mut best = (0, None);
        for (cpu, task) in running.iter().enumerate() {
            server.touch(Kind::Load, CPU_DATA_ADDRESS + cpu as u64 * 64, 16);
            if let Some(task) = *task {
                server.touch(Kind::Load, self.tasks[task] + WALKED, 32);
                let more = self.goodness(woken, cpu).saturating_sub(self.goodness(task, cpu));
                if more > best.0 {
                    best = (more, Some(cpu));
                }
            }
        }
        Ok((best.1, server.run(waker, running.len() as u64 * PREEMPT_INSTRUCTIONS)?))
    }

    /// A wake-up, under the lock.
    pub fn wake(&mut self, task: usize, cpu: usize, server: &mut Server) -> Result<Piece, PaperError> {
        if !self.queued[task] {
            self.queued[task] = true;
            self.length += 1;
            if self.kernel == Kernel::Constant {
                let owner = self.last_cpu[task];
                self.cpu_queues[owner].push_back(task);
                self.touch_constant(task, owner, server);
            } else {
                self.link(task, server);
            }
        }
        server.run(cpu, WAKE_INSTRUCTIONS)
    }

    fn touch_constant(&self, task: usize, owner: usize, server: &mut Server) {
        // The queue's count and bitmap, the list head of the priority, the task and its neighbour.
        let queue = CPU_QUEUES_ADDRESS + owner as u64 * 4096;
        server.touch(Kind::Store, queue, 8);
        server.touch(Kind::Store, queue + 64, 8);
        server.touch(Kind::Store, queue + 128, 8);
        server.touch(Kind::Store, self.tasks[task] + WALKED, 32);
        server.touch(Kind::Store, self.tasks[task] + LINK, 8);
    }

    /// A tick charges the running task.
    pub fn tick(&mut self, task: usize, server: &mut Server) {
        self.counter[task] = self.counter[task].saturating_sub(1);
        server.touch(Kind::Store, self.tasks[task] + WALKED, 4);
    }

    /// `schedule()`, under the lock: `previous` leaves the CPU, and the queue if it `blocks`.
    pub fn schedule(
        &mut self,
        cpu: usize,
        previous: Option<usize>,
        blocks: bool,
        server: &mut Server,
    ) -> Result<Scheduled, PaperError> {
        if let Some(task) = previous {
            self.on_cpu[task] = false;
            if blocks {
                self.queued[task] = false;
                self.length -= 1;
                if self.kernel != Kernel::Constant {
                    self.unlink(task, server);
                }
            } else if self.kernel == Kernel::Constant {
                self.cpu_queues[cpu].push_back(task);
            }
        }
        if self.kernel == Kernel::Constant {
            return self.take_first(cpu, previous, server);
        }
        let mut held = server.run(cpu, 0)?;
        let mut walk = Piece::default();
        let next = loop {
            let (next, goodness, visited) = self.walk(cpu, server)?;
            walk.add(visited);
            if next.is_none() || goodness > 0 {
                break next;
            }
            // All quanta are used up: new ones for every task of the system.
            for task in 0..self.tasks.len() {
                self.counter[task] = self.counter[task] / 2 + NICE_TICKS;
                server.touch(Kind::Store, self.tasks[task] + WALKED, 4);
            }
            held.add(server.run(cpu, self.tasks.len() as u64 * RENEW_INSTRUCTIONS)?);
        };
        for task in previous.into_iter().chain(next) {
            server.touch(Kind::Store, self.tasks[task] + WALKED + 0x10, 8);
        }
        if let Some(task) = next {
            self.on_cpu[task] = true;
            self.last_cpu[task] = cpu;
        }
        server.touch(Kind::Store, CPU_DATA_ADDRESS + cpu as u64 * 64, 16);
        held.add(walk);
        held.add(server.run(cpu, SCHEDULE_INSTRUCTIONS)?);
        Ok(Scheduled { next, walk, held })
    }

    /// The loop over the queue: the best task and its goodness.
    fn walk(&mut self, cpu: usize, server: &mut Server) -> Result<(Option<usize>, u64, Piece), PaperError> {
        let head = self.tasks.len();
        let (mut best, mut most, mut visits) = (None, 0, 0);
        let mut at = self.next[head];
        while at != head {
            server.touch(Kind::Load, self.tasks[at] + WALKED, 32);
            visits += 1;
            if !self.on_cpu[at] {
                let goodness = self.goodness(at, cpu);
                if best.is_none() || goodness > most {
                    (best, most) = (Some(at), goodness);
                }
            }
            at = self.next[at];
        }
        Ok((best, most, server.run(cpu, visits * VISIT_INSTRUCTIONS)?))
    }

    fn take_first(
        &mut self,
        cpu: usize,
        previous: Option<usize>,
        server: &mut Server,
    ) -> Result<Scheduled, PaperError> {
        let from = if self.cpu_queues[cpu].is_empty() {
            (0..self.cpu_queues.len()).max_by_key(|&c| (self.cpu_queues[c].len(), usize::MAX - c)).unwrap_or(cpu)
        } else {
            cpu
        };
        let next = self.cpu_queues[from].pop_front();
        for task in previous.into_iter().chain(next) {
            self.touch_constant(task, from, server);
        }
        if let Some(task) = next {
            self.on_cpu[task] = true;
            self.last_cpu[task] = cpu;
        }
        Ok(Scheduled { next, walk: Piece::default(), held: server.run(cpu, SCHEDULE_INSTRUCTIONS)? })
    }
}
