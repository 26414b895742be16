//! Pages of the heap that the kernel clears for a command that freed as many before: an allocator that gave nothing back
//! to the kernel would have handed out those again.
//!
//! The heap is followed by whole pages. A page is live from its first reference in a block that the allocator gave out
//! until the block is freed; then it is spare. A page that is referenced for the first time takes a spare one instead,
//! if there is one, and the kernel does not have to give it out. A call of malloc_trim leaves none.
//!
//! A page of small blocks has no end that shows. If the kernel clears it again, the allocator gave it back with the top of
//! its heap. Where parts of a run were recorded, a page among those that came up so far was given out before.
//!
//! glibc's malloc has a heap for the first thread, and heaps of 64 MiB for the other threads, one of which stays when it
//! is free (`arena.c`, `HEAP_MAX_SIZE` and `heap_trim`).

mod named;

pub use named::{Reuse, ReuseWithin, ReusedObject};

use super::names::Names;
use super::objects::{Key, ObjectId};
use super::touches::Touches;
use super::tracker::USER_END;
use crate::observer::{Effective, Observer, Outcome};
use nearmiss_record::machine::Machine;
use nearmiss_record::maps::Event;
use nearmiss_record::reference::{Control, HeapOp, MARK_PART, Record};
use nearmiss_record::side::SideTables;
use nearmiss_record::symbols::Symbols;
use rustc_hash::{FxHashMap, FxHashSet};

const PAGE_LOG2: u32 = 12;
/// Pages of the heap that stays with a thread which is not the first one.
const THREAD_HEAP: u64 = (64 << 20) >> PAGE_LOG2;

/// A process and the thread that has the heap; 0: the first thread.
type Heap = (u32, u32);

/// An allocator that gives all of its spare pages back when there are more than `limit`, as glibc's does with the top of
/// its heap.
#[derive(Clone, Debug)]
struct Allocator {
    limit: u64,
    /// Spare pages by heap.
    spare: FxHashMap<Heap, u64>,
    /// Spare pages of all heaps, now and the most at once.
    spare_now: u64,
    spare_most: u64,
    /// Pages that it handed out again instead of new ones, by recorded part.
    again: Vec<u64>,
}

impl Allocator {
    fn new(limit: u64) -> Self {
        Allocator { limit, spare: FxHashMap::default(), spare_now: 0, spare_most: 0, again: vec![0] }
    }

    /// Takes pages back; then it has so many of them at least.
    fn takes(&mut self, heap: Heap, pages: u64, at_least: u64) {
        let spare = self.spare.entry(heap).or_default();
        let before = *spare;
        *spare = (*spare + pages).max(at_least);
        *spare = if *spare > self.limit { 0 } else { *spare };
        *spare = if heap.1 == 0 { *spare } else { (*spare).min(THREAD_HEAP) };
        self.spare_now = self.spare_now - before + *spare;
        self.spare_most = self.spare_most.max(self.spare_now);
    }

    /// Hands out a spare page, if there is one.
    fn hands_out(&mut self, heap: Heap) -> bool {
        let spare = self.spare.entry(heap).or_default();
        let has = *spare > 0;
        (self.spare_now, *spare) = (self.spare_now - u64::from(has), *spare - u64::from(has));
        has
    }

    /// A page came back from the kernel that had gone there with the top of a heap of so many pages, so many of which came
    /// back so far. Returns whether it would have stayed.
    fn would_have_kept(&mut self, heap_pages: u64, came_back: u64) -> bool {
        let stays = heap_pages <= self.limit;
        self.spare_most = if stays { self.spare_most.max(came_back) } else { self.spare_most };
        stays
    }

    /// A process ended, became another program, or gave its spare pages back.
    fn gives_back(&mut self, pid: u32) {
        let gone: u64 = self.spare.iter().filter(|((of, _), _)| *of == pid).map(|(_, spare)| spare).sum();
        self.spare.retain(|(of, _), _| *of != pid);
        self.spare_now -= gone;
    }
}

/// Listens to a model; see the module's text.
pub struct HeapReuse {
    touches: Touches,
    /// The latest page of each CPU.
    last: Vec<u64>,
    /// Live pages, by process.
    live: FxHashSet<(u32, u64)>,
    /// Pages of small blocks that came back from the kernel, by process.
    came_back: FxHashSet<(u32, u64)>,
    /// The lowest and the highest page of the program break's memory outside blocks so far, by process.
    breaks: FxHashMap<u32, (u64, u64)>,
    /// Threads that have the blocks which are not the first thread's, by process and address.
    owners: FxHashMap<(u32, u64), u32>,
    /// Parts of the run were recorded: what the program touched between them is not known.
    in_parts: bool,
    /// Pages of blocks that the kernel gave out, by recorded part.
    first_touches: Vec<u64>,
    /// Instructions of the command, by recorded part.
    instructions: Vec<u64>,
    /// One for each limit.
    allocators: Vec<Allocator>,
    /// Pages that the first allocator handed out again, by the object that they went to.
    objects: FxHashMap<ObjectId, u64>,
}

impl HeapReuse {
    /// For a run on this machine, recorded whole or in parts, with allocators that keep so many spare pages at most.
    pub fn new(machine: &Machine, symbols: &Symbols, in_parts: bool, limits: &[u64]) -> Self {
        let touches = Touches::new(machine, symbols);
        HeapReuse {
            last: vec![u64::MAX; touches.cpus()],
            touches,
            live: FxHashSet::default(),
            came_back: FxHashSet::default(),
            breaks: FxHashMap::default(),
            owners: FxHashMap::default(),
            in_parts,
            first_touches: vec![0],
            instructions: vec![0],
            allocators: limits.iter().map(|limit| Allocator::new(*limit)).collect(),
            objects: FxHashMap::default(),
        }
    }

    /// Returns what each allocator would have handed out again.
    pub fn reuse(&self, side: &SideTables, symbols: &Symbols) -> Reuse {
        named::reuse(self, &Names::new(symbols, side), symbols)
    }

    #[inline]
    fn reference(&mut self, reference: &Effective) {
        let Some(at) = self.touches.data(reference) else { return };
        let record = reference.record;
        let page = record.vaddr() >> PAGE_LOG2;
        if record.vaddr() < USER_END && page != self.last[at] && self.touches.runs_command(at) {
            self.last[at] = page;
            self.touched(self.touches.pid(at), page, record);
        }
    }

    fn touched(&mut self, pid: u32, page: u64, record: Record) {
        let is_first = self.touches.is_first(record);
        if !is_first && self.live.contains(&(pid, page)) {
            return;
        }
        let (object, start) = self.touches.tracker.find(pid, record.vaddr(), record.physical_page());
        let in_block = self.is_block(object);
        if !in_block && !self.has(object, |key| *key == Key::Break) {
            return;
        }
        let came_before = !self.live.insert((pid, page)) | self.is_among_earlier(pid, page, object);
        self.first_touches.last_mut().into_iter().for_each(|pages| *pages += u64::from(is_first));
        if is_first && came_before && !(in_block && self.is_inside(pid, record.vaddr())) {
            self.comes_back(pid, page, object);
        } else if in_block {
            self.hand_out(self.heap(pid, start), object, is_first);
        }
    }

    /// A page of small blocks that had been given to the program is given to it again.
    fn comes_back(&mut self, pid: u32, page: u64, object: ObjectId) {
        self.came_back.insert((pid, page));
        let (heap_pages, came_back) = (self.live.len() as u64, self.came_back.len() as u64);
        for (number, allocator) in self.allocators.iter_mut().enumerate() {
            if allocator.would_have_kept(heap_pages, came_back) {
                allocator.again.last_mut().into_iter().for_each(|again| *again += 1);
                *self.objects.entry(object).or_default() += u64::from(number == 0);
            }
        }
    }

    /// A block's page is referenced for the first time.
    fn hand_out(&mut self, heap: Heap, object: ObjectId, is_first: bool) {
        for (number, allocator) in self.allocators.iter_mut().enumerate() {
            if allocator.hands_out(heap) && is_first {
                allocator.again.last_mut().into_iter().for_each(|again| *again += 1);
                *self.objects.entry(object).or_default() += u64::from(number == 0);
            }
        }
    }

    /// Whether a page lies among those of the program break's memory that came up before. That memory grows upwards: in a
    /// run that was recorded in parts the page was given out before them, in a pause if nowhere else.
    fn is_among_earlier(&mut self, pid: u32, page: u64, object: ObjectId) -> bool {
        let in_break = self.has(object, |key| *key == Key::Break);
        let (lowest, highest) = self.breaks.entry(pid).or_insert((u64::MAX, 0));
        let is_among = *lowest <= page && page < *highest;
        if in_break {
            (*lowest, *highest) = (page.min(*lowest), page.max(*highest));
        }
        is_among && self.in_parts
    }

    /// Whether the page of an address belongs to one block alone.
    fn is_inside(&mut self, pid: u32, address: u64) -> bool {
        let (start, end) = self.touches.tracker.extent(pid, address);
        let page = address >> PAGE_LOG2;
        start.div_ceil(1 << PAGE_LOG2) <= page && page < end >> PAGE_LOG2
    }

    fn has(&self, object: ObjectId, is: impl Fn(&Key) -> bool) -> bool {
        self.touches.tracker.objects.rows.get(object.0 as usize).is_some_and(|object| is(&object.key))
    }

    fn is_block(&self, object: ObjectId) -> bool {
        self.has(object, |key| matches!(key, Key::Heap { .. }))
    }

    fn heap(&self, pid: u32, block: u64) -> Heap {
        (pid, self.owners.get(&(pid, block)).copied().unwrap_or(0))
    }

    /// Whole pages of the block at an address, if it is one.
    fn pages(&mut self, pid: u32, address: u64) -> Option<std::ops::Range<u64>> {
        if address == 0 || address >= USER_END {
            return None;
        }
        let object = self.touches.tracker.find(pid, address, 0).0;
        let (start, end) = self.touches.tracker.extent(pid, address);
        let whole = start.div_ceil(1 << PAGE_LOG2)..end.min(USER_END) >> PAGE_LOG2;
        self.is_block(object).then_some(whole)
    }

    /// A block is freed: its whole pages that are live become spare. Between recorded parts it is taken for touched
    /// everywhere.
    fn freed(&mut self, pid: u32, address: u64) {
        let Some(pages) = self.pages(pid, address) else { return };
        let at_least = if self.in_parts { pages.end.saturating_sub(pages.start) } else { 0 };
        let spare = pages.filter(|page| self.live.remove(&(pid, *page))).count() as u64;
        let heap = self.heap(pid, address);
        self.owners.remove(&(pid, address));
        self.allocators.iter_mut().for_each(|allocator| allocator.takes(heap, spare, at_least));
    }

    /// A block gets another size, and maybe another place: its pages stay live there, as `mremap` moves them.
    fn resized(&mut self, pid: u32, (old, new): (u64, u64), bytes: u64) {
        let Some(pages) = self.pages(pid, old).filter(|_| new != 0 && bytes != 0) else { return self.freed(pid, old) };
        let room = bytes >> PAGE_LOG2;
        let live: Vec<u64> = pages.clone().filter(|page| self.live.remove(&(pid, *page))).collect();
        let (stay, go): (Vec<u64>, Vec<u64>) = live.into_iter().partition(|page| page - pages.start < room);
        let first = new.div_ceil(1 << PAGE_LOG2);
        self.live.extend(stay.into_iter().map(|page| (pid, first + (page - pages.start))));
        let heap = self.heap(pid, old);
        self.allocators.iter_mut().for_each(|allocator| allocator.takes(heap, go.len() as u64, 0));
    }

    /// Notes the thread that has the heap of a new block, if the block can have a whole page.
    fn given(&mut self, at: usize, address: u64, bytes: u64) {
        let (pid, thread) = (self.touches.pid(at), self.touches.thread(at));
        if thread != pid && bytes >= 1 << PAGE_LOG2 {
            self.owners.insert((pid, address), thread);
        } else {
            self.owners.remove(&(pid, address));
        }
    }

    fn forget(&mut self, pid: u32) {
        self.live.retain(|(of, _)| *of != pid);
        self.came_back.retain(|(of, _)| *of != pid);
        self.breaks.remove(&pid);
        self.owners.retain(|(of, _), _| *of != pid);
        self.allocators.iter_mut().for_each(|allocator| allocator.gives_back(pid));
    }
}

impl Observer for HeapReuse {
    fn control(&mut self, vcpu: u32, control: &Control<'_>) {
        let at = super::index(vcpu, self.last.len());
        match *control {
            Control::Switch { .. } => self.last[at] = u64::MAX,
            Control::Mark { number: MARK_PART, .. } => {
                self.instructions.push(0);
                self.first_touches.push(0);
                self.allocators.iter_mut().for_each(|allocator| allocator.again.push(0));
            }
            Control::Heap { op: HeapOp::Trim, .. } => {
                let pid = self.touches.pid(at);
                self.allocators.iter_mut().for_each(|allocator| allocator.gives_back(pid));
            }
            Control::Heap { op: HeapOp::Free, address, .. } => self.freed(self.touches.pid(at), address),
            Control::Heap { op: HeapOp::Alloc, address, size, .. } => self.given(at, address, size),
            Control::Heap { op: HeapOp::Realloc, old, address, size, .. } => {
                self.resized(self.touches.pid(at), (old, address), size);
                self.given(at, address, size);
            }
            _ => {}
        }
        if let Control::Heap { .. } = control {
            self.last[at] = u64::MAX;
        }
        let mut gone = Vec::new();
        self.touches.control(vcpu, control, |event| match event {
            Event::Exit { pid, .. } | Event::Name { pid, exec: true, .. } => gone.push(*pid),
            _ => {}
        });
        gone.into_iter().for_each(|pid| self.forget(pid));
    }

    fn hit(&mut self, reference: &Effective) {
        self.reference(reference);
    }

    fn miss(&mut self, reference: &Effective, _: &Outcome) {
        self.reference(reference);
    }

    fn instructions(&mut self, vcpu: u32, instructions: u64) {
        if self.touches.runs_command(super::index(vcpu, self.last.len())) {
            self.instructions.last_mut().into_iter().for_each(|all| *all += instructions);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_gives_its_spare_pages_back_is_handed_out_none() {
        let mut allocator = Allocator::new(u64::MAX);
        allocator.takes((1, 0), 8, 0);
        allocator.takes((2, 0), 8, 0);
        assert!(allocator.hands_out((1, 0)));
        allocator.gives_back(1);
        assert!(!allocator.hands_out((1, 0)) && allocator.hands_out((2, 0)));
        assert_eq!((allocator.spare_now, allocator.spare_most), (7, 16));
    }
}
