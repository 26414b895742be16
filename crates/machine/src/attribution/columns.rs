//! Loops in the wrong order: misses of one instruction that walk down columns.
//!
//! A walk is a run of misses at one distance of some lines, as down a column of a matrix whose rows lie one after another.
//! Where the next walk of the instruction begins a part of a line beside the last one, each line is fetched again for its
//! next part: the loops are nested the other way round than memory is.

use nearmiss_record::model::Columns;
use nearmiss_record::reference::Record;
use rustc_hash::FxHashMap;

/// Walks under way, by instruction and CPU.
const TRACKS: usize = 1 << 9;
/// Walks of an instruction that are remembered: rows that do not all lie at one distance part a column into several.
const REMEMBERED: usize = 16;
/// Misses of a walk, at least.
const LEAST_MISSES: u32 = 8;
/// Steps of a walk between two misses, at most: the lines between may still be in a cache.
const MOST_STEPS: i64 = 8;

#[derive(Clone, Copy, Debug, Default)]
struct Walk {
    start: u64,
    stride: i64,
    misses: u32,
    stall_cycles: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Track {
    key: (u32, u32),
    last: u64,
    walk: Walk,
    before: [Walk; REMEMBERED],
    oldest: usize,
}

/// Watches misses of data; see the module's text.
#[derive(Debug)]
pub(super) struct ColumnWalks {
    line_bytes: u64,
    tracks: Vec<Track>,
    rows: FxHashMap<u32, Columns>,
}

impl ColumnWalks {
    pub fn new(line_bytes: u32) -> Self {
        let none = Track { key: (u32::MAX, u32::MAX), ..Track::default() };
        ColumnWalks { line_bytes: line_bytes.into(), tracks: vec![none; TRACKS], rows: FxHashMap::default() }
    }

    /// Adds a miss of a load or store on `vcpu`.
    #[inline]
    pub fn miss(&mut self, vcpu: usize, record: Record, stall_cycles: u32) {
        let (key, address) = ((record.insn().0, vcpu as u32), record.vaddr());
        let track = &mut self.tracks[(key.0.wrapping_mul(31).wrapping_add(key.1)) as usize % TRACKS];
        let begun = Walk { start: address, stride: 0, misses: 1, stall_cycles: stall_cycles.into() };
        if track.key != key {
            *track = Track { key, last: address, walk: begun, ..Track::default() };
            return;
        }
        let step = address.wrapping_sub(track.last) as i64;
        track.last = address;
        if track.walk.goes_on(step, self.line_bytes) {
            track.walk.misses = track.walk.misses.saturating_add(1);
            track.walk.stall_cycles += u64::from(stall_cycles);
            return;
        }
        if let Some(walked) = track.ended(begun, self.line_bytes) {
            *self.rows.entry(key.0).or_default() += walked;
        }
    }

    /// Returns the walks of an instruction, if it has any.
    pub fn of(&self, insn: u32) -> Option<Columns> {
        self.rows.get(&insn).copied()
    }
}

impl Track {
    /// Begins another walk. Returns the one that ended, if it went down the column beside that of a remembered one.
    fn ended(&mut self, begun: Walk, line_bytes: u64) -> Option<Columns> {
        let walk = std::mem::replace(&mut self.walk, begun);
        if walk.misses < LEAST_MISSES {
            return None;
        }
        let beside = self.before.iter().filter_map(|before| walk.beside(before, line_bytes));
        let nearest = beside.min_by_key(|columns| columns.step_bytes);
        self.before[self.oldest] = walk;
        self.oldest = (self.oldest + 1) % REMEMBERED;
        nearest
    }
}

impl Walk {
    /// Whether a miss so far from the last one belongs to it. The first step decides its stride.
    fn goes_on(&mut self, step: i64, line_bytes: u64) -> bool {
        if self.stride == 0 && step.unsigned_abs() >= 2 * line_bytes {
            self.stride = step;
        }
        self.stride != 0 && step % self.stride == 0 && (1..=MOST_STEPS).contains(&(step / self.stride))
    }

    /// Returns the columns of the walk, if it goes down the column beside that of the walk `before`.
    fn beside(&self, before: &Walk, line_bytes: u64) -> Option<Columns> {
        let step_bytes = self.start.abs_diff(before.start);
        (self.stride == before.stride && (1..line_bytes).contains(&step_bytes)).then_some(Columns {
            misses: self.misses.into(),
            stall_cycles: self.stall_cycles,
            stride_bytes: self.stride.unsigned_abs(),
            step_bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearmiss_record::reference::Kind;
    use nearmiss_record::units::InsnId;

    const ROW_BYTES: u64 = 4096;

    fn walked(addresses: impl Iterator<Item = u64>) -> Option<Columns> {
        let mut walks = ColumnWalks::new(64);
        for address in addresses {
            let record = Record::reference(Kind::Load, address, 8, 0, InsnId(5), address >> 12, 1);
            walks.miss(0, record, 10);
        }
        walks.of(5)
    }

    fn by_columns(columns: u64, rows: u64) -> impl Iterator<Item = u64> {
        (0..columns).flat_map(move |column| (0..rows).map(move |row| 0x10000 + row * ROW_BYTES + column * 8))
    }

    #[test]
    fn columns_side_by_side_are_walked_and_the_first_and_last_one_are_left_out() {
        let expected = Columns { misses: 3 * 100, stall_cycles: 3 * 1000, stride_bytes: ROW_BYTES, step_bytes: 8 };
        assert_eq!(walked(by_columns(5, 100)), Some(expected));
    }

    #[test]
    fn rows_and_short_columns_and_one_column_again_and_again_are_none() {
        assert_eq!(walked((0..10_000).map(|at| 0x10000 + at * 64)), None, "lines in order");
        assert_eq!(walked(by_columns(100, 4)), None, "too short to be seen as walks");
        assert_eq!(walked((0..10).flat_map(|_| by_columns(1, 100))), None, "the same column");
    }

    #[test]
    fn columns_of_rows_at_two_distances_are_walked() {
        let gap = |address: u64| if address / ROW_BYTES % 128 >= 64 { address + 400 } else { address };
        assert_eq!(walked(by_columns(5, 100).map(gap)).map(|walked| walked.misses), Some(3 * 100 + 48));
    }

    #[test]
    fn columns_of_rows_that_a_growing_table_parted_are_walked() {
        // Rows lie one after another but where a table of 8, 16, 32, … pointers was allocated between two of them.
        let gap = |address: u64| address + 400 * u64::from(((address - 0x10000) / ROW_BYTES).max(4).ilog2());
        let whole = walked(by_columns(5, 2600).map(gap)).map(|walked| walked.misses);
        assert_eq!(whole, Some(3 * 2600 + 2048));
    }

    #[test]
    fn a_line_that_is_still_in_a_cache_does_not_end_a_walk() {
        let with_gaps = by_columns(5, 100).filter(|address| address / ROW_BYTES % 10 != 3);
        assert_eq!(walked(with_gaps).map(|walked| walked.misses), Some(3 * 90));
    }
}
