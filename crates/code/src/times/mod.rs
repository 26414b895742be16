//! Cycles of instructions while every access hits the first level.

pub(crate) mod body;
mod chain;
mod inner;
mod pressure;
pub(crate) mod table;

use crate::effects::Effects;
use crate::graph::{Graph, Node};
use crate::{CoreTimes, Pace};
use body::Body;
use iced_x86::InstructionInfoFactory;

/// Parts of a cycle that the answer counts.
const PARTS: f32 = 65_536.0;

/// Returns the pace of the code around an instruction: of its loop, or else of its straight code.
pub(crate) fn pace(graph: &Graph, times: &CoreTimes, start: Node) -> Pace {
    let body = body::around(graph, start);
    let cycles = parts(of_body(graph, times, &body), body.nodes.len());
    let inner = inner::per_instruction(graph, times, &body, start);
    Pace { cycles, instructions: body.nodes.len() as u32, inner }
}

/// Returns the cycles of the pace of the code around an instruction.
pub(crate) fn cycles_per_instruction(graph: &Graph, times: &CoreTimes, start: Node) -> u32 {
    let body = body::around(graph, start);
    parts(of_body(graph, times, &body), body.nodes.len())
}

/// Cycles of a body: the longest of three times, by the core's width, by its units, and by the longest chain of values
/// from one turn of the loop to the next.
fn of_body(graph: &Graph, times: &CoreTimes, body: &Body) -> f32 {
    let mut factory = InstructionInfoFactory::new();
    let effects: Vec<_> =
        body.nodes.iter().map(|&node| Effects::of(&graph.get(node).instruction, &mut factory)).collect();
    let busy = pressure::cycles(graph, times, body, &effects);
    let chained = if body.turns { chain::cycles(graph, times, body, &effects) } else { 0.0 };
    busy.max(chained)
}

/// Cycles an instruction, in 1/65536.
fn parts(cycles: f32, instructions: usize) -> u32 {
    (cycles / instructions as f32 * PARTS).round() as u32
}
