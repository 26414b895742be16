//! Costs of ways to place a run's tasks, by its pairs: by chance, as the paper does, as we do, and the best.

use super::parted::TaskCosts;
use nearmiss_machine::describe::Domains;
use nearmiss_pairing::moves::Plan;
use nearmiss_pairing::optimum::balanced;
use nearmiss_pairing::table::USUAL_CONFIDENCE;
use nearmiss_pairing::{Affinity, Bitmaps, Costs, Planner, Step, Swapper, dealt, epoch, optimum};
use nearmiss_record::finding::LEAST_GAIN;

/// Placements by chance.
pub const PLACED_BY_CHANCE: u64 = 1000;
/// Runs of the paper's method, each from another placement, and its periods in each.
const RUNS: u64 = 20;
const PERIODS: usize = 40;

/// A way to place tasks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schedule {
    /// Cycles of all tasks.
    pub cycles: f64,
    /// Tasks that it moves in a run, on average.
    pub moves: f64,
}

/// All ways.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schedules {
    /// Cycles of all tasks if each were alone.
    pub alone: f64,
    /// Cycles of the run as it was recorded.
    pub present: f64,
    /// Average of placements by chance.
    pub standard: f64,
    /// The worst of those.
    pub worst: f64,
    /// The one of those with the cost nearest to the average.
    pub typical: Vec<Vec<usize>>,
    /// The paper's: bitmaps without confidence, swaps that are undone.
    pub paper: Schedule,
    /// The cheapest grouping by the pairs that are certain, reached at once and left alone.
    pub ours: Schedule,
    /// The groups of ours.
    pub groups: Vec<Vec<usize>>,
    /// No schedule costs less.
    pub optimum: f64,
    /// Pairs that are high, low and unknown.
    pub judged: [usize; 3],
}

impl Schedules {
    /// Makes the schedules from the pairs seen, and from the domains on which each task ran.
    pub fn of(seen: &TaskCosts, present: &[Vec<f64>], domains: &Domains) -> Self {
        let costs = seen.table.costs(&seen.alone);
        let sizes = balanced(costs.tasks(), domains.count as usize);
        let by_chance: Vec<Vec<Vec<usize>>> = (0..PLACED_BY_CHANCE).map(|seed| dealt(seed, &sizes)).collect();
        let cycles: Vec<f64> = by_chance.iter().map(|groups| costs.groups(groups)).collect();
        let standard = cycles.iter().sum::<f64>() / cycles.len() as f64;
        let nearest =
            (0..cycles.len()).min_by(|a, b| (cycles[*a] - standard).abs().total_cmp(&(cycles[*b] - standard).abs()));
        let (groups, ours) = ours(seen, &costs, &by_chance, &sizes, domains);
        Schedules {
            alone: seen.alone.iter().sum(),
            present: present_cost(&costs, seen, present),
            standard,
            worst: cycles.iter().copied().fold(0.0, f64::max),
            typical: nearest.map(|at| by_chance[at].clone()).unwrap_or_default(),
            paper: paper(seen, &costs, &by_chance, domains),
            ours,
            groups,
            optimum: best(&costs, &sizes, domains),
            judged: judged(seen),
        }
    }

    /// Share of the cycles by chance that so many cycles save.
    pub fn saved(&self, cycles: f64) -> f64 {
        if self.standard > 0.0 { 1.0 - cycles / self.standard } else { 0.0 }
    }
}

/// How many pairs are high, low and unknown.
fn judged(seen: &TaskCosts) -> [usize; 3] {
    let mut judged = [0; 3];
    let mean = seen.table.mean().unwrap_or(1.0);
    for (a, b) in seen.table.pairs() {
        let affinity = seen.table.judge(a, b, mean, USUAL_CONFIDENCE).affinity;
        judged[match affinity {
            Affinity::High => 0,
            Affinity::Low => 1,
            Affinity::Unknown => 2,
        }] += 1;
    }
    judged
}

/// Returns the cost of the tasks, each beside those that were on its domain with it.
fn present_cost(costs: &Costs, seen: &TaskCosts, present: &[Vec<f64>]) -> f64 {
    let together = |a: usize, b: usize| present[a].iter().zip(&present[b]).map(|(a, b)| a * b).sum::<f64>();
    let of = |task: usize| {
        let others = (0..costs.tasks()).filter(|other| *other != task);
        let beside = others.map(|other| (together(task, other), seen.table.beside(task, other).mean().unwrap_or(1.0)));
        let (shares, weighed) = beside.fold((0.0, 0.0), |(all, sum), (share, cost)| (all + share, sum + share * cost));
        costs.alone(task) * if shares > 0.0 { weighed / shares } else { 1.0 }
    };
    (0..costs.tasks()).map(of).sum()
}

/// Our choice: its groups, and what it costs from many placements.
fn ours(
    seen: &TaskCosts,
    costs: &Costs,
    by_chance: &[Vec<Vec<usize>>],
    sizes: &[usize],
    domains: &Domains,
) -> (Vec<Vec<usize>>, Schedule) {
    let certain = seen.table.certain(USUAL_CONFIDENCE).costs(&seen.alone);
    let bitmaps = Bitmaps::of(&seen.table, USUAL_CONFIDENCE);
    let planner = Planner { least_gain: LEAST_GAIN };
    let begun = by_chance.iter().take(RUNS as usize).map(|groups| domain_of(groups));
    let plans: Vec<Plan> = begun.filter_map(|present| planner.plan(&certain, &present, sizes)).collect();
    let count = plans.len().max(1) as f64;
    let cost = |plan: &Plan| {
        let group = |domain| (0..costs.tasks()).filter(|task| plan.domain_of[*task] == domain).collect::<Vec<_>>();
        (0..sizes.len()).map(|domain| chosen_cost(costs, &bitmaps, &group(domain), domains)).sum::<f64>()
    };
    let schedule = Schedule {
        cycles: plans.iter().map(cost).sum::<f64>() / count,
        moves: plans.iter().map(|plan| plan.moves.len()).sum::<usize>() as f64 / count,
    };
    (optimum(&certain, sizes).map(|grouping| grouping.groups).unwrap_or_default(), schedule)
}

/// Returns the domain of each task.
fn domain_of(groups: &[Vec<usize>]) -> Vec<Option<usize>> {
    let mut domain_of = vec![None; groups.iter().map(Vec::len).sum()];
    for (domain, group) in groups.iter().enumerate() {
        group.iter().for_each(|task| domain_of[*task] = Some(domain));
    }
    domain_of
}

/// Returns a group's cost where the next task is chosen by bitmaps; on more than two CPUs there is no one beside.
fn chosen_cost(costs: &Costs, bitmaps: &Bitmaps, group: &[usize], domains: &Domains) -> f64 {
    if domains.cpus_each != 2 || group.len() < 3 {
        return costs.group(group);
    }
    let of_turn = |turn| epoch(bitmaps, group, turn).into_iter().map(|pair| cost_of(costs, pair)).sum::<f64>();
    (0..group.len()).map(of_turn).sum::<f64>() / group.len() as f64
}

fn cost_of(costs: &Costs, (one, other): (usize, Option<usize>)) -> f64 {
    other.map_or(costs.alone(one), |other| costs.pair(one, other))
}

/// No schedule costs less: on two CPUs a domain, the best pairs at all times.
fn best(costs: &Costs, sizes: &[usize], domains: &Domains) -> f64 {
    let pairs = balanced(costs.tasks(), costs.tasks().div_ceil(2));
    let grouped = optimum(costs, sizes).map_or(0.0, |grouping| grouping.cost);
    match optimum(costs, &pairs) {
        Some(paired) if domains.cpus_each == 2 && costs.tasks() > sizes.len() * 2 => grouped.min(paired.cost),
        _ => grouped,
    }
}

/// The paper's method from many placements: a swap a period, undone where the affinity fell, and the next task by bitmaps.
fn paper(seen: &TaskCosts, costs: &Costs, by_chance: &[Vec<Vec<usize>>], domains: &Domains) -> Schedule {
    let bitmaps = Bitmaps::of(&seen.table, 0.0);
    let (mut cycles, mut moves) = (0.0, 0usize);
    for groups in by_chance.iter().take(RUNS as usize) {
        let (mut groups, mut swapper) = (groups.clone(), Swapper::default());
        for _ in 0..PERIODS {
            cycles += groups.iter().map(|group| chosen_cost(costs, &bitmaps, group, domains)).sum::<f64>();
            let maps: Vec<u64> = groups.iter().map(|group| group.iter().fold(0, |map, task| map | 1 << task)).collect();
            if let Step::Try(swap) | Step::Undo(swap) = swapper.period(affinity(&bitmaps, &groups), &bitmaps, &maps) {
                groups.iter_mut().flatten().for_each(|task| match *task {
                    task_a if task_a == swap.a => *task = swap.b,
                    task_b if task_b == swap.b => *task = swap.a,
                    _ => {}
                });
                moves += 2;
            }
        }
    }
    Schedule { cycles: cycles / (RUNS as f64 * PERIODS as f64), moves: moves as f64 / RUNS as f64 }
}

/// Share of the time in pairs that share well.
fn affinity(bitmaps: &Bitmaps, groups: &[Vec<usize>]) -> f64 {
    let pairs = groups.iter().flat_map(|group| epoch(bitmaps, group, 0));
    let (mut all, mut high) = (0u32, 0u32);
    for (one, other) in pairs {
        all += 1;
        high += u32::from(other.is_some_and(|other| bitmaps.affinity(one, other) == Affinity::High));
    }
    f64::from(high) / f64::from(all.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::kept::KeptPair;

    /// Eight tasks of 100 cycles alone, with these samples by pair.
    fn seen(of: impl Fn(usize, usize) -> [f64; 3]) -> TaskCosts {
        let beside = |task: usize| (0..8).filter(move |beside| *beside != task).map(move |beside| (task, beside));
        let sample = |(task, beside)| KeptPair { task, beside, of_alone: of(task, beside).to_vec() };
        TaskCosts::of(vec![100.0; 8], (0..8).flat_map(beside).map(sample).collect())
    }

    /// Tasks of one parity take as long together as alone, others twice as long.
    fn two_groups() -> TaskCosts {
        seen(|a, b| {
            let of_alone = if a % 2 == b % 2 { 1.0 } else { 2.0 };
            [of_alone, of_alone + 0.01, of_alone - 0.01]
        })
    }

    fn two_by_two() -> Domains {
        Domains { level: 1, cpus_each: 2, count: 2 }
    }

    #[test]
    fn two_groups_are_found_and_cost_what_their_pairs_cost() {
        let present: Vec<Vec<f64>> =
            (0..8).map(|task| if task < 4 { vec![1.0, 0.0] } else { vec![0.0, 1.0] }).collect();
        let schedules = Schedules::of(&two_groups(), &present, &two_by_two());
        assert_eq!(schedules.groups, [[0, 2, 4, 6], [1, 3, 5, 7]]);
        let near = |cycles: f64, wanted: f64| assert!((cycles - wanted).abs() < 1e-6, "{cycles}, not {wanted}");
        near(schedules.alone, 800.0);
        near(schedules.ours.cycles, 800.0);
        near(schedules.optimum, 800.0);
        // Two of each parity on each domain: one partner of three is of one's own.
        near(schedules.present, 800.0 * 5.0 / 3.0);
        near(schedules.worst, 800.0 * 5.0 / 3.0);
        // By chance three of seven others are of one's own parity, and three are beside.
        assert!((schedules.standard - 800.0 * 11.0 / 7.0).abs() < 5.0, "{}", schedules.standard);
        assert!(schedules.paper.cycles < schedules.standard && schedules.paper.cycles >= 800.0 - 1e-6);
        assert!(schedules.ours.moves <= 4.0, "{}", schedules.ours.moves);
        assert_eq!(schedules.judged, [12, 16, 0]);
    }

    #[test]
    fn pairs_that_are_all_alike_gain_nothing() {
        let seen = seen(|_, _| [1.4, 1.5, 1.6]);
        let schedules = Schedules::of(&seen, &vec![vec![0.5, 0.5]; 8], &two_by_two());
        assert!(schedules.saved(schedules.ours.cycles).abs() < 1e-9 && schedules.ours.moves == 0.0, "{schedules:?}");
        assert_eq!(schedules.judged, [0, 0, 28]);
    }
}
