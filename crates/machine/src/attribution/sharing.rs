//! Lines that move between CPUs: who uses which of their bytes, and whether a CPU that fetched one needed it.
//!
//! A line is watched from its first coherence miss on. A miss alone does not show whether the data of two CPUs share a
//! line by accident: the CPU that takes a lock may look first at a byte of it that no CPU writes. So a miss counts as
//! needless only once the CPU loses the line again without having used a byte that another CPU had written (the
//! *essential* misses of Dubois, Skeppstedt and Stenström, 1993, are the others).

use super::Attribution;
use super::objects::{Key, ObjectId};
use crate::hashing;
use crate::model::cache::bytes::mask_within;
use crate::observer::{Effective, Outcome};
use crate::owner::Owner;
use nearmiss_record::model::MissClass;
use nearmiss_record::reference::Kind;
use rustc_hash::FxHashMap;

/// Most lines kept apart.
const MAX_LINES: usize = 1 << 18;
/// Most uses and pieces of one line, instructions of one use, and instructions of one line that wait.
const MAX_USES: usize = 128;
const MAX_PIECES: usize = 64;
const MAX_INSNS: usize = 4;
const MAX_WAITING: usize = 16;
/// log₂ of the bits that separate most unwatched lines from watched ones.
const WATCHED_LOG2: u32 = 17;
/// First address that is not user space's.
const USER_END: u64 = 1 << 47;
/// First party that is a CPU: it stands for the tasks that came after a line had its most uses.
pub(super) const BY_CPU: u32 = u32::MAX - 64;

/// One task's use of certain bytes of a line.
#[derive(Clone, Debug)]
pub(super) struct Use {
    /// Index of the task, or [`BY_CPU`] and the number of a CPU.
    pub party: u32,
    pub stores: bool,
    /// Bytes of the line, a bit each.
    pub bytes: u128,
    pub times: u64,
    /// Number of waits for other CPUs.
    pub waits: u64,
    /// Some of the instructions, with their times.
    pub insns: Vec<(u32, u64)>,
}

/// A user object that reaches into a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub object: ObjectId,
    /// First virtual address, and the one behind the last.
    pub extent: (u64, u64),
    /// Virtual address of the line.
    pub line: u64,
    /// Bytes of the line that it has.
    pub bytes: u128,
}

/// State of a line on one CPU.
#[derive(Clone, Copy, Debug, Default)]
struct Stay {
    /// Bytes that others wrote and that the CPU has not used since.
    foreign: u128,
    /// The CPU missed the line, and has used none of the `foreign` bytes yet.
    is_idle: bool,
}

/// One line.
#[derive(Clone, Debug)]
pub(super) struct SharedLine {
    pub object: ObjectId,
    /// Offset of the line in the object.
    pub offset: u64,
    pub true_sharing: u64,
    pub false_sharing: u64,
    pub needless: u64,
    /// Cycles waited for other CPUs, by task.
    pub waits: Vec<(u32, u64)>,
    /// Instructions that waited, and how often.
    pub waiting: Vec<(u32, u64)>,
    pub uses: Vec<Use>,
    pub pieces: Vec<Piece>,
    /// Bytes with a known piece.
    known: u128,
    stays: Vec<Stay>,
}

/// Reference to a line: its CPU, task and bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reference {
    pub cpu: usize,
    pub task: u32,
    pub insn: u32,
    pub reads: bool,
    pub writes: bool,
    /// Physical address of the line.
    pub line: u64,
    pub bytes: u128,
}

impl Reference {
    pub fn new(cpu: usize, task: u32, reference: &Effective, line_bytes: u32) -> Self {
        let line = reference.address & !u64::from(line_bytes - 1);
        Reference {
            cpu,
            task,
            insn: reference.record.insn().0,
            reads: matches!(reference.kind, Kind::Load | Kind::Atomic),
            writes: !matches!(reference.kind, Kind::Load),
            line,
            bytes: mask_within(line, line_bytes.ilog2(), reference.address, reference.size),
        }
    }
}

/// Watched lines by recorded physical address.
#[derive(Debug)]
pub(super) struct SharedLines {
    pub lines: FxHashMap<u64, SharedLine>,
    pub full: bool,
    /// A bit for each line watched, and for others that fall on the same bit.
    watched: Vec<u64>,
    cpus: usize,
}

impl SharedLines {
    pub fn new(cpus: usize) -> Self {
        SharedLines { lines: FxHashMap::default(), full: false, watched: vec![0; 1 << (WATCHED_LOG2 - 6)], cpus }
    }

    /// Whether the line at this address may be watched.
    #[inline]
    pub fn may_watch(&self, address: u64) -> bool {
        let (word, bit) = place(address);
        self.watched[word] & bit != 0
    }

    /// Notes a coherence miss; its reference goes to [`SharedLines::referred`] after this.
    pub fn missed(&mut self, by: &Reference, class: MissClass, object: ObjectId, offset: u64) {
        let is_new = !self.lines.contains_key(&by.line);
        if is_new && self.lines.len() >= MAX_LINES {
            self.full = true;
            return;
        }
        let (word, bit) = place(by.line);
        self.watched[word] |= bit;
        let cpus = self.cpus;
        let row = self.lines.entry(by.line).or_insert_with(|| SharedLine::new(object, offset, cpus));
        match class {
            MissClass::TrueSharing => row.true_sharing += 1,
            _ => row.false_sharing += 1,
        }
        let stay = &mut row.stays[by.cpu];
        row.needless += u64::from(stay.is_idle);
        // The writers from before the line was watched are unknown.
        stay.is_idle = !is_new;
    }

    /// The reference is to a block. A line may have been watched before the block was allocated in it: what held those
    /// bytes gives way.
    pub fn is_of_block(&mut self, by: &Reference, block: ObjectId, offset: u64) {
        let Some(row) = self.lines.get_mut(&by.line) else { return };
        let first = by.bytes & by.bytes.wrapping_neg();
        let Some(at) = row.pieces.iter().position(|piece| piece.bytes & first != 0 && piece.object != block) else {
            return;
        };
        let earlier = row.pieces.remove(at);
        row.known &= !earlier.bytes;
        if row.object == earlier.object {
            (row.object, row.offset) = (block, offset);
        }
    }

    /// The reference waited for other CPUs, so long.
    pub fn waited(&mut self, by: &Reference, cycles: u64) {
        let Some(row) = self.lines.get_mut(&by.line) else { return };
        row.note(by, by.writes, 0, 1);
        add(&mut row.waits, by.task, cycles, usize::MAX);
        add(&mut row.waiting, by.insn, 1, MAX_WAITING);
    }

    /// A reference. Returns the line if it is not known yet to which object all its bytes belong.
    #[inline]
    pub fn referred(&mut self, by: &Reference) -> Option<&mut SharedLine> {
        let row = self.lines.get_mut(&by.line)?;
        row.referred(by);
        (by.bytes & !row.known != 0 && row.pieces.len() < MAX_PIECES).then_some(row)
    }
}

/// Adds to the sum of one key, unless there are as many others.
fn add(sums: &mut Vec<(u32, u64)>, key: u32, count: u64, most: usize) {
    match sums.iter().position(|(other, _)| *other == key) {
        Some(at) => sums[at].1 += count,
        None if sums.len() < most => sums.push((key, count)),
        None => {}
    }
}

/// Returns the place of the bit of the line at an address. The lowest bits are the same for all bytes of the longest
/// line.
#[inline]
fn place(address: u64) -> (usize, u64) {
    let mixed = hashing::place(address >> 7, WATCHED_LOG2);
    (mixed / 64, 1 << (mixed % 64))
}

impl SharedLine {
    fn new(object: ObjectId, offset: u64, cpus: usize) -> Self {
        SharedLine {
            object,
            offset,
            true_sharing: 0,
            false_sharing: 0,
            needless: 0,
            waits: Vec::new(),
            waiting: Vec::new(),
            uses: Vec::new(),
            pieces: Vec::new(),
            known: 0,
            stays: vec![Stay::default(); cpus],
        }
    }

    pub fn misses(&self) -> u64 {
        self.true_sharing + self.false_sharing
    }

    fn referred(&mut self, by: &Reference) {
        let stay = &mut self.stays[by.cpu];
        if by.bytes & stay.foreign != 0 {
            stay.is_idle = false;
            stay.foreign &= !by.bytes;
        }
        if by.writes {
            let others = self.stays.iter_mut().enumerate().filter(|(cpu, _)| *cpu != by.cpu);
            others.for_each(|(_, stay)| stay.foreign |= by.bytes);
            self.note(by, true, 1, 0);
        }
        if by.reads {
            self.note(by, false, 1, 0);
        }
    }

    fn note(&mut self, by: &Reference, stores: bool, times: u64, waits: u64) {
        let same = |u: &&mut Use| u.bytes == by.bytes && u.party == by.task && u.stores == stores;
        let found = match self.uses.iter_mut().find(same) {
            Some(found) => found,
            None => self.new_use(by, stores),
        };
        found.bytes |= by.bytes;
        found.times += times;
        found.waits += waits;
        add(&mut found.insns, by.insn, times, MAX_INSNS);
    }

    /// Adds a use. Once the line has its most uses, later tasks go by their CPU.
    fn new_use(&mut self, by: &Reference, stores: bool) -> &mut Use {
        let is_full = self.uses.len() >= MAX_USES;
        let parties = [by.task, BY_CPU + by.cpu as u32];
        let known = |party: &u32| self.uses.iter().position(|u| u.party == *party && u.stores == stores);
        let at = parties.iter().find_map(known).filter(|_| is_full).unwrap_or_else(|| {
            let party = parties[usize::from(is_full)];
            self.uses.push(Use { party, stores, bytes: 0, times: 0, waits: 0, insns: Vec::new() });
            self.uses.len() - 1
        });
        &mut self.uses[at]
    }

    /// Enters the object at virtual address `vaddr`, byte `at` of the line of `line_bytes`.
    pub fn add_piece(&mut self, object: ObjectId, extent: (u64, u64), vaddr: u64, at: u32, line_bytes: u32) {
        let line = vaddr.wrapping_sub(u64::from(at));
        let from = extent.0.max(line);
        let size = extent.1.min(line.saturating_add(line_bytes.into())).saturating_sub(from) as u32;
        let bytes = mask_within(line, line_bytes.ilog2(), from, size) & !self.known | 1 << at;
        self.known |= bytes;
        self.pieces.push(Piece { object, extent, line, bytes });
    }
}

impl Attribution {
    /// A data reference of the command or the kernel to a line that may be watched.
    #[cold]
    pub(super) fn share(&mut self, vcpu: usize, reference: &Effective) {
        let cpu = &self.cpus[vcpu];
        if self.running.owner(vcpu) != Owner::Command || reference.kind == Kind::Fetch {
            return;
        }
        let by = Reference::new(vcpu, cpu.task, reference, self.options.line_bytes);
        let Some(line) = self.sharing.referred(&by) else { return };
        if reference.vaddr < USER_END {
            let (object, _) = self.tracker.find(cpu.pid, reference.vaddr, reference.record.physical_page());
            let object = self.tracker.objects.piece(object, reference.vaddr);
            let extent = self.tracker.extent(cpu.pid, reference.vaddr);
            line.add_piece(
                object,
                extent,
                reference.vaddr,
                (reference.address - by.line) as u32,
                self.options.line_bytes,
            );
        }
    }

    /// Notes the outcome of a reference that may have taken its line from other CPUs.
    pub(super) fn move_line(&mut self, vcpu: usize, reference: &Effective, outcome: &Outcome) {
        if !outcome.waited_for_others() || reference.kind == Kind::Fetch || self.running.owner(vcpu) != Owner::Command {
            return;
        }
        let (task, pid) = (self.cpus[vcpu].task, self.cpus[vcpu].pid);
        let by = Reference::new(vcpu, task, reference, self.options.line_bytes);
        if let Some(class) = outcome.sharing_class() {
            let (object, start) = self.tracker.find(pid, reference.vaddr, reference.record.physical_page());
            let offset = (reference.vaddr.wrapping_sub(reference.address - by.line)).saturating_sub(start);
            let object = self.tracker.objects.piece(object, reference.vaddr);
            self.sharing.missed(&by, class, object, offset);
            if matches!(self.tracker.objects.rows[object.0 as usize].key, Key::Heap { .. } | Key::Managed { .. }) {
                self.sharing.is_of_block(&by, object, offset);
            }
        }
        self.sharing.waited(&by, outcome.stall_cycles.into());
    }
}
