//! Misses that repeat an earlier outcome: counted here, and added to the tables together.
//!
//! A miss adds to half a dozen rows, and most misses are like one a moment ago: the same instruction, calling context,
//! task and object, the same levels missed. The first of a kind goes to the tables at once, so that rows and their
//! limits come in the order of the run.

use super::ledger::Count;
use super::objects::ObjectId;
use crate::hashing;
use crate::observer::Outcome;
use nearmiss_record::reference::Record;

/// Context of a miss, and its outcome.
#[derive(Clone, Copy, Debug)]
pub(super) struct Miss {
    pub vcpu: usize,
    /// Row of the task.
    pub task: u32,
    pub context: u32,
    /// Object of a data reference.
    pub object: Option<ObjectId>,
    /// Was counted as a reference before.
    pub again: bool,
    pub record: Record,
    pub outcome: Outcome,
}

type Likeness = [u64; 4];

impl Miss {
    /// Equal for misses that add the same to the same rows, but for the number of cycles.
    #[inline]
    fn likeness(&self) -> Likeness {
        let outcome = &self.outcome;
        let missed = outcome.missed.iter().fold(0, |all, class| all << 4 | class.map_or(0, |class| class as u64 + 1));
        let read = outcome.read.map_or(0, |read| read as u64 + 1);
        let flags = u64::from(outcome.invalidated) << 3
            | u64::from(outcome.stall_cycles > 0) << 4
            | u64::from(self.again) << 5
            | u64::from(self.object.is_some()) << 6;
        let bytes = [outcome.write_backs, outcome.nt_full, outcome.nt_partial, outcome.home, self.vcpu as u8, 0, 0, 0];
        [
            u64::from(self.record.insn().0) | u64::from(self.context) << 32,
            u64::from(self.task) | u64::from(self.object.map_or(0, |object| object.0)) << 32,
            // Kind and flags, without size and address.
            self.record.a >> 48 & 0xfc0f | missed << 16 | read << 32 | flags << 32,
            u64::from_le_bytes(bytes),
        ]
    }
}

const KINDS: usize = 64;

#[derive(Debug)]
struct Kind {
    likeness: Likeness,
    miss: Miss,
    more: Count,
}

/// Kinds of recent misses, and how many of each are not in the tables yet.
#[derive(Debug)]
pub(super) struct Repeats {
    kinds: Vec<Option<Kind>>,
}

impl Default for Repeats {
    fn default() -> Self {
        Repeats { kinds: (0..KINDS).map(|_| None).collect() }
    }
}

impl Repeats {
    /// Notes a miss. A miss like a remembered one makes nothing due. Any other returns itself and the misses of the
    /// kind that it replaces, if there are any.
    #[inline]
    pub fn note(&mut self, miss: &Miss) -> Option<(Option<(Miss, Count)>, Count)> {
        let likeness = miss.likeness();
        let [a, b, c, d] = likeness;
        let at = hashing::place(a ^ b.rotate_left(21) ^ c.rotate_left(42) ^ d, KINDS.ilog2());
        let once = Count::once(&miss.outcome);
        let place = &mut self.kinds[at];
        if let Some(kind) = place.as_mut().filter(|kind| kind.likeness == likeness) {
            kind.more.times += 1;
            kind.more.stall_cycles += once.stall_cycles;
            return None;
        }
        let before = place.replace(Kind { likeness, miss: *miss, more: Count::default() });
        let due = before.filter(|kind| kind.more.times > 0).map(|kind| (kind.miss, kind.more));
        Some((due, once))
    }

    /// Returns the misses that are not in the tables yet, and empties the list.
    pub fn drain(&mut self) -> Vec<(Miss, Count)> {
        let kinds = self.kinds.iter_mut().filter_map(Option::take);
        kinds.filter(|kind| kind.more.times > 0).map(|kind| (kind.miss, kind.more)).collect()
    }
}
