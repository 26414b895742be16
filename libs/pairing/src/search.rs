//! A good grouping of many tasks: from several beginnings, swaps of two tasks until no swap saves anything.

use crate::costs::Costs;
use crate::deal::dealt;

/// Beginnings: the first is greedy, the others are shuffled.
const BEGINNINGS: u64 = 12;
/// Least share of the whole cost that a swap must save, against endless rounding.
const NOTHING: f64 = 1e-12;

/// Groups of these sizes, which make up the tasks.
pub fn search(costs: &Costs, sizes: &[usize]) -> Vec<Vec<usize>> {
    let beginnings = (0..BEGINNINGS).map(|seed| if seed == 0 { greedy(costs, sizes) } else { dealt(seed, sizes) });
    let mut best: Option<(f64, Vec<Vec<usize>>)> = None;
    for groups in beginnings {
        let groups = improved(costs, groups);
        let cost = costs.groups(&groups);
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, groups));
        }
    }
    best.map_or_else(Vec::new, |(_, groups)| groups)
}

/// Group by group, the task that adds least.
fn greedy(costs: &Costs, sizes: &[usize]) -> Vec<Vec<usize>> {
    let mut left: Vec<usize> = (0..costs.tasks()).collect();
    let group_of = |size: &usize| {
        let mut group: Vec<usize> = Vec::with_capacity(*size);
        while group.len() < *size && !left.is_empty() {
            let with = |task: usize| group.iter().map(|other| costs.pair(task, *other)).sum::<f64>();
            let nearest = (0..left.len()).min_by(|a, b| with(left[*a]).total_cmp(&with(left[*b])));
            group.extend(nearest.map(|at| left.remove(at)));
        }
        group
    };
    sizes.iter().map(group_of).collect()
}

/// With the best swap of each round made, until none saves anything.
fn improved(costs: &Costs, mut groups: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    let least = costs.groups(&groups).abs() * NOTHING;
    loop {
        // Cost that each task adds to each group, itself left out.
        let beside: Vec<Vec<f64>> =
            (0..costs.tasks()).map(|task| groups.iter().map(|group| sum(costs, task, group)).collect()).collect();
        let mut best = (least, None);
        for one in 0..groups.len() {
            for other in one + 1..groups.len() {
                for at in 0..groups[one].len() {
                    for to in 0..groups[other].len() {
                        let saved = saved(costs, &groups, &beside, (one, at), (other, to));
                        if saved > best.0 {
                            best = (saved, Some(((one, at), (other, to))));
                        }
                    }
                }
            }
        }
        let Some(((one, at), (other, to))) = best.1 else { return groups };
        let (a, b) = (groups[one][at], groups[other][to]);
        groups[one][at] = b;
        groups[other][to] = a;
    }
}

fn sum(costs: &Costs, task: usize, group: &[usize]) -> f64 {
    group.iter().filter(|other| **other != task).map(|other| costs.pair(task, *other)).sum()
}

/// Returns the saving if two tasks of two groups change places.
fn saved(
    costs: &Costs,
    groups: &[Vec<usize>],
    beside: &[Vec<f64>],
    (one, at): (usize, usize),
    (other, to): (usize, usize),
) -> f64 {
    let (a, b) = (groups[one][at], groups[other][to]);
    let both = costs.pair(a, b);
    let of = |group: usize, leaves: usize, comes: usize| match groups[group].len() {
        1 => costs.alone(leaves) - costs.alone(comes),
        size => (beside[leaves][group] - (beside[comes][group] - both)) / (size - 1) as f64,
    };
    of(one, a, b) + of(other, b, a)
}
