//! Pairs of tasks on the two CPUs of a domain, while each of its tasks runs once.

use crate::bitmaps::{Bitmaps, MOST_TASKS};

/// Pairs of one epoch, in their order; the last task of an odd number runs alone. The first of each pair comes by the
/// order of the tasks, beginning with the `turn`-th; the one beside it is the next one in that order, unless the
/// bitmaps give a better one ([`Bitmaps::next`]): only the order inside an epoch changes, so that the choice is fair.
pub fn epoch(bitmaps: &Bitmaps, tasks: &[usize], turn: usize) -> Vec<(usize, Option<usize>)> {
    let mut queue: Vec<usize> = tasks.to_vec();
    queue.rotate_left(turn % tasks.len().max(1));
    let mut pairs = Vec::with_capacity(queue.len().div_ceil(2));
    while !queue.is_empty() {
        let first = queue.remove(0);
        let Some(&picked) = queue.first() else {
            pairs.push((first, None));
            break;
        };
        let runnable = queue.iter().filter(|task| **task < MOST_TASKS).fold(0u64, |map, task| map | 1 << task);
        let chosen = bitmaps.next(picked, Some(first), runnable);
        queue.retain(|task| *task != chosen);
        pairs.push((first, Some(chosen)));
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Affinity;

    #[test]
    fn each_task_runs_once_and_beside_one_that_it_shares_well_with() {
        let mut bitmaps = Bitmaps::default();
        (0..5).for_each(|a| {
            (0..a).for_each(|b| bitmaps.set(a, b, if a % 2 == b % 2 { Affinity::High } else { Affinity::Low }))
        });
        assert_eq!(epoch(&bitmaps, &[0, 1, 2, 3, 4], 0), [(0, Some(2)), (1, Some(3)), (4, None)]);
        assert_eq!(epoch(&bitmaps, &[0, 1, 2, 3, 4], 1), [(1, Some(3)), (2, Some(4)), (0, None)]);
        assert_eq!(epoch(&Bitmaps::default(), &[0, 1, 2, 3], 6), [(2, Some(3)), (0, Some(1))]);
        assert!(epoch(&bitmaps, &[], 3).is_empty());
    }
}
