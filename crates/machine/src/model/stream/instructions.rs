//! Instructions a CPU executed, from the records' bytes and the chunks' totals.

/// Counts each instruction once, though a chunk's total may run ahead of the records' bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Instructions {
    /// Sum of the records' bytes.
    recorded: u64,
    /// Counted so far.
    counted: u64,
}

impl Instructions {
    /// Adds the `more` instructions of a record since the one before. Returns how many of them are new.
    #[inline]
    pub fn record(&mut self, more: u64) -> u64 {
        self.recorded += more;
        let new = self.recorded.saturating_sub(self.counted);
        self.counted += new;
        new
    }

    /// The CPU is `more` instructions behind its latest record, which a later record counts. Returns how many of them are
    /// new.
    pub fn ahead(&mut self, more: u64) -> u64 {
        self.chunk(self.recorded.saturating_add(more))
    }

    /// A chunk ends at `total`. Returns how many of them are new.
    pub fn chunk(&mut self, total: u64) -> u64 {
        let new = total.saturating_sub(self.counted);
        self.counted += new;
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_that_a_chunk_counted_ahead_are_not_counted_again() {
        let mut i = Instructions::default();
        assert_eq!(i.record(255), 255);
        assert_eq!(i.chunk(300), 45);
        assert_eq!(i.record(50), 5, "45 of these were in the chunk's total");
        assert_eq!(i.chunk(305), 0);
        assert_eq!([i.ahead(7), i.ahead(9), i.record(20)], [7, 2, 11], "counted once");
    }
}
