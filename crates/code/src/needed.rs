//! Forward along the value that an instruction loads: how much is computed from it.

use crate::effects::{Effects, Summary};
use crate::graph::{Graph, Node, direct_target};
use crate::place::{RegisterNumber, STACK_POINTER, number, survives_a_call};
use crate::times::table;
use crate::{CoreTimes, Needed};
use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Register};
use rustc_hash::FxHashMap;

/// Instructions that are followed: about the half of a core's window.
const REACH: u32 = 256;
/// Calls entered, one within the other.
const MOST_CALLS: usize = 4;
/// Where no branch leads.
const NO_TARGET: u64 = u64::MAX;

/// Returns the cycles of the longest chain of operations that begins with the value an instruction loads, up to where
/// it loads again. The way leads back at branches that may, as in a loop, and else on. The innermost loop around the
/// instruction may be one that tries again and is left at once, so that both ways count.
pub(crate) fn chain(graph: &Graph, times: &CoreTimes, start: Node) -> Needed {
    let ways = [Some(NO_TARGET), None].map(|left| Walk { graph, start, left, calls: Vec::new() }.chain(times));
    ways.into_iter().max_by_key(|way| way.cycles).unwrap_or_default()
}

/// A way through the code.
struct Walk<'a> {
    graph: &'a Graph,
    start: Node,
    /// Begin of the loop around the start that is left at once: branches back to it are not taken. None: it is the one
    /// that the first branch around the start leads back to.
    left: Option<u64>,
    /// Addresses that the calls on the way come back to.
    calls: Vec<u64>,
}

impl Walk<'_> {
    fn chain(&mut self, times: &CoreTimes) -> Needed {
        let factory = InstructionInfoFactory::new();
        let mut values = Values { times, factory, depths: FxHashMap::default(), longest: 0.0 };
        let mut instructions = 0;
        values.begin(&self.graph.get(self.start).instruction);
        let mut node = self.start;
        for ran in 1..=REACH {
            let entered = self.calls.len();
            let Some(next) = self.next(node) else { break };
            if self.graph.calls(node) && self.calls.len() == entered {
                values.forget_what_calls_change();
            }
            if next == self.start || values.depths.is_empty() {
                break;
            }
            let longest = values.longest;
            values.run(&self.graph.get(next).instruction);
            instructions = if values.longest > longest { ran } else { instructions };
            node = next;
        }
        Needed { cycles: values.longest.round() as u32, instructions }
    }

    /// The instruction that most likely runs next.
    fn next(&mut self, node: Node) -> Option<Node> {
        use FlowControl::*;
        let instruction = &self.graph.get(node).instruction;
        let (behind, target) = (instruction.next_ip(), direct_target(instruction));
        let on = match instruction.flow_control() {
            Next | IndirectCall | Interrupt | XbeginXabortXend => behind,
            UnconditionalBranch => target?,
            ConditionalBranch => target.filter(|target| self.goes_back(instruction.ip(), *target)).unwrap_or(behind),
            Call => self.enters(node, target, behind),
            Return => self.calls.pop()?,
            IndirectBranch | Exception => return None,
        };
        self.graph.at(on, node)
    }

    /// Whether a branch is taken: back, unless it is one of the loop that is left.
    fn goes_back(&mut self, from: u64, target: u64) -> bool {
        let start = self.graph.get(self.start).instruction.ip();
        if target > from {
            return false;
        }
        if (target..=from).contains(&start) {
            self.left.get_or_insert(target);
        }
        self.left != Some(target)
    }

    /// The address behind a call, or that of the called function, if its code is known.
    fn enters(&mut self, call: Node, target: Option<u64>, behind: u64) -> u64 {
        match target.filter(|target| self.calls.len() < MOST_CALLS && self.graph.at(*target, call).is_some()) {
            Some(target) => {
                self.calls.push(behind);
                target
            }
            None => behind,
        }
    }
}

/// A register, or memory by the registers and the constant that name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    Register(RegisterNumber),
    Memory { base: Register, index: Register, scale: u32, displacement: u64 },
}

impl Place {
    fn memory(of: &Instruction) -> Self {
        let (base, index) = (of.memory_base(), of.memory_index());
        Place::Memory { base, index, scale: of.memory_index_scale(), displacement: of.memory_displacement64() }
    }

    fn is_named_by(&self, register: RegisterNumber) -> bool {
        match self {
            Place::Register(_) => false,
            Place::Memory { base, index, .. } => [*base, *index].into_iter().filter_map(number).any(|r| r == register),
        }
    }
}

/// Places that hold something made of the value, with the cycles that it took.
struct Values<'a> {
    times: &'a CoreTimes,
    factory: InstructionInfoFactory,
    depths: FxHashMap<Place, f32>,
    longest: f32,
}

impl Values<'_> {
    /// The loading instruction itself.
    fn begin(&mut self, instruction: &Instruction) {
        let effects = Effects::of(instruction, &mut self.factory);
        self.write(instruction, &effects, Some(table::latency(instruction, self.times)));
    }

    fn run(&mut self, instruction: &Instruction) {
        let effects = Effects::of(instruction, &mut self.factory);
        let of = |depths: &FxHashMap<Place, f32>, registers: &[RegisterNumber]| {
            let known = registers.iter().filter_map(|register| depths.get(&Place::Register(*register)));
            known.copied().reduce(f32::max)
        };
        let loads = effects.memory.iter().any(|touched| touched.reads);
        let pointed = of(&self.depths, &effects.address).filter(|_| loads).map(|depth| depth + self.times.load_cycles);
        let stored = self.depths.get(&Place::memory(instruction)).filter(|_| loads);
        let stored = stored.map(|depth| depth + self.times.forwarding_cycles);
        let inputs = [of(&self.depths, &effects.values), pointed, stored].into_iter().flatten().reduce(f32::max);
        self.write(instruction, &effects, inputs.map(|depth| depth + table::latency(instruction, self.times)));
    }

    /// All that an instruction writes holds a value of this depth, or nothing made of the value.
    fn write(&mut self, instruction: &Instruction, effects: &Effects, depth: Option<f32>) {
        let summary = Summary::of(instruction, self.factory.info(instruction));
        for register in summary.registers().filter(|register| *register != STACK_POINTER) {
            let kept = self.depths.get(&Place::Register(register)).filter(|_| effects.may_keep(register)).copied();
            self.depths.retain(|place, _| !place.is_named_by(register));
            self.set(Place::Register(register), depth.into_iter().chain(kept).reduce(f32::max));
        }
        if effects.memory.iter().any(|touched| touched.writes) {
            self.set(Place::memory(instruction), depth);
        }
    }

    fn set(&mut self, place: Place, depth: Option<f32>) {
        match depth {
            Some(depth) => {
                self.longest = self.longest.max(depth);
                self.depths.insert(place, depth);
            }
            None => {
                self.depths.remove(&place);
            }
        }
    }

    /// A call whose code is not entered leaves its arguments to the called function.
    fn forget_what_calls_change(&mut self) {
        self.depths.retain(|place, _| match place {
            Place::Register(register) => survives_a_call(*register),
            Place::Memory { .. } => true,
        });
    }
}
