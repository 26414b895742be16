//! Many caches from one pass: misses over fully associative sizes, and over all LRU geometries of one line size.

mod geometries;
mod stack;

pub use geometries::Geometries;
pub use stack::Stack;

use crate::observer::{Effective, Observer, Outcome};
use nearmiss_record::model::MissRatioCurve;
use nearmiss_record::reference::{Control, Kind};

/// Listens to a replay and gives the miss-ratio curve of its data references.
#[derive(Clone, Debug)]
pub struct Curve {
    stack: Stack,
    line_log2: u32,
}

/// Smallest and largest cache of the curve, log₂ of bytes.
const SIZES_LOG2: std::ops::RangeInclusive<u32> = 10..=28;

impl Curve {
    /// For lines of `line_bytes`, a power of two: sizes from 1 KiB to 256 MiB, two to each doubling.
    pub fn new(line_bytes: u32) -> Self {
        let line_log2 = line_bytes.max(1).ilog2();
        let sizes = SIZES_LOG2.flat_map(|log2| [1u64 << log2, 3 << (log2 - 1)]);
        Curve { stack: Stack::new(sizes.map(|bytes| (bytes >> line_log2).max(1)).collect()), line_log2 }
    }

    /// A reference to the line of an address.
    #[inline]
    pub fn reference(&mut self, address: u64) {
        self.stack.reference(address >> self.line_log2);
    }

    /// The curve. `dropped`: references that the filter dropped, hits in every size. `exact`: the filter dropped only
    /// repeats of the very last line.
    pub fn finish(self, dropped: u64, exact: bool) -> MissRatioCurve {
        MissRatioCurve {
            exact,
            references: self.stack.references() + dropped,
            points: self.stack.misses().map(|(lines, misses)| (lines << self.line_log2, misses)).collect(),
        }
    }

    fn count(&mut self, reference: &Effective) {
        if matches!(reference.kind, Kind::Load | Kind::Store | Kind::Atomic) {
            self.reference(reference.address);
        }
    }
}

impl Observer for Curve {
    fn control(&mut self, _: u32, _: &Control<'_>) {}
    fn hit(&mut self, reference: &Effective) {
        self.count(reference);
    }
    fn miss(&mut self, reference: &Effective, _: &Outcome) {
        self.count(reference);
    }
    fn instructions(&mut self, _: u32, _: u64) {}
}
