//! The first rows of a table, and one row for all the others: what is shown always adds up to the whole.

use nearmiss_record::model::Tally;

/// The first rows of a table by stall cycles, and the rest as one.
#[derive(Clone, Debug)]
pub struct Ranking<'a, T> {
    /// Rows shown, heaviest first.
    pub shown: Vec<(&'a T, Tally)>,
    /// Sum of the rows not shown.
    pub rest: Tally,
    /// How many those are.
    pub rest_rows: usize,
    /// Sum of all rows.
    pub total: Tally,
}

impl<'a, T> Ranking<'a, T> {
    /// The `top` heaviest of `rows`.
    pub fn new(rows: &'a [T], top: usize, tally: impl Fn(&T) -> Tally) -> Self {
        let mut shown: Vec<(&T, Tally)> = rows.iter().map(|row| (row, tally(row))).collect();
        // Stable: rows of equal weight stay in the record's order.
        shown.sort_by_key(|(_, t)| std::cmp::Reverse(weight(t)));
        let sum = |rows: &[(&T, Tally)]| {
            rows.iter().fold(Tally::default(), |mut sum, (_, t)| {
                sum += t;
                sum
            })
        };
        let total = sum(&shown);
        // A row for one other row would save nothing.
        let keep = if shown.len() == top + 1 { shown.len() } else { top.min(shown.len()) };
        let others = shown.split_off(keep);
        Ranking { rest: sum(&others), rest_rows: others.len(), shown, total }
    }

    /// One figure of each shown row and, where there is one, of the rest: in the order in which they are printed.
    pub fn column(&self, figure: impl Fn(&Tally) -> u64) -> Vec<u64> {
        let rest = (self.rest_rows > 0).then(|| figure(&self.rest));
        self.shown.iter().map(|(_, t)| figure(t)).chain(rest).collect()
    }
}

/// Weight of a row: stall cycles, then misses of the outermost level, then of those nearer.
fn weight(tally: &Tally) -> (u64, Vec<u64>, u64) {
    (tally.stall_cycles, tally.levels.iter().rev().map(|l| l.misses()).collect(), tally.cycles)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(stall_cycles: u64) -> Tally {
        Tally { stall_cycles, cycles: stall_cycles * 2, ..Tally::default() }
    }

    #[test]
    fn shown_and_rest_are_the_whole() {
        let rows = [row(5), row(9), row(1), row(7)];
        let ranking = Ranking::new(&rows, 2, Clone::clone);
        assert_eq!(ranking.shown.iter().map(|(_, t)| t.stall_cycles).collect::<Vec<_>>(), [9, 7]);
        assert_eq!((ranking.rest_rows, ranking.rest.stall_cycles, ranking.total.stall_cycles), (2, 6, 22));
        assert_eq!(ranking.column(|t| t.cycles), [18, 14, 12]);
    }

    #[test]
    fn one_row_more_is_shown_rather_than_hidden() {
        let rows = [row(5), row(9), row(1)];
        let ranking = Ranking::new(&rows, 2, Clone::clone);
        assert_eq!((ranking.shown.len(), ranking.rest_rows), (3, 0));
    }
}
