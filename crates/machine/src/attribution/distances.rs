//! Misses of each object in caches of other sizes.
//!
//! A sample of the lines gives them at a small price: all references to one line in 64, chosen by a hash of its address,
//! in caches that are as much smaller (Waldspurger, Park, Garthwaite and Ahmad, "Efficient MRC Construction with
//! SHARDS", FAST 2015).

use super::objects::ObjectId;
use crate::curve::Stack;
use crate::hashing;
use nearmiss_record::model::MissRatioCurve;
use rustc_hash::FxHashMap;

/// Lines to each one that is followed, log₂.
const LINES_TO_ONE_LOG2: u32 = 6;
/// Smallest and largest cache, log₂ of bytes.
const SIZES_LOG2: std::ops::RangeInclusive<u32> = 18..=30;
/// Followed references below which an object has no curve.
const LEAST_FOLLOWED: u64 = 256;

/// Counts the references to each object by how many of the cache sizes they miss.
#[derive(Clone, Debug)]
pub(super) struct Distances {
    stack: Stack,
    line_log2: u32,
    /// References by how many of the sizes they miss.
    by_object: FxHashMap<ObjectId, Vec<u64>>,
}

impl Distances {
    /// Takes lines of `line_bytes`, a power of two, and caches from 256 KiB to 1 GiB, two to each doubling.
    pub fn new(line_bytes: u32) -> Self {
        let line_log2 = line_bytes.max(1).ilog2();
        let stack = Stack::new(sizes().map(|bytes| bytes >> line_log2 >> LINES_TO_ONE_LOG2).collect());
        Distances { stack, line_log2, by_object: FxHashMap::default() }
    }

    /// Counts a reference to an object that missed the first level, at a physical address.
    #[inline]
    pub fn missed(&mut self, object: ObjectId, address: u64) {
        let line = address >> self.line_log2;
        if is_followed(line) {
            let missing = self.stack.reference(line);
            let counts = self.by_object.entry(object).or_insert_with(|| vec![0; sizes().count() + 1]);
            counts[missing] += 1;
        }
    }

    /// Returns references by how many of the sizes they miss; empty for an object that was not followed.
    pub fn of(&self, object: ObjectId) -> &[u64] {
        self.by_object.get(&object).map_or(&[], Vec::as_slice)
    }
}

/// Returns the curve of counts that [`Distances::of`] returned, added up.
pub(super) fn curve(counts: &[u64]) -> Option<MissRatioCurve> {
    let followed: u64 = counts.iter().sum();
    let points = sizes().enumerate().map(|(at, bytes)| {
        let misses: u64 = counts.iter().skip(at + 1).sum();
        (bytes, misses << LINES_TO_ONE_LOG2)
    });
    (followed >= LEAST_FOLLOWED).then(|| MissRatioCurve {
        exact: false,
        references: followed << LINES_TO_ONE_LOG2,
        points: points.collect(),
    })
}

/// Bytes of the caches, ascending.
fn sizes() -> impl Iterator<Item = u64> {
    SIZES_LOG2.flat_map(|log2| [1 << log2, 3 << (log2 - 1)])
}

fn is_followed(line: u64) -> bool {
    hashing::place(line, LINES_TO_ONE_LOG2) == 0
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use nearmiss_record::units::Bytes;

    const MIB: u64 = 1 << 20;

    /// Misses of an object of so many bytes that is read so many times from end to end, and the references.
    fn passes(bytes: u64, times: u64) -> MissRatioCurve {
        let mut distances = Distances::new(64);
        (0..times).for_each(|_| (0..bytes).step_by(64).for_each(|at| distances.missed(ObjectId(7), at)));
        curve(distances.of(ObjectId(7))).unwrap()
    }

    #[test]
    fn an_object_that_is_read_again_fits_a_cache_of_its_size_and_no_smaller_one() {
        let curve = passes(20 * MIB, 10);
        let at = |bytes| curve.points.iter().find(|point| point.0 == bytes).unwrap().1;
        assert_eq!(at(16 * MIB), curve.references, "every line has left before it is used again");
        assert_eq!(at(24 * MIB) * 10, curve.references, "the first pass alone");
        let lines = 10 * 20 * MIB / 64;
        assert!(curve.references.abs_diff(lines) * 20 < lines, "{} of {lines}", curve.references);
        assert_eq!(curve.least_dividing(Bytes(7 * MIB), 10), Some(Bytes(24 * MIB)));
        assert_eq!(curve.least_dividing(Bytes(7 * MIB), 11), None, "the first pass misses everywhere");
    }

    #[test]
    fn an_object_is_counted_apart_from_others_but_beside_them() {
        let mut distances = Distances::new(64);
        for _ in 0..10 {
            (0..5 * MIB).step_by(64).for_each(|at| distances.missed(ObjectId(1), at));
            (0..5 * MIB).step_by(64).for_each(|at| distances.missed(ObjectId(2), 1 << 30 | at));
        }
        let one = curve(distances.of(ObjectId(1))).unwrap();
        assert!(one.references < 11 * 5 * MIB / 64);
        assert_eq!(one.least_dividing(Bytes(6 * MIB), 10), Some(Bytes(12 * MIB)), "both lie between its uses");
        assert_eq!(curve(distances.of(ObjectId(3))), None);
    }
}
