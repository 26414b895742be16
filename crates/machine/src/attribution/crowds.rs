//! Objects that crowd on few sets: conflict misses that, within a short time, fall on a small part of a cache's sets.
//!
//! Over a whole run a walk of several buffers in lock-step misses in every set, though at any moment it presses on one.
//! So concentration is judged over the last [`WINDOW`] conflict misses of a CPU at a level.

use super::objects::ObjectId;
use super::tracker::Tracker;
use crate::observer::Outcome;
use nearmiss_record::model::{MAX_LEVELS, MissClass};
use nearmiss_record::reference::Record;
use rustc_hash::{FxHashMap, FxHashSet};

/// Conflict misses that are judged together.
const WINDOW: usize = 256;
/// At most this part of the sets is few, as in the report.
const FEW: u64 = 8;
/// A window that touches more sets than this part of its misses is spread, however many sets there are.
const LEAST_MISSES_A_SET: usize = 4;
/// Lines of one set that are told apart when the number of those that compete is counted.
const MAX_COMPETING: usize = 256;
/// Objects and lines of one row that are remembered.
const MAX_EXTENTS: usize = 1 << 14;
/// log₂ of the largest alignment looked for.
const MAX_ALIGN_LOG2: usize = 24;
const LINE_LOG2: usize = 6;
/// Share of a window's lines that must lie at the same offset of aligned pieces.
const ALIGNED_SHARE: f64 = 0.75;

/// One conflict miss.
#[derive(Clone, Copy, Debug)]
struct Miss {
    set: u32,
    pid: u32,
    /// Of the first byte, not of its line: a block may begin within one.
    address: u64,
    object: ObjectId,
    insn: u32,
    stall_cycles: u32,
    /// Lines that missed in this set since this one last did, itself included; 0: it is the first time.
    competing: u32,
}

impl Miss {
    fn line(&self) -> u64 {
        self.address >> LINE_LOG2 << LINE_LOG2
    }
}

/// What is remembered of one level of one CPU.
#[derive(Debug, Default)]
struct Watch {
    window: Vec<Miss>,
    /// By set: lines that missed, latest first.
    recent: FxHashMap<u32, Vec<u64>>,
}

/// What crowded misses of one object at one level add up to.
#[derive(Debug, Default)]
pub(super) struct CrowdRow {
    pub misses: u64,
    pub stall_cycles: u64,
    /// Sum over misses of the sets of their window.
    sets: u64,
    competing: u64,
    competed: u64,
    /// Windows by log₂ of the alignment that their lines have in common.
    alignments: [u64; MAX_ALIGN_LOG2 + 1],
    /// By process and first address: end, misses.
    pub extents: FxHashMap<(u32, u64), (u64, u64)>,
    pub lines: FxHashSet<u64>,
    pub insns: FxHashMap<u32, u64>,
}

impl CrowdRow {
    /// Sets that a window of misses falls on, on average.
    pub fn sets(&self) -> f64 {
        self.sets as f64 / self.misses.max(1) as f64
    }

    /// Lines that compete for one set, on average.
    pub fn competing(&self) -> f64 {
        self.competing as f64 / self.competed.max(1) as f64
    }

    /// The alignment that most windows' lines have in common.
    pub fn alignment_bytes(&self) -> u64 {
        let most = self.alignments.iter().enumerate().max_by_key(|(log2, votes)| (**votes, *log2));
        1 << most.map_or(LINE_LOG2, |(log2, _)| log2)
    }
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct Crowds {
    sets: Vec<u64>,
    /// By level, then CPU.
    watches: Vec<Vec<Watch>>,
    pub rows: FxHashMap<(u8, ObjectId), CrowdRow>,
}

impl Crowds {
    /// `sets`: of each level's data cache, nearest first.
    pub fn new(sets: &[u64], cpus: usize) -> Self {
        let levels = sets.len().min(MAX_LEVELS);
        let watches = (0..levels).map(|_| (0..cpus).map(|_| Watch::default()).collect()).collect();
        Crowds { sets: sets[..levels].to_vec(), watches, rows: FxHashMap::default() }
    }

    /// `record`, a data reference to `object`, missed or caused traffic.
    pub fn met(
        &mut self,
        vcpu: usize,
        pid: u32,
        object: ObjectId,
        record: Record,
        outcome: &Outcome,
        tracker: &Tracker,
    ) {
        for level in 0..self.watches.len() {
            if outcome.missed[level] != Some(MissClass::Conflict) {
                continue;
            }
            let watch = &mut self.watches[level][vcpu];
            let recent = watch.recent.entry(outcome.set[level]).or_default();
            let before = recent.iter().position(|line| *line == outcome.line_paddr);
            match before {
                Some(at) => recent[..=at].rotate_right(1),
                None => {
                    recent.insert(0, outcome.line_paddr);
                    recent.truncate(MAX_COMPETING);
                }
            }
            watch.window.push(Miss {
                set: outcome.set[level],
                pid,
                address: record.vaddr(),
                object,
                insn: record.insn().0,
                stall_cycles: outcome.stall_cycles,
                competing: before.map_or(0, |at| at as u32 + 1),
            });
            if watch.window.len() == WINDOW {
                let window = std::mem::take(&mut watch.window);
                self.judge(level as u8, &window, tracker);
                self.watches[level][vcpu].window = window;
                self.watches[level][vcpu].window.clear();
            }
        }
    }

    fn judge(&mut self, level: u8, window: &[Miss], tracker: &Tracker) {
        let sets: FxHashSet<u32> = window.iter().map(|miss| miss.set).collect();
        let few = sets.len() as u64 * FEW <= self.sets[level as usize] && sets.len() * LEAST_MISSES_A_SET <= WINDOW;
        if !few {
            return;
        }
        let alignment = common_alignment_log2(window);
        for miss in window {
            let row = self.rows.entry((level, miss.object)).or_default();
            row.misses += 1;
            row.stall_cycles += u64::from(miss.stall_cycles);
            row.sets += sets.len() as u64;
            if miss.competing > 0 {
                row.competing += u64::from(miss.competing);
                row.competed += 1;
            }
            row.alignments[alignment] += 1;
            *row.insns.entry(miss.insn).or_default() += 1;
            if row.lines.len() < MAX_EXTENTS {
                row.lines.insert(miss.line());
            }
            let (start, end) = tracker.extent(miss.pid, miss.address);
            if row.extents.len() < MAX_EXTENTS || row.extents.contains_key(&(miss.pid, start)) {
                let extent = row.extents.entry((miss.pid, start)).or_insert((end, 0));
                extent.0 = extent.0.max(end);
                extent.1 += 1;
            }
        }
    }
}

/// log₂ of the largest alignment at whose pieces most of the lines have the same offset.
fn common_alignment_log2(window: &[Miss]) -> usize {
    let mut offsets: FxHashMap<u64, usize> = FxHashMap::default();
    for log2 in (LINE_LOG2 + 1..=MAX_ALIGN_LOG2).rev() {
        offsets.clear();
        for miss in window {
            *offsets.entry(miss.line() & ((1 << log2) - 1)).or_default() += 1;
        }
        let most = offsets.values().max().copied().unwrap_or(0);
        if most as f64 >= ALIGNED_SHARE * window.len() as f64 {
            return log2;
        }
    }
    LINE_LOG2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::RecordedData;
    use nearmiss_record::reference::Kind;
    use nearmiss_record::units::InsnId;

    const OBJECT: ObjectId = ObjectId(3);

    /// Conflict misses at the first level, of 64 sets, one a line address.
    fn watched(lines: impl Iterator<Item = u64>) -> Crowds {
        let tracker = Tracker::new(Box::new(RecordedData::default()), 10);
        let mut crowds = Crowds::new(&[64], 1);
        for address in lines {
            let record = Record::reference(Kind::Load, address, 8, 0, InsnId(9), address >> 12, 1);
            let mut outcome = Outcome { line_paddr: address & !63, stall_cycles: 7, ..Outcome::default() };
            outcome.missed[0] = Some(MissClass::Conflict);
            outcome.set[0] = (address / 64 % 64) as u32;
            crowds.met(0, 5, OBJECT, record, &outcome, &tracker);
        }
        crowds
    }

    #[test]
    fn a_walk_in_lock_step_crowds_though_it_passes_over_every_set() {
        // 32 buffers of 8 KiB: 1,024 steps of 8 bytes.
        let crowds = watched((0..1024 * 32).map(|i| (i % 32) * 8192 + i / 32 * 8));
        let row = &crowds.rows[&(0, OBJECT)];
        assert_eq!((row.misses, row.stall_cycles), (1024 * 32, 1024 * 32 * 7));
        // Eight steps of 32 misses fill a window, and a line.
        assert_eq!((row.sets(), row.alignment_bytes()), (1.0, 8192));
        assert_eq!((row.competing(), row.lines.len()), (32.0, 32 * 128));
        assert_eq!(row.insns[&9], 1024 * 32);
    }

    #[test]
    fn misses_that_are_spread_do_not() {
        let mut state = 1u64;
        let crowds = watched((0..10_000).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 40) % 4096 * 64
        }));
        assert!(crowds.rows.is_empty());
    }

    #[test]
    fn too_few_misses_to_judge_are_not_judged() {
        assert!(watched((0..255).map(|i| i % 32 * 4096)).rows.is_empty());
        assert_eq!(watched((0..256).map(|i| i % 32 * 4096)).rows[&(0, OBJECT)].misses, 256);
    }

    #[test]
    fn other_levels_and_classes_do_not_count() {
        let tracker = Tracker::new(Box::new(RecordedData::default()), 10);
        let mut crowds = Crowds::new(&[64], 1);
        let record = Record::reference(Kind::Load, 4096, 8, 0, InsnId(9), 1, 1);
        for _ in 0..1000 {
            let mut outcome = Outcome::default();
            outcome.missed[0] = Some(MissClass::Capacity);
            outcome.missed[1] = Some(MissClass::Conflict);
            crowds.met(0, 5, OBJECT, record, &outcome, &tracker);
        }
        assert!(crowds.rows.is_empty());
    }
}
