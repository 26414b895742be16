//! Loops without an access inside another loop.
//!
//! No record shows such a loop: what it executes comes with the next access of the loop around it.

use super::body::{self, Body};
use super::of_body;
use crate::CoreTimes;
use crate::effects::Effects;
use crate::graph::{Edge, Graph, Node, direct_target};
use iced_x86::{FlowControl, InstructionInfoFactory};

/// Instructions of a loop or function that are looked through, by address.
const MOST_INSTRUCTIONS: usize = 256;
/// Calls from a loop that are looked into.
const MOST_CALLS: usize = 4;

/// Cycles an instruction, in 1/65536, of the loops without an access that lie in the loop around an instruction, or else
/// in the code before it, or in a function called there; `None`: there are none.
pub(super) fn per_instruction(graph: &Graph, times: &CoreTimes, around: &Body, start: Node) -> Option<u32> {
    let own = if around.turns { inside(graph, around) } else { before(graph, start) };
    let targets = own.iter().filter(|&&node| graph.calls(node)).filter_map(|&node| {
        let target = direct_target(&graph.get(node).instruction)?;
        graph.at(target, node)
    });
    let returns = |node: Node| graph.get(node).instruction.flow_control() == FlowControl::Return;
    let called: Vec<_> = targets.take(MOST_CALLS).map(|target| walk(graph, target, |node| !returns(node))).collect();
    let (mut cycles, mut instructions) = (0.0, 0);
    for nodes in [own].iter().chain(&called) {
        for inner in nodes.iter().filter_map(|&node| without_accesses(graph, node)) {
            cycles += of_body(graph, times, &inner);
            instructions += inner.nodes.len();
        }
    }
    (instructions > 0).then(|| super::parts(cycles, instructions))
}

/// The instructions of a loop by address, with what its shortest way passes over.
fn inside(graph: &Graph, around: &Body) -> Vec<Node> {
    let address = |node: &Node| graph.get(*node).instruction.ip();
    let ends = around.nodes.iter().map(address).max().unwrap_or_default();
    let begins = around.nodes.iter().copied().min_by_key(address);
    begins.map(|begins| walk(graph, begins, |node| address(&node) <= ends)).unwrap_or_default()
}

/// Instructions of the same function that may run before this one, the nearest first.
fn before(graph: &Graph, start: Node) -> Vec<Node> {
    let mut found = vec![start];
    let mut at = 0;
    while at < found.len() && found.len() < MOST_INSTRUCTIONS {
        for (node, way) in graph.ways_to(found[at]) {
            if way != Edge::Enters && !found.contains(&node) {
                found.push(node);
            }
        }
        at += 1;
    }
    found
}

/// Instructions by address, as long as they are known and `is_inside`.
fn walk(graph: &Graph, begins: Node, is_inside: impl Fn(Node) -> bool) -> Vec<Node> {
    let next = |&node: &Node| graph.at(graph.get(node).instruction.next_ip(), node);
    std::iter::successors(Some(begins), next).take_while(|&node| is_inside(node)).take(MOST_INSTRUCTIONS).collect()
}

/// The loop that a branch goes back in, if it has no access.
fn without_accesses(graph: &Graph, branch: Node) -> Option<Body> {
    let instruction = &graph.get(branch).instruction;
    let back = direct_target(instruction).filter(|target| *target <= instruction.ip())?;
    if graph.calls(branch) || graph.at(back, branch).is_none() {
        return None;
    }
    let inner = body::around(graph, branch);
    let mut factory = InstructionInfoFactory::new();
    let mut accesses = |node: &Node| {
        let instruction = &graph.get(*node).instruction;
        graph.calls(*node) || !Effects::of(instruction, &mut factory).memory.is_empty()
    };
    (inner.turns && !inner.nodes.iter().any(&mut accesses)).then_some(inner)
}
