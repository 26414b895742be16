//! Cycles of instructions while every access hits the first level.

pub(crate) mod body;
mod chain;
mod pressure;
pub(crate) mod table;

use crate::CoreTimes;
use crate::effects::Effects;
use crate::graph::{Graph, Node};
use iced_x86::InstructionInfoFactory;

/// Parts of a cycle that the answer counts.
const PARTS: f32 = 65_536.0;

/// Cycles an instruction, in 1/65536, of the loop around an instruction, or else of its straight code.
///
/// The longest of three times: by the core's width, by its units, and by the longest chain of values from one turn of
/// the loop to the next.
pub(crate) fn per_instruction(graph: &Graph, times: &CoreTimes, start: Node) -> u32 {
    let body = body::around(graph, start);
    let mut factory = InstructionInfoFactory::new();
    let effects: Vec<_> =
        body.nodes.iter().map(|&node| Effects::of(&graph.get(node).instruction, &mut factory)).collect();
    let busy = pressure::cycles(graph, times, &body, &effects);
    let chained = if body.turns { chain::cycles(graph, times, &body, &effects) } else { 0.0 };
    (busy.max(chained) / body.nodes.len() as f32 * PARTS).round() as u32
}
