//! The longest chain of values from one turn of a loop to the next.

use super::body::Body;
use super::table;
use crate::CoreTimes;
use crate::effects::{Effects, Rebased, rebased};
use crate::graph::{Graph, Placed};
use crate::place::{Local, RegisterNumber, STACK_POINTER};
use rustc_hash::FxHashMap;

/// Turns after which every chain of a loop shows its latency: the longest passes through few registers.
const FIRST_TURNS: u32 = 16;
/// Turns that are then counted. Chains that come round once in two or three turns come out even.
const COUNTED_TURNS: u32 = 24;

/// Times at which values are ready, in cycles from the first turn on.
struct Ready {
    registers: [f32; 64],
    locals: FxHashMap<(Option<RegisterNumber>, i64), f32>,
    /// Bytes that the stack pointer has moved.
    stack: i64,
    latest: f32,
}

/// Cycles of one turn while nothing but values is waited for.
pub(super) fn cycles(graph: &Graph, times: &CoreTimes, body: &Body, effects: &[Effects]) -> f32 {
    let mut ready = Ready { registers: [0.0; 64], locals: FxHashMap::default(), stack: 0, latest: 0.0 };
    let mut turns = |count: u32| {
        for _ in 0..count {
            for (&node, effects) in body.nodes.iter().zip(effects) {
                ready.run(graph.get(node), effects, times);
            }
        }
        ready.latest
    };
    let first = turns(FIRST_TURNS);
    (turns(COUNTED_TURNS) - first) / COUNTED_TURNS as f32
}

impl Ready {
    fn run(&mut self, placed: &Placed, effects: &Effects, times: &CoreTimes) {
        let of = |ready: &Ready, registers: &[RegisterNumber]| {
            registers.iter().fold(0.0, |latest: f32, &register| latest.max(ready.registers[register as usize]))
        };
        let address = of(self, &effects.address);
        let mut inputs = of(self, &effects.values);
        for touched in effects.memory.iter().filter(|touched| touched.reads) {
            let stored = touched.local.and_then(|local| self.locals.get(&self.key(local)).copied());
            let loaded = address + times.load_cycles;
            inputs = inputs.max(stored.map_or(loaded, |stored| loaded.max(stored + times.forwarding_cycles)));
        }
        let output = inputs + table::latency(&placed.instruction, times);
        for local in effects.memory.iter().filter(|touched| touched.writes).filter_map(|touched| touched.local) {
            let key = self.key(local);
            self.locals.insert(key, output);
        }
        let pointers = address + table::latency(&placed.instruction, times);
        for register in placed.summary.registers().filter(|&register| register != STACK_POINTER) {
            let moves = effects.string && effects.address.contains(&register);
            self.registers[register as usize] = if moves { pointers } else { output };
        }
        self.latest = self.latest.max(output);
        self.move_the_stack(placed);
    }

    fn key(&self, local: Local) -> (Option<RegisterNumber>, i64) {
        let moved = if local.base == Some(STACK_POINTER) { self.stack } else { 0 };
        (local.base, local.displacement.wrapping_add(moved))
    }

    fn move_the_stack(&mut self, placed: &Placed) {
        let calls = placed.instruction.flow_control() == iced_x86::FlowControl::Call;
        if !calls && let Rebased::From(STACK_POINTER, by) = rebased(&placed.instruction, placed.summary, STACK_POINTER)
        {
            self.stack = self.stack.wrapping_add(by);
        }
    }
}
