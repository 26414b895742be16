//! The best grouping of few tasks, by the best grouping of every subset of them.

use crate::costs::Costs;

/// Subsets of more tasks are too many.
pub const MOST_EXACT: usize = 16;

/// Groups of these sizes, which make up the tasks.
pub fn exact(costs: &Costs, sizes: &[usize]) -> Vec<Vec<usize>> {
    let cost = cost_of_subsets(costs);
    let all = cost.len() - 1;
    let (mut best, mut last) = (vec![f64::INFINITY; cost.len()], vec![0usize; cost.len()]);
    best[0] = 0.0;
    let mut taken = 0;
    // From the smallest group on: equal ones at the end may each begin with the first task that is left.
    let order = by_size(sizes);
    for (at, &which) in order.iter().enumerate() {
        let size = sizes[which];
        if size == 0 {
            continue;
        }
        let rest_is_equal = order[at..].iter().all(|&other| sizes[other] == size);
        let from: Vec<usize> = (0..=all).filter(|done| has_size(*done, taken) && best[*done].is_finite()).collect();
        for done in from {
            let free = all & !done;
            let first = if rest_is_equal { free & free.wrapping_neg() } else { 0 };
            for group in subsets(free & !first).map(|subset| subset | first).filter(|group| has_size(*group, size)) {
                let whole = best[done] + cost[group];
                if whole < best[done | group] {
                    best[done | group] = whole;
                    last[done | group] = group;
                }
            }
        }
        taken += size;
    }
    groups_of(&last, all, sizes, &order)
}

/// Numbers of the sizes, smallest size first.
fn by_size(sizes: &[usize]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|which| sizes[*which]);
    order
}

fn has_size(subset: usize, size: usize) -> bool {
    subset.count_ones() as usize == size
}

/// All subsets, the whole first and the empty one last.
fn subsets(whole: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(whole), move |subset| (*subset != 0).then(|| (subset - 1) & whole))
}

/// The last group of the whole, of what is left, and so on.
fn groups_of(last: &[usize], all: usize, sizes: &[usize], order: &[usize]) -> Vec<Vec<usize>> {
    let (mut groups, mut done) = (vec![Vec::new(); sizes.len()], all);
    for &which in order.iter().rev().filter(|which| sizes[**which] > 0) {
        let group = last[done];
        groups[which] = (0..usize::BITS as usize).filter(|task| group >> task & 1 != 0).collect();
        done &= !group;
    }
    groups
}

/// [`Costs::group`] of every subset.
fn cost_of_subsets(costs: &Costs) -> Vec<f64> {
    let mut pairs = vec![0.0; 1 << costs.tasks()];
    for subset in 1..pairs.len() {
        let first = subset.trailing_zeros() as usize;
        let rest = subset & (subset - 1);
        let others = (first + 1..costs.tasks()).filter(|task| rest >> task & 1 != 0);
        pairs[subset] = pairs[rest] + others.map(|other| costs.pair(first, other)).sum::<f64>();
    }
    let of = |(subset, sum): (usize, &f64)| match subset.count_ones() {
        0 => 0.0,
        1 => costs.alone(subset.trailing_zeros() as usize),
        size => sum / f64::from(size - 1),
    };
    pairs.iter().enumerate().map(of).collect()
}
