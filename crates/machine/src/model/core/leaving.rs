//! Stores in the order in which they leave the buffer.
//!
//! Stores leave in turn. Consecutive ones to one line leave two at a time, and a loop that stores to one line alone has
//! them all leave at once where the line is away for long. With a store to another line between, each waits for its turn.

/// Stores of a core up to some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Leaving {
    /// Line of the latest store.
    line: u64,
    /// The latest store leaves with the one before it.
    second: bool,
    turns: u64,
    /// Stores to another line than the store before.
    changes: u64,
}

impl Leaving {
    /// A store to this line is put behind the others.
    #[inline]
    pub fn store(&mut self, line: u64) {
        let same = line == self.line;
        self.second = same && !self.second;
        self.turns += u64::from(!self.second);
        self.changes += u64::from(!same);
        self.line = line;
    }

    /// Returns the turns in which the stores since an earlier moment leave; 0: all go to one line.
    pub fn turns_since(&self, before: &Leaving) -> u64 {
        if self.changes == before.changes { 0 } else { self.turns - before.turns }
    }
}

#[cfg(test)]
mod tests {
    use super::Leaving;

    fn turns(before: &[u64], since: &[u64]) -> u64 {
        let mut leaving = Leaving::default();
        before.iter().for_each(|line| leaving.store(*line));
        let earlier = leaving;
        since.iter().for_each(|line| leaving.store(*line));
        leaving.turns_since(&earlier)
    }

    #[test]
    fn stores_to_one_line_leave_two_at_a_time_and_others_in_turn() {
        assert_eq!(turns(&[7], &[8, 7]), 2);
        assert_eq!(turns(&[7], &[8, 9, 8, 7]), 4);
        assert_eq!(turns(&[7], &[8, 7, 7, 7]), 3, "the line's first two leave together");
        assert_eq!(turns(&[7], &[7, 8, 8, 7]), 2, "one leaves with the store before");
    }

    #[test]
    fn a_loop_that_stores_to_one_line_waits_for_no_turn() {
        assert_eq!([turns(&[7], &[7; 9]), turns(&[7, 7], &[7]), turns(&[7], &[])], [0; 3]);
        assert_eq!(turns(&[8], &[7]), 1);
    }
}
