//! Calls of chosen functions, separated by the calling contexts of a trace.

use nearmiss_record::side::Context;
use rustc_hash::FxHashMap;

/// No chosen function is called.
pub(super) const OUTSIDE: u32 = 0;

/// A place in the tree of the chosen functions' calls: a function, the calling context that it runs in, and the chosen
/// function that called it, directly or not.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    parent: u32,
    depth: u32,
    /// Index of the function among the chosen ones.
    function: u32,
}

/// The tree; the same call from the same place is one node, however often it is made.
pub(super) struct CallTree {
    /// By function of the run: one more than its index among the chosen ones, or 0.
    chosen: Vec<u32>,
    /// Function by instruction.
    functions: Vec<u32>,
    nodes: Vec<Node>,
    by_call: FxHashMap<(u32, u32), u32>,
    /// Node that a calling context lies in, by context.
    contexts: Vec<u32>,
}

impl CallTree {
    /// `chosen`: by function, one more than its index among the chosen ones, or 0. `functions`: by instruction.
    pub fn new(chosen: Vec<u32>, functions: Vec<u32>, contexts: &[Context]) -> Self {
        let mut tree = CallTree {
            chosen,
            functions,
            nodes: vec![Node::default()],
            by_call: FxHashMap::default(),
            contexts: Vec::with_capacity(contexts.len()),
        };
        for (at, context) in (0..).zip(contexts) {
            // A context is kept behind its caller's; a damaged file may claim otherwise.
            let sound = context.parent < at;
            let node = if sound { tree.node(context.parent, context.call) } else { OUTSIDE };
            tree.contexts.push(node);
        }
        tree
    }

    /// Node in which this instruction runs, in this calling context.
    #[inline]
    pub fn node(&mut self, context: u32, insn: u32) -> u32 {
        let outer = self.contexts.get(context as usize).copied().unwrap_or(OUTSIDE);
        let function = self.functions.get(insn as usize).copied().unwrap_or(0);
        let Some(chosen) = self.chosen.get(function as usize).and_then(|number| number.checked_sub(1)) else {
            return outer;
        };
        let parent = self.nodes[outer as usize];
        let next = self.nodes.len() as u32;
        let node = Node { parent: outer, depth: parent.depth + 1, function: chosen };
        let number = *self.by_call.entry((context, chosen)).or_insert(next);
        if number == next {
            self.nodes.push(node);
        }
        number
    }

    /// Index of a node's function among the chosen ones.
    pub fn function(&self, node: u32) -> Option<usize> {
        (node != OUTSIDE).then(|| self.nodes[node as usize].function as usize)
    }

    /// The nodes on the way to this one, itself last.
    fn path(&self, mut node: u32) -> Vec<u32> {
        let mut path = Vec::with_capacity(self.nodes[node as usize].depth as usize);
        while node != OUTSIDE {
            path.push(node);
            node = self.nodes[node as usize].parent;
        }
        path.reverse();
        path
    }
}

/// Calls that have not returned, the innermost last, each with what is collected of it.
pub(super) struct LiveCalls<T> {
    calls: Vec<(u32, T)>,
}

impl<T> Default for LiveCalls<T> {
    fn default() -> Self {
        LiveCalls { calls: Vec::new() }
    }
}

impl<T: Default> LiveCalls<T> {
    /// Code of this node runs: calls that it is not in have returned, `ended` takes what was collected of them.
    #[inline]
    pub fn at(&mut self, tree: &CallTree, node: u32, ended: impl FnMut(usize, T)) {
        if self.calls.last().map_or(OUTSIDE, |call| call.0) != node {
            self.goes_to(tree, node, ended);
        }
    }

    fn goes_to(&mut self, tree: &CallTree, node: u32, mut ended: impl FnMut(usize, T)) {
        let path = tree.path(node);
        let same = self.calls.iter().zip(&path).take_while(|(call, node)| call.0 == **node).count();
        for (node, collected) in self.calls.drain(same..).rev() {
            if let Some(function) = tree.function(node) {
                ended(function, collected);
            }
        }
        self.calls.extend(path[same..].iter().map(|node| (*node, T::default())));
    }

    /// Uses that are collected of the innermost call.
    pub fn innermost(&mut self) -> Option<&mut T> {
        Some(&mut self.calls.last_mut()?.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Functions: 1 `receive`, 2 `acknowledge`, 3 others. Instruction n is function n's.
    fn tree() -> CallTree {
        let context = |parent, call| Context { parent, call };
        // 1: called by 3; 2: called by `receive` in there; 3: called by 3 in there; 4: `receive` called `acknowledge`.
        let contexts = [context(0, 0), context(0, 3), context(1, 1), context(2, 3), context(1, 1), context(9, 1)];
        CallTree::new(vec![0, 1, 2, 0], vec![0, 1, 2, 3], &contexts)
    }

    #[test]
    fn an_instruction_lies_in_the_innermost_chosen_function() {
        let mut tree = tree();
        let names: Vec<Option<usize>> = [(0, 3), (1, 3), (1, 1), (2, 3), (3, 3), (3, 2), (5, 3), (99, 99)]
            .map(|(context, insn)| {
                let node = tree.node(context, insn);
                tree.function(node)
            })
            .to_vec();
        assert_eq!(names, [None, None, Some(0), Some(0), Some(0), Some(1), None, None]);
    }

    #[test]
    fn a_call_ends_when_code_outside_of_it_runs() {
        let (mut tree, mut calls) = (tree(), LiveCalls::<u32>::default());
        let mut ends = Vec::new();
        // Outside, `receive`, a callee, `acknowledge` in it, the callee again, outside (the next call), `receive`.
        for (context, insn) in [(1, 3), (1, 1), (2, 3), (3, 2), (3, 3), (1, 3), (1, 1)] {
            let node = tree.node(context, insn);
            calls.at(&tree, node, |function, count| ends.push((function, count)));
            if let Some(count) = calls.innermost() {
                *count += 1;
            }
        }
        assert_eq!(ends, [(1, 1), (0, 3)]);
        calls.at(&tree, OUTSIDE, |function, count| ends.push((function, count)));
        assert_eq!(ends, [(1, 1), (0, 3), (0, 1)]);
    }
}
