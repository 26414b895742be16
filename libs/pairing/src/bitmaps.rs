//! Affinities as the paper keeps them: two bits a pair, and the choices that are an AND of two bitmaps.

use crate::table::{Affinity, PairTable};

/// Tasks of a table: the bits of a word.
pub const MOST_TASKS: usize = 64;

/// Tasks that share well with a task, and those that share badly, by task, a bit each. A task in neither is unknown, or
/// neither good nor bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bitmaps {
    high: [u64; MOST_TASKS],
    low: [u64; MOST_TASKS],
}

impl Default for Bitmaps {
    fn default() -> Self {
        Bitmaps { high: [0; MOST_TASKS], low: [0; MOST_TASKS] }
    }
}

impl Bitmaps {
    /// Takes those pairs of a table that are certain enough; tasks from the 65th on have no bit.
    pub fn of(table: &PairTable, least_confidence: f64) -> Self {
        let mut bitmaps = Bitmaps::default();
        let Some(mean) = table.mean() else { return bitmaps };
        for (a, b) in table.pairs() {
            bitmaps.set(a, b, table.judge(a, b, mean, least_confidence).affinity);
        }
        bitmaps
    }

    /// Sets what is known of a pair, both ways.
    pub fn set(&mut self, a: usize, b: usize, affinity: Affinity) {
        if a >= MOST_TASKS || b >= MOST_TASKS {
            return;
        }
        for (task, other) in [(a, b), (b, a)] {
            let bit = 1 << other;
            self.high[task] &= !bit;
            self.low[task] &= !bit;
            match affinity {
                Affinity::High => self.high[task] |= bit,
                Affinity::Low => self.low[task] |= bit,
                Affinity::Unknown => {}
            }
        }
    }

    /// Returns the affinity of a pair.
    pub fn affinity(&self, a: usize, b: usize) -> Affinity {
        let has = |map: u64| b < MOST_TASKS && map >> b & 1 != 0;
        match (has(self.high_of(a)), has(self.low_of(a))) {
            (true, _) => Affinity::High,
            (_, true) => Affinity::Low,
            _ => Affinity::Unknown,
        }
    }

    /// Returns the tasks that share well with a task.
    pub fn high_of(&self, task: usize) -> u64 {
        self.high.get(task).copied().unwrap_or(0)
    }

    /// Returns the tasks that share badly with a task.
    pub fn low_of(&self, task: usize) -> u64 {
        self.low.get(task).copied().unwrap_or(0)
    }

    /// The task to run next beside `beside`: the one that the scheduler picked, unless the two share badly and one of
    /// the `runnable` shares well with `beside`; then the first of those behind the picked one, in the order of numbers
    /// and around, so that none is preferred.
    pub fn next(&self, picked: usize, beside: Option<usize>, runnable: u64) -> usize {
        let Some(beside) = beside else { return picked };
        if self.affinity(picked, beside) != Affinity::Low {
            return picked;
        }
        let good = self.high_of(beside) & runnable & !bit(beside);
        if good == 0 {
            return picked;
        }
        let turn = (picked % MOST_TASKS) as u32;
        (good.rotate_right(turn).trailing_zeros() + turn) as usize % MOST_TASKS
    }

    /// Partners of `among` that share well with a task, less those that share badly.
    pub fn score(&self, task: usize, among: u64) -> i32 {
        let among = among & !bit(task);
        (self.high_of(task) & among).count_ones() as i32 - (self.low_of(task) & among).count_ones() as i32
    }

    /// Tasks in the order in which they migrate: the lowest score among them first, then by number.
    pub fn by_score(&self, tasks: u64) -> Vec<usize> {
        let mut list: Vec<usize> = (0..MOST_TASKS).filter(|task| tasks >> task & 1 != 0).collect();
        list.sort_by_key(|task| (self.score(*task, tasks), *task));
        list
    }
}

fn bit(task: usize) -> u64 {
    if task < MOST_TASKS { 1 << task } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tasks 0, 1 and 2 share well, and badly with 3.
    fn three_and_one() -> Bitmaps {
        let mut bitmaps = Bitmaps::default();
        [(0, 1), (1, 2), (0, 2)].into_iter().for_each(|(a, b)| bitmaps.set(a, b, Affinity::High));
        (0..3).for_each(|task| bitmaps.set(task, 3, Affinity::Low));
        bitmaps
    }

    #[test]
    fn the_picked_task_gives_way_only_where_it_shares_badly_and_another_shares_well() {
        let bitmaps = three_and_one();
        assert_eq!(bitmaps.next(3, Some(0), 0b1110), 1, "the first behind 3, and around");
        assert_eq!(bitmaps.next(3, Some(0), 0b1000), 3, "nobody else can run");
        assert_eq!(bitmaps.next(2, Some(0), 0b1110), 2, "it shares well");
        assert_eq!(bitmaps.next(5, Some(0), 0b1110), 5, "nothing is known of it");
        assert_eq!(bitmaps.next(3, None, 0b1110), 3, "nobody is beside");
        assert_eq!(bitmaps.next(0, Some(3), 0b0111), 0, "nobody shares well with 3");
    }

    #[test]
    fn scores_are_partners_that_share_well_less_those_that_do_not() {
        let bitmaps = three_and_one();
        let scores: Vec<i32> = (0..5).map(|task| bitmaps.score(task, 0b11111)).collect();
        assert_eq!(scores, [1, 1, 1, -3, 0]);
        assert_eq!(bitmaps.by_score(0b11011), [3, 0, 1, 4]);
    }

    #[test]
    fn tasks_beyond_the_table_have_no_bit() {
        let mut bitmaps = Bitmaps::default();
        bitmaps.set(1, 64, Affinity::High);
        assert_eq!(bitmaps, Bitmaps::default());
        assert_eq!((bitmaps.affinity(64, 1), bitmaps.score(70, u64::MAX)), (Affinity::Unknown, 0));
        bitmaps.set(63, 0, Affinity::High);
        bitmaps.set(0, 1, Affinity::Low);
        assert_eq!(bitmaps.next(1, Some(0), u64::MAX), 63);
        bitmaps.set(63, 0, Affinity::Unknown);
        assert_eq!(bitmaps.next(1, Some(0), u64::MAX), 1);
    }

    #[test]
    fn a_table_gives_bits_for_what_is_certain() {
        let mut table = PairTable::new(3);
        for (a, b, ratio) in [(0, 1, 1.0), (0, 2, 2.0)] {
            (0..3).for_each(|_| {
                table.add(a, b, ratio);
                table.add(b, a, ratio);
            });
        }
        table.add(1, 2, 9.0);
        let bitmaps = Bitmaps::of(&table, 0.9);
        let of = |a, b| bitmaps.affinity(a, b);
        assert_eq!([of(0, 1), of(2, 0), of(1, 2)], [Affinity::High, Affinity::Low, Affinity::Unknown]);
    }
}
