//! Misses counted by kind of reference and class.

use nearmiss_record::model::{ByClass, LevelTally, MissClass};
use nearmiss_record::reference::Kind;

/// A row a kind, a column a class; some of either stay empty, so that no index needs a check.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Misses([[u64; 8]; 8]);

impl Misses {
    #[inline(always)]
    pub fn count(&mut self, kind: Kind, class: MissClass) {
        self.0[kind as usize & 7][class as usize & 7] += 1;
    }

    /// An atomic counts as a load.
    pub fn tally(&self) -> LevelTally {
        LevelTally {
            load_misses: self.of(&[Kind::Load, Kind::Atomic]),
            store_misses: self.of(&[Kind::Store]),
            fetch_misses: self.of(&[Kind::Fetch]),
        }
    }

    fn of(&self, kinds: &[Kind]) -> ByClass {
        std::array::from_fn(|class| kinds.iter().map(|&kind| self.0[kind as usize][class]).sum())
    }
}
