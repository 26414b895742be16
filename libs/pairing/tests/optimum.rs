//! The optimum against all groupings tried one after another, and the moves that lead there.
#![allow(clippy::unwrap_used)]

use nearmiss_pairing::moves::Planner;
use nearmiss_pairing::optimum::balanced;
use nearmiss_pairing::{Affinity, Bitmaps, Costs, optimum};
use proptest::prelude::*;
use std::time::Instant;

/// Costs of so many tasks from a list that is long enough.
fn costs(tasks: usize, given: &[u32]) -> Costs {
    let mut costs = Costs::new(tasks);
    let mut given = given.iter().map(|cost| f64::from(*cost));
    for a in 0..tasks {
        (a..tasks).for_each(|b| costs.set(a, b, given.next().unwrap()));
    }
    costs
}

/// The least cost of any grouping: each task into each group that has room.
fn least(costs: &Costs, sizes: &[usize]) -> f64 {
    fn place(costs: &Costs, sizes: &[usize], task: usize, groups: &mut [Vec<usize>]) -> f64 {
        if task == costs.tasks() {
            return costs.groups(groups);
        }
        let mut best = f64::INFINITY;
        for group in 0..groups.len() {
            if groups[group].len() < sizes[group] {
                groups[group].push(task);
                best = best.min(place(costs, sizes, task + 1, groups));
                groups[group].pop();
            }
        }
        best
    }
    place(costs, sizes, 0, &mut vec![Vec::new(); sizes.len()])
}

/// Sizes of groups that make up 1 to 7 tasks, and costs for them.
fn problems(most_size: usize) -> impl Strategy<Value = (Vec<usize>, Vec<u32>)> {
    let sizes =
        prop::collection::vec(0..=most_size, 1..=4).prop_filter("few tasks", |sizes| sizes.iter().sum::<usize>() <= 7);
    (sizes, prop::collection::vec(0u32..1000, 28))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn no_grouping_costs_less((sizes, given) in problems(4)) {
        let costs = costs(sizes.iter().sum(), &given);
        let found = optimum(&costs, &sizes).unwrap();
        prop_assert!(found.is_optimum && found.groups.iter().map(Vec::len).eq(sizes.iter().copied()), "{:?}", found);
        prop_assert!((found.cost - least(&costs, &sizes)).abs() < 1e-6, "{:?} {}", found, least(&costs, &sizes));
        let mut tasks = found.groups.concat();
        tasks.sort_unstable();
        prop_assert!(tasks.into_iter().eq(0..costs.tasks()));
    }

    #[test]
    fn no_pairs_cost_less((sizes, given) in problems(2)) {
        let costs = costs(sizes.iter().sum(), &given);
        let found = optimum(&costs, &sizes).unwrap();
        prop_assert!((found.cost - least(&costs, &sizes)).abs() < 1e-6, "{:?} {}", found, least(&costs, &sizes));
    }

    /// Among all ways to the same cost, none has fewer moves.
    #[test]
    fn moves_are_few_and_end((given, present) in (prop::collection::vec(0u32..4, 28), prop::collection::vec(0usize..2, 6))) {
        let (costs, sizes) = (costs(6, &given), [3, 3]);
        let present: Vec<Option<usize>> = present.into_iter().map(Some).collect();
        let plan = Planner { least_gain: 0.0 }.plan(&costs, &present, &sizes).unwrap();
        let cost_of = |domains: &[usize]| costs.groups(&[0, 1].map(|d| (0..6).filter(|t| domains[*t] == d).collect::<Vec<_>>()));
        prop_assert!((cost_of(&plan.domain_of) - least(&costs, &sizes)).abs() < 1e-6);
        let fewest = (0..64u32).filter(|bits| bits.count_ones() == 3).map(|bits| (0..6).map(|t| (bits >> t & 1) as usize).collect::<Vec<_>>())
            .filter(|domains| (cost_of(domains) - least(&costs, &sizes)).abs() < 1e-6)
            .map(|domains| domains.iter().zip(&present).filter(|(to, from)| Some(**to) != **from).count()).min().unwrap();
        prop_assert_eq!(plan.moves.len(), fewest);
        let reached: Vec<Option<usize>> = plan.domain_of.iter().copied().map(Some).collect();
        let again = Planner { least_gain: 0.0 }.plan(&costs, &reached, &sizes).unwrap();
        prop_assert!(again.moves.is_empty(), "left alone once reached: {:?}", again);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    /// For any bitmaps, the next task can run, is the picked one unless that shares badly, and then shares well.
    #[test]
    fn the_next_task_can_run_and_shares_no_worse(
        given in prop::collection::vec(0..3u8, 28),
        picked in 0usize..8,
        beside in 0usize..8,
        others in 0u64..256,
    ) {
        let mut bitmaps = Bitmaps::default();
        let mut given = given.into_iter();
        for a in 0..8 {
            for b in a + 1..8 {
                bitmaps.set(a, b, [Affinity::High, Affinity::Low, Affinity::Unknown][usize::from(given.next().unwrap())]);
            }
        }
        let runnable = others | 1 << picked;
        let next = bitmaps.next(picked, Some(beside), runnable);
        let high = (0..8).filter(|task| runnable >> task & 1 != 0 && bitmaps.affinity(*task, beside) == Affinity::High);
        if bitmaps.affinity(picked, beside) == Affinity::Low && high.clone().count() > 0 {
            prop_assert!(high.into_iter().any(|task| task == next));
        } else {
            prop_assert_eq!(next, picked);
        }
    }
}

/// Two groups of eight that share inside the group.
fn two_groups(tasks: usize) -> Costs {
    let mut costs = Costs::new(tasks);
    for a in 0..tasks {
        (0..a).for_each(|b| costs.set(a, b, if a % 2 == b % 2 { 1.0 } else { 3.0 } + (a * b % 7) as f64 / 100.0));
    }
    costs
}

#[test]
fn sixteen_tasks_are_grouped_exactly() {
    for domains in [2, 3, 4, 5] {
        let begun = Instant::now();
        let found = optimum(&two_groups(16), &balanced(16, domains)).unwrap();
        println!("16 tasks on {domains} domains: {:.1} ms", begun.elapsed().as_secs_f64() * 1e3);
        assert!(found.is_optimum);
        let is_pure = |group: &Vec<usize>| group.iter().all(|task| task % 2 == group[0] % 2);
        assert!(domains % 2 == 1 || found.groups.iter().all(is_pure), "{:?}", found.groups);
    }
}

#[test]
fn sixty_four_tasks_are_paired_exactly_and_grouped_well() {
    // Partner of a task is the one that differs in the lowest bit; a greedy choice is led astray by the next one.
    let mut costs = Costs::new(64);
    for a in 0..64usize {
        (0..a).for_each(|b| {
            costs.set(
                a,
                b,
                if a / 2 == b / 2 {
                    2.0
                } else if a % 2 == 0 && b + 1 == a {
                    1.0
                } else {
                    9.0
                },
            )
        });
    }
    let begun = Instant::now();
    let found = optimum(&costs, &balanced(64, 32)).unwrap();
    println!("64 tasks in pairs: {:.1} ms", begun.elapsed().as_secs_f64() * 1e3);
    assert!(found.is_optimum && found.cost == 31.0 + 9.0, "31 pairs of 1 and one of 9: {}", found.cost);
    let begun = Instant::now();
    let found = optimum(&two_groups(64), &balanced(64, 8)).unwrap();
    println!("64 tasks on 8 domains, by search: {:.1} ms", begun.elapsed().as_secs_f64() * 1e3);
    assert!(!found.is_optimum && found.groups.iter().all(|group| group.iter().all(|task| task % 2 == group[0] % 2)));
    assert_eq!(found, optimum(&two_groups(64), &balanced(64, 8)).unwrap());
}

#[test]
fn equal_groupings_have_one_answer() {
    let mut costs = Costs::new(12);
    for a in 0..12 {
        (0..a).for_each(|b| costs.set(a, b, 1.0));
    }
    let first = optimum(&costs, &balanced(12, 6)).unwrap();
    (0..20).for_each(|_| assert_eq!(optimum(&costs, &balanced(12, 6)).unwrap(), first));
}

#[test]
fn a_placement_that_costs_hardly_more_is_left_alone() {
    let costs = two_groups(8);
    let present = |domains: [usize; 8]| domains.map(Some);
    let planner = Planner { least_gain: 0.02 };
    // One even and one odd task have changed places.
    let plan = planner.plan(&costs, &present([0, 1, 0, 1, 0, 1, 1, 0]), &[4, 4]).unwrap();
    let moved: Vec<usize> = plan.moves.iter().map(|moved| moved.task).collect();
    assert_eq!((moved, plan.domain_of), (vec![6, 7], vec![0, 1, 0, 1, 0, 1, 0, 1]));
    assert!(plan.gain > 0.3, "{}", plan.gain);
    let settled = planner.plan(&costs, &present([1, 0, 1, 0, 1, 0, 1, 0]), &[4, 4]).unwrap();
    assert!(settled.moves.is_empty(), "whichever domain has which group");
    let dear = Planner { least_gain: 0.9 }.plan(&costs, &present([0, 1, 0, 1, 0, 1, 1, 0]), &[4, 4]).unwrap();
    assert!(dear.moves.is_empty());
    let crowded = Planner { least_gain: 0.9 }.plan(&costs, &present([0; 8]), &[4, 4]).unwrap();
    assert_eq!(crowded.moves.len(), 4, "a load that is uneven is no placement");
    assert_eq!(planner.plan(&costs, &present([0; 8]), &[4, 3]), None);
}
