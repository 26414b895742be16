//! Reads of another node's memory by owner, and the reason for the home of the memory read.
//!
//! The kernel puts a page on the node that touches it first. The reason why that is the wrong one decides what helps.
//! So each page is judged by its first toucher, its users and their nodes, and whether it is written meanwhile; and
//! each heap block by whether the allocator gave one node memory that another one had used.

mod blocks;
mod named;
mod page;
mod pages;

pub use named::{PageRun, RemoteObject};

use super::names::Names;
use super::tracker::{HeapCall, RecordedData, Tracker, USER_END};
use super::{MAX_OBJECTS, index};
use crate::observer::{BusRead, Effective, Observer, Outcome};
use crate::owner::{Owner, Running};
use blocks::Blocks;
use nearmiss_record::maps::{Event, MapLog};
use nearmiss_record::reference::{Control, HeapOp, Kind, Record};
use nearmiss_record::side::SideTables;
use nearmiss_record::symbols::{PageUse, Symbols};
use pages::Pages;
use rustc_hash::FxHashMap;

/// Smaller blocks have no pages of their own.
const LEAST_BLOCK: u64 = 4096;

/// Why a page's home is not the node that reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// Another task touched the page first, on its own node.
    FirstTouch,
    /// The page lies on another node than that of its first touch: with the rest of a large page, or since before the
    /// window.
    Elsewhere,
    /// The task that reads the page ran on several nodes.
    Moved,
    /// Tasks of several nodes read the page.
    Read,
    /// Tasks of several nodes write the page too: wherever its home is, it is another node's for some of them.
    Written,
    /// Tasks of several nodes use the page, and the allocator hands out blocks on another node than they were freed on.
    Pool,
    /// The page holds contents of a file, which are where their first reader was.
    PageCache,
    /// The page is a program's or a library's file, which is read once as the program starts.
    Image,
    /// The page is the kernel's own.
    Kernel,
}

impl Cause {
    /// Each once.
    pub const ALL: [Cause; 9] = {
        use Cause::{Elsewhere, FirstTouch, Image, Kernel, Moved, PageCache, Pool, Read, Written};
        [FirstTouch, Elsewhere, Moved, Read, Written, Pool, PageCache, Image, Kernel]
    };
}

/// State of a CPU.
#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    pid: u32,
    tid: u32,
    node: u8,
    context: u32,
    user_context: u32,
    kernel: bool,
}

/// Reads and waits that are reported by object, not by page.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    remote: u64,
    waits: u64,
}

/// Listens to a model; see the module's text.
pub struct RemoteReads {
    tracker: Tracker,
    running: Running,
    log: MapLog,
    seen: u32,
    cpus: Vec<Cpu>,
    blocks: Blocks,
    pages: Pages,
    /// Reads of the kernel at addresses of its own, by physical page.
    of_kernel: FxHashMap<u64, Sum>,
    /// Objects of a page and more: process, first address, address behind the last, calling context.
    large: Vec<(u32, u64, u64, u32)>,
    /// The command's bus reads, in all and of other nodes; and by task.
    reads: Sum,
    all_reads: u64,
    by_task: FxHashMap<u32, (u64, u64)>,
}

impl RemoteReads {
    /// Returns the state for a run on so many CPUs.
    pub fn new(cpus: usize, symbols: &Symbols) -> Self {
        RemoteReads {
            tracker: Tracker::new(Box::new(RecordedData::new(symbols)), MAX_OBJECTS),
            running: Running::new(cpus),
            log: MapLog::default(),
            seen: 0,
            cpus: vec![Cpu::default(); cpus.max(1)],
            blocks: Blocks::default(),
            pages: Pages::default(),
            of_kernel: FxHashMap::default(),
            large: Vec::new(),
            reads: Sum::default(),
            all_reads: 0,
            by_task: FxHashMap::default(),
        }
    }

    /// The command's reads of other nodes' memory as a share of its bus reads.
    pub fn share(&self) -> f64 {
        self.reads.remote as f64 / self.all_reads.max(1) as f64
    }

    /// Returns the share of the heap blocks handed out again that another node had freed.
    pub fn handed_elsewhere(&self) -> f64 {
        self.blocks.handed_elsewhere()
    }

    /// Threads of the command with their bus reads and those of other nodes' memory, ascending.
    pub fn threads(&self) -> Vec<(u32, u64, u64)> {
        let mut threads: Vec<_> = self.by_task.iter().map(|(tid, (reads, remote))| (*tid, *reads, *remote)).collect();
        threads.sort_unstable();
        threads
    }

    fn maps(&mut self, vcpu: usize, bytes: &[u8]) {
        let mut events = Vec::new();
        self.running.maps(vcpu, bytes, |event| events.push(event));
        let cpu = self.cpus[vcpu];
        let user = if cpu.kernel { cpu.user_context } else { cpu.context };
        for event in events {
            match &event {
                Event::Map { pid, mapping } => {
                    self.cpus[vcpu].pid = *pid;
                    self.pages.map(*pid, mapping.start & !0xfff, mapping.end.min(USER_END));
                    let in_mmap = if mapping.is_file() { 0 } else { user };
                    self.large.push((*pid, mapping.start, mapping.end.min(USER_END), in_mmap));
                }
                Event::Name { pid, tid, exec: true, .. } => (self.cpus[vcpu].pid, self.cpus[vcpu].tid) = (*pid, *tid),
                _ => {}
            }
            self.tracker.event(&event, (cpu.context, user));
            self.log.event(self.seen, &event);
        }
    }

    fn heap(&mut self, vcpu: usize, control: &Control<'_>) {
        let Control::Heap { op, address, size, old, alignment } = *control else { return };
        let cpu = self.cpus[vcpu];
        self.blocks.control(cpu.pid, cpu.node, control);
        if size >= LEAST_BLOCK && op != HeapOp::Free {
            self.large.push((cpu.pid, address, address.saturating_add(size), cpu.context));
        }
        self.tracker.heap(cpu.pid, cpu.context, HeapCall { op, address, bytes: size, old, alignment });
    }

    /// A reference of the command's.
    fn reference(&mut self, reference: &Effective, outcome: Option<&Outcome>) {
        let vcpu = index(reference.cpu, self.cpus.len());
        let cpu = self.cpus[vcpu];
        let remote = outcome.is_some_and(|outcome| outcome.read == Some(BusRead::Remote));
        let waits = outcome.map_or(0, |outcome| u64::from(outcome.stall_cycles));
        let reads = outcome.is_some_and(|outcome| outcome.read.is_some());
        if reads {
            self.all_reads += 1;
            let of_task = self.by_task.entry(cpu.tid).or_default();
            of_task.0 += 1;
            of_task.1 += u64::from(remote);
        }
        if remote {
            self.reads.remote += 1;
            self.reads.waits += waits;
        }
        let record = reference.record;
        if record.vaddr() >= USER_END {
            if remote {
                add(self.of_kernel.entry(record.physical_page()).or_default(), waits);
            }
            return;
        }
        self.page(cpu, reference, remote, outcome);
    }

    fn page(&mut self, cpu: Cpu, reference: &Effective, remote: bool, outcome: Option<&Outcome>) {
        let reads = outcome.is_some_and(|outcome| outcome.read.is_some());
        let (record, by) = (reference.record, (cpu.tid, reference.node));
        let vaddr = record.vaddr() & !0xfff;
        let page = self.pages.page(record.physical_page(), cpu.pid, vaddr, by);
        page.used(by, reads, matches!(reference.kind, Kind::Store | Kind::Atomic | Kind::NtStore));
        if let Some(outcome) = outcome.filter(|outcome| outcome.read.is_some()) {
            page.home = outcome.home;
            if remote {
                page.remote += 1;
                page.waits += u64::from(outcome.stall_cycles);
                let find = || self.tracker.find(cpu.pid, record.vaddr(), record.physical_page()).0;
                page.object.get_or_insert_with(find);
            }
        }
    }

    /// Returns the command's reads of other nodes, with the reasons; most waits first.
    pub fn objects(&mut self, side: &SideTables, symbols: &Symbols) -> Vec<RemoteObject> {
        let names = Names::new(symbols, side);
        named::objects(self, &names, symbols)
    }

    /// Whether the kernel's page holds contents of a file.
    fn is_page_cache(symbols: &Symbols, page: u64) -> bool {
        matches!(symbols.kernel_pages.page(page), Some(PageUse::PageCache))
    }
}

fn add(sum: &mut Sum, waits: u64) {
    sum.remote += 1;
    sum.waits += waits;
}

impl Observer for RemoteReads {
    fn control(&mut self, vcpu: u32, control: &Control<'_>) {
        let at = index(vcpu, self.cpus.len());
        match control {
            Control::Switch { task, pid, tgid, .. } => {
                self.running.control(vcpu, control);
                let cpu = &mut self.cpus[at];
                (cpu.tid, cpu.pid, cpu.user_context, cpu.kernel) = (*pid, *tgid, 0, true);
                self.log.task(self.seen, *task, *tgid);
            }
            Control::Context(context) => {
                let cpu = &mut self.cpus[at];
                cpu.user_context = if cpu.kernel { cpu.user_context } else { cpu.context };
                cpu.context = *context;
            }
            Control::Maps(bytes) => self.maps(at, bytes),
            Control::Heap { .. } => self.heap(at, control),
            Control::Mark { .. } | Control::Irq(_) => self.running.control(vcpu, control),
            Control::Share { .. } | Control::Halt | Control::Fence | Control::Code(_) | Control::Branch { .. } => {}
        }
    }

    fn hit(&mut self, reference: &Effective) {
        self.follow(reference);
        if reference.kind != Kind::Fetch && self.running.owner(reference.cpu as usize) == Owner::Command {
            self.reference(reference, None);
        }
    }

    fn miss(&mut self, reference: &Effective, outcome: &Outcome) {
        self.follow(reference);
        if reference.kind != Kind::Fetch && self.running.owner(reference.cpu as usize) == Owner::Command {
            self.reference(reference, Some(outcome));
        }
    }

    fn instructions(&mut self, _: u32, _: u64) {}
}

impl RemoteReads {
    #[inline]
    fn follow(&mut self, reference: &Effective) {
        let record: Record = reference.record;
        self.seen = self.seen.max(record.insn().0 + 1);
        let at = index(reference.cpu, self.cpus.len());
        (self.cpus[at].node, self.cpus[at].kernel) = (reference.node, record.is_kernel());
    }
}
