//! Busy time of a core's units with the instructions of a loop.

use super::body::Body;
use super::table::{self, Unit};
use crate::CoreTimes;
use crate::effects::Effects;
use crate::graph::{Graph, Node};
use iced_x86::{FlowControl, Instruction, Mnemonic};

/// Branches taken in a cycle.
const TAKEN_BRANCHES: f32 = 1.0;

/// Operations that each kind of unit begins in a cycle.
struct Units {
    loads: f32,
    stores: f32,
    integer: f32,
    vector: f32,
}

impl Units {
    /// A wide core has three units for loads, two for stores and five for integers (Golden Cove; Zen 3 has four: Agner
    /// Fog, "The microarchitecture of Intel, AMD and VIA CPUs"); one of four or five instructions a cycle has two, one and
    /// four (Skylake, Zen 2).
    fn of(times: &CoreTimes) -> Units {
        if times.width >= 6 {
            Units { loads: 3.0, stores: 2.0, integer: 5.0, vector: 2.0 }
        } else {
            Units { loads: 2.0, stores: 1.0, integer: 4.0, vector: 2.0 }
        }
    }
}

/// Work of a body, by kind of unit.
#[derive(Default)]
struct Work {
    begun: f32,
    loads: f32,
    stores: f32,
    integer: f32,
    vector: f32,
    multiplies: f32,
    shuffles: f32,
    divides: f32,
    taken: f32,
}

/// Cycles of one turn while no value is waited for.
pub(super) fn cycles(graph: &Graph, times: &CoreTimes, body: &Body, effects: &[Effects]) -> f32 {
    let mut work = Work::default();
    for (index, (&node, effects)) in body.nodes.iter().zip(effects).enumerate() {
        let instruction = &graph.get(node).instruction;
        let next = body.nodes.get(index + 1).or_else(|| body.nodes.first().filter(|_| body.turns)).copied();
        let next = next.map(|next| &graph.get(next).instruction);
        work.add(instruction, effects);
        if next.is_some_and(|next| fuse(instruction, next)) {
            work.begun -= 1.0;
            work.integer -= 1.0;
        }
        work.taken += f32::from(u8::from(taken(graph, node, next)));
    }
    let units = Units::of(times);
    let shares = [
        work.begun / times.width.max(1) as f32,
        work.loads / units.loads,
        work.stores / units.stores,
        work.integer / units.integer,
        work.vector / units.vector,
        work.multiplies,
        work.shuffles,
        work.divides,
        work.taken / TAKEN_BRANCHES,
    ];
    shares.into_iter().fold(0.0, f32::max)
}

impl Work {
    fn add(&mut self, instruction: &Instruction, effects: &Effects) {
        let cost = table::cost(instruction);
        let loads = effects.memory.iter().filter(|touched| touched.reads).count() as f32;
        let stores = effects.memory.iter().filter(|touched| touched.writes).count() as f32;
        let both = f32::from(u8::from(loads > 0.0 && stores > 0.0));
        self.begun += cost.begun + both;
        self.loads += loads;
        self.stores += stores;
        match cost.unit {
            Unit::None => {}
            Unit::Integer => self.integer += 1.0,
            Unit::Vector | Unit::FloatAdd => self.vector += 1.0,
            Unit::Shuffle => self.shuffles += 1.0,
            Unit::Multiply => self.multiplies += 1.0,
            Unit::Alone => self.divides += cost.busy,
        }
    }
}

/// Whether two instructions are begun as one: a comparison and the branch on it.
fn fuse(first: &Instruction, second: &Instruction) -> bool {
    use Mnemonic::*;
    let compares = matches!(first.mnemonic(), Cmp | Test | Add | Sub | And | Inc | Dec);
    compares && second.flow_control() == FlowControl::ConditionalBranch
}

/// Whether the body goes on elsewhere than behind the instruction.
fn taken(graph: &Graph, node: Node, next: Option<&Instruction>) -> bool {
    let instruction = &graph.get(node).instruction;
    match instruction.flow_control() {
        FlowControl::Next => false,
        FlowControl::ConditionalBranch => next.is_some_and(|next| next.ip() != instruction.next_ip()),
        _ => true,
    }
}
