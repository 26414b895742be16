//! An aligned block of 2 MiB of a process's memory.

use super::super::objects::ObjectId;
use super::{LookUps, PAGE_LOG2};

/// Small pages of a block, a bit each.
const WORDS: usize = 8;

/// State of a block, as far as it was recorded.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    touched: [u64; WORDS],
    /// Pages that were there before the first touch of another one. A page that is touched for the first time later was
    /// read only: a read of fresh memory leads to the kernel's page of zeros.
    there_before: [u64; WORDS],
    /// Pages touched for the first time.
    pub first_touches: u64,
    /// The block lay in a large page as recorded.
    pub is_large: bool,
    /// Look-ups by object, in the order in which objects came.
    pub objects: Vec<(ObjectId, LookUps)>,
}

impl Block {
    /// Notes a reference to one of the block's pages.
    pub fn touch(&mut self, vaddr: u64, is_first: bool, is_large: bool) {
        let page = (vaddr >> PAGE_LOG2) as usize % (64 * WORDS);
        let (word, bit) = (page / 64, 1 << (page % 64));
        self.touched[word] |= bit;
        if is_first {
            self.there_before[word] &= !bit;
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

    /// Adds look-ups of an object.
    pub fn look_up(&mut self, object: ObjectId, more: LookUps) {
        match self.objects.iter_mut().find(|(known, _)| *known == object) {
            Some((_, look_ups)) => *look_ups += more,
            None => self.objects.push((object, more)),
        }
    }

    /// Number of pages that were touched.
    pub fn pages(&self) -> u64 {
        self.touched.iter().map(|word| u64::from(word.count_ones())).sum()
    }
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

    #[test]
    fn a_block_is_fresh_when_no_page_was_there_before() {
        assert!(fresh(&[(3, true), (4, true), (3, false), (5, false)]));
        assert!(!fresh(&[(3, false), (4, true)]));
        assert!(!fresh(&[(3, false)]));
        assert!(fresh(&[(3, false), (4, false), (4, true), (3, true)]), "both were read as zeros before");
    }
}
