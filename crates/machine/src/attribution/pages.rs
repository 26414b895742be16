//! Physical pages that user mode was seen to use.

/// A physical page number has 28 bits in a record.
const MAX_WORDS: usize = 1 << (28 - 6);

/// A set of page numbers: a bit a page, up to the largest seen.
#[derive(Debug, Default)]
pub(super) struct PageSet {
    words: Vec<u64>,
}

impl PageSet {
    #[inline]
    pub fn insert(&mut self, page: u64) {
        let word = (page >> 6) as usize;
        if word >= self.words.len() {
            self.words.resize((word + 1).min(MAX_WORDS), 0);
        }
        if let Some(word) = self.words.get_mut(word) {
            *word |= 1 << (page & 63);
        }
    }

    pub fn contains(&self, page: u64) -> bool {
        self.words.get((page >> 6) as usize).is_some_and(|word| word >> (page & 63) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::PageSet;

    #[test]
    fn only_what_was_put_in_is_in() {
        let mut set = PageSet::default();
        for page in [0, 63, 64, 1000, (1 << 28) - 1, 1 << 40] {
            set.insert(page);
        }
        let there = [0, 1, 63, 64, 65, 1000, (1 << 28) - 1].map(|page| set.contains(page));
        assert_eq!(there, [true, false, true, true, false, true, true]);
        assert!(!set.contains(1 << 40), "no record has such a page");
    }
}
