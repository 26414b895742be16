//! The best grouping put on domains with the fewest moves, and left alone once it is reached.

use crate::costs::Costs;
use crate::matching::cheapest;
use crate::optimum::optimum;

/// Makes a grouping in which tasks stay beside whom they are cheaper by this part of the mean cost: of groupings that cost
/// the same, the present one is taken.
const STAYS: f64 = 1e-9;

/// A task that goes from one domain to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Which.
    pub task: usize,
    /// Present domain; none: on no domain of ours.
    pub from: Option<usize>,
    /// Domain that it goes to.
    pub to: usize,
}

/// Intended placement of tasks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Domain by task.
    pub domain_of: Vec<usize>,
    /// Moves that lead there; none where nothing is worth a move.
    pub moves: Vec<Move>,
    /// Share of the present cost that it saves.
    pub gain: f64,
}

/// Plans moves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Planner {
    /// Share of the present cost that moves must save, or all stay.
    pub least_gain: f64,
}

impl Planner {
    /// Returns the moves from the present domain of each task to the optimum, for so many tasks a domain: no moves if
    /// the present placement has these sizes and costs hardly more, and a placement that was reached is left alone.
    /// None where the sizes do not make up the tasks.
    pub fn plan(&self, costs: &Costs, present: &[Option<usize>], sizes: &[usize]) -> Option<Plan> {
        let best = optimum(&with_present_preferred(costs, present), sizes)?;
        let now = groups_of(present, sizes.len());
        let fits = now.iter().map(Vec::len).eq(sizes.iter().copied());
        let before = costs.groups(&now);
        let gain = if fits && before > 0.0 { 1.0 - costs.groups(&best.groups) / before } else { 0.0 };
        if fits && gain < self.least_gain.max(STAYS) {
            let domain_of = present.iter().map(|domain| domain.unwrap_or(0)).collect();
            return Some(Plan { domain_of, moves: Vec::new(), gain: 0.0 });
        }
        let domain_of = assigned(&best.groups, present, sizes);
        let goes = |(task, &to): (usize, &usize)| {
            let from = present.get(task).copied().flatten();
            (from != Some(to)).then_some(Move { task, from, to })
        };
        let moves = domain_of.iter().enumerate().filter_map(goes).collect();
        Some(Plan { domain_of, moves, gain })
    }
}

/// Tasks by domain; those of no domain are in none.
fn groups_of(present: &[Option<usize>], domains: usize) -> Vec<Vec<usize>> {
    let mut groups = vec![Vec::new(); domains];
    for (task, domain) in present.iter().enumerate() {
        if let Some(group) = domain.and_then(|domain| groups.get_mut(domain)) {
            group.push(task);
        }
    }
    groups
}

fn with_present_preferred(costs: &Costs, present: &[Option<usize>]) -> Costs {
    let tasks = costs.tasks();
    let pairs = || (0..tasks).flat_map(|a| (a + 1..tasks).map(move |b| (a, b)));
    let mean = pairs().map(|(a, b)| costs.pair(a, b).abs()).sum::<f64>() / pairs().count().max(1) as f64;
    let mut preferred = costs.clone();
    let of = |task: usize| present.get(task).copied().flatten();
    for (a, b) in pairs().filter(|(a, b)| of(*a).is_some() && of(*a) == of(*b)) {
        preferred.set(a, b, costs.pair(a, b) - mean * STAYS);
    }
    preferred
}

/// Assigns groups to domains of their size, so that most tasks stay; returns the domain by task.
fn assigned(groups: &[Vec<usize>], present: &[Option<usize>], sizes: &[usize]) -> Vec<usize> {
    let stay = |group: &[usize], domain: usize| group.iter().filter(|task| present[**task] == Some(domain)).count();
    let mut edges = Vec::new();
    for (number, group) in groups.iter().enumerate() {
        let fitting = (0..sizes.len()).filter(|domain| sizes[*domain] == group.len());
        edges.extend(fitting.map(|domain| (number, groups.len() + domain, -(stay(group, domain) as f64))));
    }
    let partners = cheapest(groups.len() + sizes.len(), &edges);
    let mut domain_of = vec![0; present.len()];
    for (number, group) in groups.iter().enumerate() {
        // A group of the n-th size fits the n-th domain, so that all have one.
        let domain = partners[number].map_or(number, |node| node - groups.len());
        group.iter().for_each(|task| domain_of[*task] = domain);
    }
    domain_of
}
