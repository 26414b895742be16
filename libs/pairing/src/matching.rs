//! The best pairs of any number of tasks: a matching of least weight.

use crate::costs::Costs;
use rustworkx_core::max_weight_matching::max_weight_matching;
use rustworkx_core::petgraph::graph::UnGraph;
use std::convert::Infallible;

/// Weights are whole numbers of the dearest edge's part.
const DEAREST: f64 = (1u64 << 48) as f64;

/// A matching of as many of the `nodes` as can be, of the least cost among those; `edges` have the cost of both nodes.
/// By node, its partner.
pub fn cheapest(nodes: usize, edges: &[(usize, usize, f64)]) -> Vec<Option<usize>> {
    let (least, most) = edges
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), edge| (least.min(edge.2), most.max(edge.2)));
    let scale = if most > least { DEAREST / (most - least) } else { 0.0 };
    let weighed = edges.iter().map(|&(a, b, cost)| (a as u32, b as u32, ((most - cost) * scale).round() as i128));
    let mut graph = UnGraph::<(), i128>::from_edges(weighed);
    while graph.node_count() < nodes {
        graph.add_node(());
    }
    let mut partners = vec![None; nodes];
    let Ok(pairs) = max_weight_matching(&graph, true, |edge| Ok::<_, Infallible>(*edge.weight()), false);
    for (a, b) in pairs {
        partners[a] = Some(b);
        partners[b] = Some(a);
    }
    partners
}

/// Groups of one and two tasks, by sizes that make up the tasks; none where no matching is whole, which no costs cause.
pub fn matching(costs: &Costs, sizes: &[usize]) -> Option<Vec<Vec<usize>>> {
    let (tasks, alone) = (costs.tasks(), sizes.iter().filter(|size| **size == 1).count());
    let mut edges = Vec::new();
    for a in 0..tasks {
        edges.extend((a + 1..tasks).map(|b| (a, b, costs.pair(a, b))));
        // A partner that stands for a place alone.
        edges.extend((tasks..tasks + alone).map(|place| (a, place, costs.alone(a))));
    }
    let partners = cheapest(tasks + alone, &edges);
    let whole = partners.iter().all(Option::is_some);
    let (mut ones, mut twos) = (Vec::new(), Vec::new());
    for (task, partner) in partners.iter().take(tasks).enumerate() {
        match *partner {
            Some(other) if other >= tasks => ones.push(vec![task]),
            Some(other) if other > task => twos.push(vec![task, other]),
            _ => {}
        }
    }
    let (mut ones, mut twos) = (ones.into_iter(), twos.into_iter());
    let groups = sizes.iter().map(|size| match size {
        0 => Some(Vec::new()),
        1 => ones.next(),
        _ => twos.next(),
    });
    let groups: Option<Vec<Vec<usize>>> = groups.collect();
    groups.filter(|_| whole)
}
