//! The server's processes: where they run, what is theirs, and what lies with the network.

use super::Kernel;
use super::chassis::{CPUS, Chassis};
use super::load::{Load, Work};
use super::memory::{LINE_BYTES, Memory, PAGE_BYTES};
use super::pools::{Class, Object};
use crate::random::Random;
use nearmiss_record::reference::Kind;
use std::collections::VecDeque;

/// Lines that all CPUs write: locks, list heads, counts, rings of devices (assumed).
const SHARED_LINES: u64 = 1024;
/// Stores among the uses of private and of shared lines, in percent (assumed).
const STORE_PERCENT: u64 = 30;
/// Sent packets that a CPU's devices have not yet reported (assumed).
const IN_FLIGHT: usize = 8;
/// A CPU takes one of so many tasks that wait longest (assumed).
const CHOICE: u64 = 8;

/// Processes, and the memory that is not the allocator's.
pub struct Tasks {
    kernel: Kernel,
    /// Share freed on the CPU that allocated it, in percent.
    same_cpu_percent: u64,
    /// Private pages by task.
    private: Vec<Vec<u64>>,
    /// Objects held, by task.
    hands: Vec<Vec<Object>>,
    shared: Vec<u64>,
    lasting: Vec<u64>,
    /// Queues by CPU; of tasks that are not bound, the first alone.
    queues: Vec<VecDeque<usize>>,
    /// Packets by CPU: those that came for its processes, and those that it sent or that are reported to it.
    came: Vec<Vec<Object>>,
    gone: Vec<VecDeque<Object>>,
    random: Random,
}

impl Tasks {
    /// Task n runs on CPU n first; bound ones stay there.
    pub fn new(load: &Load, kernel: Kernel, chassis: &Chassis, memory: &mut Memory, seed: u64) -> Self {
        let shared = (SHARED_LINES * LINE_BYTES / PAGE_BYTES) as usize;
        let pages_of = |task: usize, memory: &mut Memory| match kernel.binds() && load.touches_first {
            true => (0..load.private_pages).map(|_| memory.page(chassis.node(task % CPUS))).collect(),
            false => memory.anywhere(load.private_pages),
        };
        let mut queues = vec![VecDeque::new(); CPUS];
        for task in CPUS..load.processes {
            queues[if kernel.binds() { task % CPUS } else { 0 }].push_back(task);
        }
        Tasks {
            kernel,
            same_cpu_percent: load.same_cpu_percent,
            shared: memory.anywhere(shared),
            lasting: memory.anywhere(load.lasting_pages),
            private: (0..load.processes).map(|task| pages_of(task, memory)).collect(),
            hands: vec![Vec::new(); load.processes],
            queues,
            came: vec![Vec::new(); CPUS],
            gone: vec![VecDeque::new(); CPUS],
            random: Random::new(seed ^ 0x7a5c),
        }
    }

    /// The task that follows one on a CPU, which waits from now on.
    pub fn next(&mut self, cpu: usize, before: usize) -> usize {
        let queue = &mut self.queues[if self.kernel.binds() { cpu } else { 0 }];
        let choice = self.random.below(CHOICE.min(queue.len() as u64)) as usize;
        let next = queue.remove(choice).unwrap_or(before);
        queue.push_back(before);
        next
    }

    /// A task got an object.
    pub fn hold(&mut self, task: usize, object: Object) {
        self.hands[task].push(object);
    }

    /// The object of a kind that a task got last.
    pub fn let_go(&mut self, task: usize, class: Class) -> Option<Object> {
        let hands = &mut self.hands[task];
        let at = hands.iter().rposition(|object| object.class == class)?;
        Some(hands.remove(at))
    }

    /// The CPU that has to do with what a CPU began: itself, or another.
    fn other_end(&mut self, cpu: usize) -> usize {
        if self.random.below(100) < self.same_cpu_percent {
            return cpu;
        }
        (cpu + 1 + self.random.below(CPUS as u64 - 1) as usize) % CPUS
    }

    /// A packet came on a CPU, for a process of some CPU.
    pub fn deliver(&mut self, cpu: usize, task: usize) {
        let to = self.other_end(cpu);
        let packet = [Class::Small, Class::Head].into_iter().filter_map(|class| self.let_go(task, class));
        let packet: Vec<Object> = packet.collect();
        self.came[to].extend(packet);
    }

    /// Takes the packets that came for a CPU's processes.
    pub fn came(&mut self, cpu: usize) -> Vec<Object> {
        std::mem::take(&mut self.came[cpu])
    }

    /// Sends a task's packet with its head; a CPU gets the report of it later.
    pub fn sent(&mut self, cpu: usize, task: usize, class: Class) {
        let to = self.other_end(cpu);
        let packet: Vec<Object> =
            [class, Class::Head].into_iter().filter_map(|class| self.let_go(task, class)).collect();
        self.gone[to].extend(packet);
    }

    /// Takes the packets that are reported to a CPU as gone.
    pub fn gone(&mut self, cpu: usize) -> Vec<Object> {
        let gone = &mut self.gone[cpu];
        let count = gone.len().saturating_sub(2 * IN_FLIGHT);
        gone.drain(..count).collect()
    }

    /// Reads an object.
    pub fn read(&self, object: Object, chassis: &mut Chassis) {
        (0..object.class.lines()).for_each(|line| chassis.touch(Kind::Load, object.address + line * LINE_BYTES));
    }

    /// Touches what a piece of work touches.
    pub fn work(&mut self, work: &Work, cpu: usize, task: usize, chassis: &mut Chassis, memory: &mut Memory) {
        for _ in 0..work.private {
            let (at, kind) = (self.random.below(u64::MAX), self.kind());
            chassis.touch(kind, line_of(&self.private[task], at));
        }
        for _ in 0..work.shared {
            let (at, kind) = (self.random.below(u64::MAX), self.kind());
            chassis.touch(kind, line_of(&self.shared, at));
        }
        for _ in 0..work.lasting {
            let at = self.random.below(u64::MAX);
            chassis.touch(Kind::Load, line_of(&self.lasting, at));
        }
        let page = memory.lately(chassis.node(cpu));
        (0..work.lately).for_each(|line| chassis.touch(Kind::Store, page + line % 128 * LINE_BYTES));
        if let Some(class) = work.fills {
            self.fill(class, work.copied, task, chassis);
        }
        if work.reads > 0 {
            self.copy_in(work.reads, task, chassis);
        }
    }

    /// Writes into the latest object of a kind: its head lines, or so many lines from a file.
    fn fill(&mut self, class: Class, copied: u64, task: usize, chassis: &mut Chassis) {
        let Some(object) = self.hands[task].iter().rev().find(|object| object.class == class).copied() else { return };
        let from = self.file_page();
        for line in 0..copied.max(class.lines()) {
            if line < copied {
                chassis.touch(Kind::Load, from + line % 128 * LINE_BYTES);
            }
            chassis.touch(Kind::Store, object.address + line * LINE_BYTES);
        }
    }

    /// Copies lines of a file to the process.
    fn copy_in(&mut self, lines: u64, task: usize, chassis: &mut Chassis) {
        let pages = self.private[task].len() as u64;
        for page in 0..lines.div_ceil(128) {
            let (from, to) = (self.file_page(), self.private[task][self.random.below(pages) as usize]);
            for line in 0..(lines - page * 128).min(128) {
                chassis.touch(Kind::Load, from + line * LINE_BYTES);
                chassis.touch(Kind::Store, to + line * LINE_BYTES);
            }
        }
    }

    fn file_page(&mut self) -> u64 {
        self.lasting[self.random.below(self.lasting.len() as u64) as usize]
    }

    fn kind(&mut self) -> Kind {
        if self.random.below(100) < STORE_PERCENT { Kind::Store } else { Kind::Load }
    }
}

/// One of the lines of pages.
fn line_of(pages: &[u64], at: u64) -> u64 {
    let lines = pages.len() as u64 * (PAGE_BYTES / LINE_BYTES);
    let line = at % lines.max(1);
    let page = pages.get((line / (PAGE_BYTES / LINE_BYTES)) as usize).copied().unwrap_or_default();
    page + line % (PAGE_BYTES / LINE_BYTES) * LINE_BYTES
}
