//! The instructions that run again and again with one: its loop, or else its straight code.

use crate::graph::{Graph, Node, direct_target};
use iced_x86::FlowControl;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Blocks of the largest loop that is looked for.
const MOST_BLOCKS: u32 = 8;
/// Instructions of the longest loop or straight code.
const MOST_INSTRUCTIONS: usize = 256;

/// Instructions in the order in which they run.
pub(crate) struct Body {
    pub nodes: Vec<Node>,
    /// The first runs again after the last.
    pub turns: bool,
}

/// The shortest loop through an instruction; without one, the straight code that it stands in.
pub(crate) fn around(graph: &Graph, start: Node) -> Body {
    match turn(graph, start) {
        Some(nodes) => Body { nodes, turns: true },
        None => Body { nodes: straight(graph, start), turns: false },
    }
}

/// The shortest way from an instruction back to it, calls passed over.
fn turn(graph: &Graph, start: Node) -> Option<Vec<Node>> {
    let mut from: FxHashMap<Node, Node> = FxHashMap::default();
    let mut open = VecDeque::from([(start, 0_u32)]);
    while let Some((node, blocks)) = open.pop_front() {
        for (next, branches) in after(graph, node) {
            if next == start {
                return Some(path(&from, start, node));
            }
            let near = blocks + branches < MOST_BLOCKS && from.len() < MOST_INSTRUCTIONS;
            if near && !from.contains_key(&next) {
                from.insert(next, node);
                open.push_back((next, blocks + branches));
            }
        }
    }
    None
}

fn path(from: &FxHashMap<Node, Node>, first: Node, last: Node) -> Vec<Node> {
    let back = std::iter::successors(Some(last), |node| if *node == first { None } else { from.get(node).copied() });
    let mut nodes: Vec<_> = back.collect();
    nodes.reverse();
    nodes
}

/// Returns the possible successors of an instruction, and whether another block begins there.
fn after(graph: &Graph, node: Node) -> impl Iterator<Item = (Node, u32)> {
    use FlowControl::*;
    let instruction = &graph.get(node).instruction;
    let flow = instruction.flow_control();
    let falls = !matches!(flow, UnconditionalBranch | IndirectBranch | Return | Exception);
    let jumps = matches!(flow, UnconditionalBranch | ConditionalBranch);
    let next = falls.then(|| (instruction.next_ip(), u32::from(flow != Next)));
    let target = direct_target(instruction).filter(|_| jumps).map(|target| (target, 1));
    [next, target].into_iter().flatten().filter_map(move |(vaddr, block)| Some((graph.at(vaddr, node)?, block)))
}

fn straight(graph: &Graph, start: Node) -> Vec<Node> {
    let back = std::iter::successors(Some(start), |&node| (!graph.get(node).joined).then(|| graph.before(node)));
    let mut nodes: Vec<_> = back.take(MOST_INSTRUCTIONS / 2).collect();
    nodes.reverse();
    let forth = std::iter::successors(Some(start), |&node| {
        let instruction = &graph.get(node).instruction;
        let next = (instruction.flow_control() == FlowControl::Next).then(|| instruction.next_ip())?;
        graph.at(next, node).filter(|&next| !graph.get(next).joined)
    });
    nodes.extend(forth.skip(1).take(MOST_INSTRUCTIONS / 2));
    nodes
}
