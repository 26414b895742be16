//! Call stacks as a tree.

use std::collections::HashMap;

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
    fn equal_callers_are_one_node() {
        let tree = tree([(vec!["a", "b"], 3), (vec!["a", "c"], 4), (vec!["a"], 5), (vec!["z"], 0)]);
        assert_eq!(tree.len(), 4);
        assert_eq!((tree[0].weight, tree[1].weight), (12, 12));
        let callees: Vec<(&str, u64)> =
            tree[1].callees.iter().map(|i| (tree[*i].name.as_str(), tree[*i].weight)).collect();
        assert_eq!(callees, [("c", 4), ("b", 3)]);
    }
}
