//! The paper's own swaps: one a period, of the tasks with the lowest scores, whether or not it promises anything; and
//! back if the score of the two fell. It cannot detect that a placement is the best one, so it leaves that one, too.

use crate::bitmaps::Bitmaps;
use crate::swap::{Step, Swap};

/// Swaps to try and to undo.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trials {
    /// The swap that is being tried, and both tasks' scores before it.
    tried: Option<(Swap, i32)>,
}

impl Trials {
    /// A period is over. Each domain has bitmaps of its own and the tasks of its word. After a swap that did harm, it
    /// is undone; otherwise the next is tried, between the two domains with the lowest of the lowest scores.
    pub fn period(&mut self, bitmaps: &[Bitmaps], domains: &[u64]) -> Step {
        if let Some((swap, before)) = self.tried.take()
            && both(bitmaps, domains, swap) < before
        {
            return Step::Undo(swap);
        }
        let lowest = |(bitmaps, tasks): (&Bitmaps, &u64)| {
            bitmaps.by_score(*tasks).first().map(|task| (bitmaps.score(*task, *tasks), *task))
        };
        let mut by_domain: Vec<(i32, usize)> = bitmaps.iter().zip(domains).filter_map(lowest).collect();
        by_domain.sort_unstable();
        let [(_, a), (_, b), ..] = by_domain[..] else { return Step::Stay };
        let swap = Swap { a, b };
        self.tried = Some((swap, both(bitmaps, domains, swap)));
        Step::Try(swap)
    }
}

/// Scores of two tasks where they are.
fn both(bitmaps: &[Bitmaps], domains: &[u64], swap: Swap) -> i32 {
    let score = |task: usize| {
        let here = bitmaps.iter().zip(domains).find(|(_, tasks)| *tasks >> task & 1 != 0);
        here.map_or(0, |(bitmaps, tasks)| bitmaps.score(task, *tasks))
    };
    score(swap.a) + score(swap.b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Affinity;

    /// Even numbers share well with one another, odd ones too, and an even one badly with an odd one.
    fn parity() -> Bitmaps {
        let mut bitmaps = Bitmaps::default();
        for a in 0..8 {
            (0..a).for_each(|b| bitmaps.set(a, b, if a % 2 == b % 2 { Affinity::High } else { Affinity::Low }));
        }
        bitmaps
    }

    #[test]
    fn the_best_placement_is_left_and_come_back_to() {
        let (bitmaps, mut trials) = ([parity(), parity()], Trials::default());
        let (best, worse) = ([0b0101_0101, 0b1010_1010], [0b0101_0110, 0b1010_1001]);
        let swap = Swap { a: 0, b: 1 };
        assert_eq!(trials.period(&bitmaps, &best), Step::Try(swap), "nothing to gain, and tried all the same");
        assert_eq!(trials.period(&bitmaps, &worse), Step::Undo(swap), "from 3 + 3 to −3 − 3");
        assert_eq!(trials.period(&bitmaps, &best), Step::Try(swap), "it learns nothing from that");
    }

    #[test]
    fn a_swap_that_did_no_harm_stays_and_the_next_one_follows() {
        let (bitmaps, mut trials) = ([parity(), parity()], Trials::default());
        // 0, 2, 4 and 7; 1, 3, 5 and 6.
        assert_eq!(trials.period(&bitmaps, &[0b1001_0101, 0b0110_1010]), Step::Try(Swap { a: 6, b: 7 }));
        assert_eq!(trials.period(&bitmaps, &[0b0101_0101, 0b1010_1010]), Step::Try(Swap { a: 0, b: 1 }));
    }

    #[test]
    fn a_table_of_each_domain_is_its_own_and_one_domain_has_nothing_to_swap() {
        let mut trials = Trials::default();
        // Nothing is known in the second domain: its first task has the lowest score, 0.
        let tables = [parity(), Bitmaps::default()];
        assert_eq!(trials.period(&tables, &[0b0000_0111, 0b0011_1000]), Step::Try(Swap { a: 1, b: 3 }));
        assert_eq!(Trials::default().period(&tables[..1], &[0b11]), Step::Stay);
        assert_eq!(Trials::default().period(&tables, &[0b11, 0]), Step::Stay);
    }
}
