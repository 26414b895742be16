//! An aligned block of 2 MiB of a process's memory.

use super::super::objects::ObjectId;
use super::{LookUps, PAGE_LOG2};

/// Words of a bit for each small page of a block.
const WORDS: usize = 8;
const PAGES: usize = 64 * WORDS;

/// State of a block, as far as it was recorded.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    touched: [u64; WORDS],
    /// Pages that were there before the first touch of another one. A page that is touched for the first time later was
    /// read only: a read of fresh memory leads to the kernel's page of zeros.
    there_before: [u64; WORDS],
    /// Pages that were touched for the first time.
    cleared: [u64; WORDS],
    /// First touches: more than such pages if the memory was given back and came again.
    pub first_touches: u64,
    /// The block lay in a large page as recorded.
    pub is_large: bool,
    /// Look-ups by object, in the order in which objects came.
    pub objects: Vec<(ObjectId, LookUps)>,
}

impl Block {
    /// Notes a reference to one of the block's pages.
    pub fn touch(&mut self, vaddr: u64, is_first: bool, is_large: bool) {
        let page = (vaddr >> PAGE_LOG2) as usize % PAGES;
        let (word, bit) = (page / 64, 1 << (page % 64));
        self.touched[word] |= bit;
        if is_first {
            self.there_before[word] &= !bit;
            self.cleared[word] |= bit;
        } else if self.first_touches == 0 {
            self.there_before[word] |= bit;
        }
        self.first_touches += u64::from(is_first);
        self.is_large |= is_large;
    }

    /// Whether nothing of it was there before its first touch: in a large page all of it would be cleared then.
    pub fn is_fresh(&self) -> bool {
        self.first_touches > 0 && self.there_before == [0; WORDS]
    }

    /// Page faults that the first touches were in a large page: one for each time that the block was cleared. `in_parts`:
    /// the rest of the block may have been touched in pauses of the recording, before or after. The pages that were seen
    /// are then taken for a sample: where all from the first to the last were touched, those beyond were as well.
    pub fn large_faults(&self, in_parts: bool) -> f64 {
        let pages = count(&self.cleared);
        if !self.is_fresh() || pages == 0 {
            return 0.0;
        }
        let times = self.first_touches as f64 / pages as f64;
        if in_parts { times * self.cleared_span() as f64 / PAGES as f64 } else { times }
    }

    /// Pages from the first to the last one that were touched for the first time.
    fn cleared_span(&self) -> usize {
        let has = |page: &usize| self.cleared[page / 64] >> (page % 64) & 1 == 1;
        let ends = (0..PAGES).find(has).zip((0..PAGES).rfind(has));
        ends.map_or(0, |(first, last)| last + 1 - first)
    }

    /// Adds look-ups of an object.
    pub fn look_up(&mut self, object: ObjectId, more: LookUps) {
        match self.objects.iter_mut().find(|(known, _)| *known == object) {
            Some((_, look_ups)) => *look_ups += more,
            None => self.objects.push((object, more)),
        }
    }

    /// Number of pages that were touched.
    pub fn pages(&self) -> u64 {
        count(&self.touched)
    }
}

fn count(pages: &[u64; WORDS]) -> u64 {
    pages.iter().map(|word| u64::from(word.count_ones())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Touches pages of a block in this order, each for the first time or not.
    fn fresh(touches: &[(u64, bool)]) -> bool {
        let mut block = Block::default();
        touches.iter().for_each(|(page, is_first)| block.touch(page << PAGE_LOG2, *is_first, false));
        block.is_fresh()
    }

    fn faults(pages: impl IntoIterator<Item = u64>, in_parts: bool) -> f64 {
        let mut block = Block::default();
        pages.into_iter().for_each(|page| block.touch(page << PAGE_LOG2, true, false));
        block.large_faults(in_parts)
    }

    #[test]
    fn a_large_page_takes_a_fault_each_time_that_its_block_is_cleared() {
        assert_eq!([faults(0..512, false), faults(0..3, false), faults([], false)], [1.0, 1.0, 0.0]);
        assert_eq!(faults((0..3).flat_map(|_| 0..512), false), 3.0);
    }

    #[test]
    fn a_part_of_a_block_that_is_walked_takes_a_part_of_a_fault() {
        assert_eq!(faults(100..132, true), 32.0 / 512.0);
        assert_eq!(faults((0..512).step_by(73), true), 1.0, "a block that is touched here and there");
        assert_eq!([faults(0..512, true), faults((0..2).flat_map(|_| 0..512), true)], [1.0, 2.0]);
    }

    #[test]
    fn a_block_is_fresh_when_no_page_was_there_before() {
        assert!(fresh(&[(3, true), (4, true), (3, false), (5, false)]));
        assert!(!fresh(&[(3, false), (4, true)]));
        assert!(!fresh(&[(3, false)]));
        assert!(fresh(&[(3, false), (4, false), (4, true), (3, true)]), "both were read as zeros before");
    }
}
