//! Call stacks as a tree, and as the text that flame-graph tools read.

use crate::name::plain;
use nearmiss_record::model::{ModelRecord, StackRow};
use std::collections::{BTreeMap, HashMap};

/// Weights of the stacks of a traced run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weights {
    /// All cycles.
    Cycles,
    /// Cycles waiting: older records have no others.
    Waits,
    /// Misses of all levels, where the machine has no latencies.
    Misses,
}

impl Weights {
    /// Returns the weights that this run's stacks have.
    pub fn of(model: &ModelRecord) -> Self {
        let any = |figure: fn(&StackRow) -> u64| model.stacks.iter().any(|row| figure(row) > 0);
        if any(|row| row.cycles) {
            Weights::Cycles
        } else if any(|row| row.stall_cycles) {
            Weights::Waits
        } else {
            Weights::Misses
        }
    }

    /// The weight of a row.
    pub fn of_row(self, row: &StackRow) -> u64 {
        match self {
            Weights::Cycles => row.cycles,
            Weights::Waits => row.stall_cycles,
            Weights::Misses => row.misses.iter().fold(0, |a: u64, b| a.saturating_add(*b)),
        }
    }

    /// Returns the unit of the weights.
    pub fn unit(self) -> &'static str {
        match self {
            Weights::Cycles => "cycles",
            Weights::Waits => "cycles waiting",
            Weights::Misses => "misses, all levels added up",
        }
    }
}

/// A traced run's stacks, outermost frame first, joined by `;`, a space, and the modelled weight: what flame-graph tools
/// read.
pub fn folded(model: &ModelRecord) -> String {
    let weights = Weights::of(model);
    let stacks = model.stacks.iter().map(|row| (row.frames.iter().map(String::as_str), weights.of_row(row)));
    folded_stacks(stacks)
}

/// Folds any stacks; equal ones are one line.
pub fn folded_stacks<'a, F: IntoIterator<Item = &'a str>>(stacks: impl IntoIterator<Item = (F, u64)>) -> String {
    let mut weights: BTreeMap<String, u64> = BTreeMap::new();
    for (frames, weight) in stacks.into_iter().filter(|(_, weight)| *weight > 0) {
        let frames: Vec<String> = frames.into_iter().map(clean).collect();
        let sum = weights.entry(frames.join(";")).or_default();
        *sum = sum.saturating_add(weight);
    }
    weights.into_iter().map(|(stack, weight)| format!("{stack} {weight}\n")).collect()
}

/// Replaces the separator of frames in a name.
fn clean(name: &str) -> String {
    plain(name).replace(';', ":")
}

/// A function in its calling context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Function name; empty for the root.
    pub name: String,
    /// Weight of this context and all it calls.
    pub weight: u64,
    /// Index of the caller; the root is its own.
    pub parent: usize,
    /// Callers between it and the root.
    pub depth: usize,
    /// Indices of the callees, heaviest first.
    pub callees: Vec<usize>,
}

/// Contexts deeper than this are charged to the last one above.
const MOST_DEPTH: usize = 64;

/// The tree of all stacks: index 0 is the root, with everything below it.
///
/// `stacks`: frames, the outermost first, and the weight of each.
pub fn tree<'a, F: IntoIterator<Item = &'a str>>(stacks: impl IntoIterator<Item = (F, u64)>) -> Vec<Node> {
    let mut nodes = vec![Node::default()];
    let mut known: HashMap<(usize, &str), usize> = HashMap::new();
    for (frames, weight) in stacks {
        if weight == 0 {
            continue;
        }
        let mut at = 0;
        nodes[0].weight = nodes[0].weight.saturating_add(weight);
        for frame in frames.into_iter().take(MOST_DEPTH) {
            let next = *known.entry((at, frame)).or_insert(nodes.len());
            if next == nodes.len() {
                nodes.push(Node { name: frame.to_owned(), parent: at, depth: nodes[at].depth + 1, ..Node::default() });
                nodes[at].callees.push(next);
            }
            nodes[next].weight = nodes[next].weight.saturating_add(weight);
            at = next;
        }
    }
    for i in 0..nodes.len() {
        let mut callees = std::mem::take(&mut nodes[i].callees);
        callees
            .sort_by(|a, b| nodes[*b].weight.cmp(&nodes[*a].weight).then_with(|| nodes[*a].name.cmp(&nodes[*b].name)));
        nodes[i].callees = callees;
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folded_stacks_are_one_line_each() {
        let stacks = [(vec!["a", "b;c\n"], 3), (vec!["a"], 4), (vec!["a", "b;c\n"], 5), (vec!["z"], 0)];
        assert_eq!(folded_stacks(stacks), "a 4\na;b:c\\u{a} 8\n");
    }

    #[test]
    fn equal_callers_are_one_node() {
        let tree = tree([(vec!["a", "b"], 3), (vec!["a", "c"], 4), (vec!["a"], 5), (vec!["z"], 0)]);
        assert_eq!(tree.len(), 4);
        assert_eq!((tree[0].weight, tree[1].weight), (12, 12));
        let callees: Vec<(&str, u64)> =
            tree[1].callees.iter().map(|i| (tree[*i].name.as_str(), tree[*i].weight)).collect();
        assert_eq!(callees, [("c", 4), ("b", 3)]);
    }
}
