//! Loops that compute an access's address from values loaded before the loop began.

use crate::graph::{Graph, Node};
use crate::times::body;

/// A loop around an access, with its instructions.
pub(crate) struct Around {
    pub head: u64,
    /// Instructions from the first one to the access.
    pub at: u32,
    pub nodes: Vec<Node>,
}

/// Returns the loop around an access if some of these loads run in it, and the address comes from none of their values of
/// the same turn or the one before. `loads`: with the least number of instructions to the access.
pub(crate) fn around(graph: &Graph, start: Node, loads: impl Iterator<Item = (Node, u32)>) -> Option<Around> {
    let mut loads = loads.peekable();
    loads.peek()?;
    let body = body::around(graph, start);
    let turn = body.nodes.len() as u32;
    let mut inside = loads.filter(|(load, _)| body.nodes.contains(load)).peekable();
    if !body.turns || inside.peek().is_none() || inside.any(|(_, distance)| distance <= turn) {
        return None;
    }
    let address = |at: &usize| graph.get(body.nodes[*at]).instruction.ip();
    let first = (0..body.nodes.len()).min_by_key(address)?;
    // The body begins with the access.
    let at = (body.nodes.len() - first) % body.nodes.len();
    Some(Around { head: address(&first), at: at as u32, nodes: body.nodes })
}
