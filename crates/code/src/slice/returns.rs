//! Return instructions of a called function.

use crate::graph::{Graph, Node, direct_target};
use iced_x86::FlowControl;
use std::collections::{HashSet, VecDeque};

/// Instructions of a function that are looked at.
const MOST_INSTRUCTIONS: usize = 256;

/// The ends of a function, as far as its code is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Returns {
    /// The `ret` instructions of the function.
    pub nodes: Vec<Node>,
    /// Instructions of the shortest way through the function.
    pub instructions: u32,
}

/// The ends of the function that a call enters; none: called through a pointer, or not known.
pub(super) fn of_call(graph: &Graph, call: Node) -> Returns {
    let entry = direct_target(&graph.get(call).instruction).and_then(|target| graph.at(target, call));
    let mut returns = Returns::default();
    let mut visited: HashSet<Node> = entry.into_iter().collect();
    let mut open: VecDeque<_> = entry.into_iter().map(|node| (node, 1_u32)).collect();
    while let Some((node, instructions)) = open.pop_front() {
        if graph.get(node).instruction.flow_control() == FlowControl::Return {
            if returns.nodes.is_empty() {
                returns.instructions = instructions;
            }
            returns.nodes.push(node);
        }
        for next in after(graph, node) {
            if visited.len() < MOST_INSTRUCTIONS && visited.insert(next) {
                open.push_back((next, instructions + 1));
            }
        }
    }
    returns.nodes.sort_unstable();
    returns
}

/// Returns the possible successors of an instruction; calls are passed over.
fn after(graph: &Graph, node: Node) -> impl Iterator<Item = Node> {
    use FlowControl::*;
    let instruction = &graph.get(node).instruction;
    let flow = instruction.flow_control();
    let falls = !matches!(flow, UnconditionalBranch | IndirectBranch | Return | Exception);
    let jumps = matches!(flow, UnconditionalBranch | ConditionalBranch);
    let next = falls.then(|| instruction.next_ip());
    let target = direct_target(instruction).filter(|_| jumps);
    [next, target].into_iter().flatten().filter_map(move |vaddr| graph.at(vaddr, node))
}
