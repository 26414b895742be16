//! Backward along the values that an address is computed from.
//!
//! A walk queries values before instructions, the nearest first, and answers each query by further ones: the value
//! passes unchanged through an instruction that does not write it; else it comes from the instruction's inputs. The
//! walk ends at a value that is computed from nothing or unknown, or at a distance beyond every reorder window.

mod across;
mod given;
mod line;
mod locals;
mod returns;
mod states;
mod turns;

use crate::effects::Effects;
use crate::graph::{Graph, Node};
use crate::place::{RegisterNumber, STACK_POINTER, ValuePlace};
use crate::times::table;
use crate::{Chain, CoreTimes, Given, Origin};
use iced_x86::InstructionInfoFactory;
use returns::Returns;
use rustc_hash::FxHashMap;
use states::{Calls, Distance, Question, Requested, States};

/// Queries of one walk. Longer walks resolve few of the unknown addresses of libc and sort, for many times the time.
const MOST_QUESTIONS: usize = 512;
/// Answers in one walk: some queries recur by a way of more cycles.
const MOST_ANSWERS: usize = 2 * MOST_QUESTIONS;
/// Instructions that compute one address and are kept.
const MOST_WAYS_THROUGH: usize = 64;
/// Loads that one address comes through.
const MOST_LOADS: usize = 64;
/// Instructions between a load and an access beyond which no core has both under way (Golden Cove: 512).
const REACH: u32 = 1_024;

/// Returns the origin of the address of an instruction's access.
pub(crate) fn origin(graph: &Graph, times: &CoreTimes, start: Node) -> Origin {
    follow(graph, times, start, Requested::Address)
}

/// Returns the origin of what decides the way of a branch.
pub(crate) fn decision(graph: &Graph, times: &CoreTimes, branch: Node) -> Origin {
    follow(graph, times, branch, Requested::Inputs)
}

fn follow(graph: &Graph, times: &CoreTimes, start: Node, wanted: Requested) -> Origin {
    let mut slice = Slice {
        graph,
        times,
        start,
        factory: InstructionInfoFactory::new(),
        states: States::default(),
        loads: Vec::new(),
        own: None,
        calls: vec![(0, start)],
        returns: FxHashMap::default(),
        readers: FxHashMap::default(),
        through: Vec::new(),
    };
    slice.walk(wanted);
    slice.origin()
}

struct Slice<'a> {
    graph: &'a Graph,
    times: &'a CoreTimes,
    start: Node,
    factory: InstructionInfoFactory,
    states: States,
    /// Loads found, with their distances.
    loads: Vec<(Node, Distance)>,
    own: Option<Distance>,
    /// Calls entered from behind: the one before it, and the call.
    calls: Vec<(Calls, Node)>,
    returns: FxHashMap<Node, Returns>,
    /// Readers of locals, with their distances.
    readers: FxHashMap<Node, Distance>,
    /// Addresses of instructions that compute the values.
    through: Vec<u64>,
}

impl Slice<'_> {
    fn walk(&mut self, wanted: Requested) {
        let first = Question { node: self.start, wanted, calls: 0 };
        self.states.query(None, first, Distance::default());
        let mut answers = 0;
        while self.states.count() <= MOST_QUESTIONS && answers < MOST_ANSWERS {
            answers += 1;
            let Some((number, question, way)) = self.states.nearest() else { return };
            match question.wanted {
                Requested::Address => self.address(number, question, way),
                Requested::Inputs => {
                    let effects = self.effects(question.node);
                    self.values(number, question.node, &effects, question.calls, way);
                }
                Requested::Value(place) => self.back(number, question, place, way),
            }
        }
        self.states.give_up_the_open();
    }

    fn origin(&self) -> Origin {
        let ids = |node: Node| self.graph.get(node).ids.iter().copied();
        let mut loads: Vec<_> =
            self.loads.iter().flat_map(|&(load, way)| ids(load).map(move |id| (id, way, load))).collect();
        loads.sort_unstable_by_key(|(id, way, _)| (*id, way.instructions));
        loads.dedup_by_key(|(id, ..)| *id);
        let nodes = self.loads.iter().map(|(load, way)| (*load, way.instructions));
        let given = given::around(self.graph, self.start, nodes).map(|around| Given {
            head: around.head,
            instructions: around.nodes.len() as u32,
            at: around.at,
            inside: loads.iter().map(|(_, _, load)| around.nodes.contains(load)).collect(),
        });
        let distances = loads.iter().map(|(_, way, _)| way.instructions).collect();
        let cycles = loads.iter().map(|(_, way, _)| way.cycles).collect();
        let loads = loads.into_iter().map(|(id, ..)| id).collect();
        let own_chain = self.own.map(|way| Chain { instructions: way.instructions, cycles: way.cycles });
        let mut through = self.through.clone();
        through.sort_unstable();
        let counted_ahead = self.graph.get(self.start).counted_ahead;
        Origin { loads, distances, cycles, unknown: self.states.unknown(), own_chain, through, counted_ahead, given }
    }

    fn address(&mut self, number: u32, question: Question, way: Distance) {
        for register in self.effects(question.node).address {
            self.states.query(Some(number), Question::register(question.node, register, question.calls), way);
        }
    }

    /// Walks back through straight code to the write of the value, or to a join of ways.
    fn back(&mut self, number: u32, question: Question, place: ValuePlace, way: Distance) {
        let (mut node, mut way) = (question.node, way);
        while !self.graph.get(node).joined && way.instructions < REACH {
            let before = self.graph.before(node);
            way = way.longer(1, 0.0);
            if self.touches(before, place) {
                return self.through(number, before, place, question.calls, way);
            }
            node = before;
        }
        if way.instructions >= REACH {
            return;
        }
        if node == question.node {
            self.across(number, node, place, question.calls, way);
        } else {
            self.states.query(Some(number), Question::value(node, place, question.calls), way);
        }
    }

    /// Whether an instruction may write the place or move the base that it is named by.
    fn touches(&self, node: Node, place: ValuePlace) -> bool {
        let summary = self.graph.get(node).summary;
        match place {
            ValuePlace::Register(register) => summary.writes(register),
            ValuePlace::Local(local, _) => {
                summary.writes_memory() || local.base.is_some_and(|base| summary.writes(base))
            }
        }
    }

    /// Requests the sources of a place's value after an instruction.
    fn through(&mut self, number: u32, node: Node, place: ValuePlace, calls: Calls, way: Distance) {
        if !self.touches(node, place) {
            return self.states.query(Some(number), Question::value(node, place, calls), way);
        }
        match place {
            ValuePlace::Register(STACK_POINTER) => {}
            ValuePlace::Register(register) => self.through_register(number, node, register, calls, way),
            ValuePlace::Local(local, reader) => self.through_local(number, node, (local, reader), calls, way),
        }
    }

    fn through_register(&mut self, number: u32, node: Node, register: RegisterNumber, calls: Calls, way: Distance) {
        self.notes_way_through(node);
        let effects = self.effects(node);
        if effects.may_keep(register) {
            self.states.query(Some(number), Question::register(node, register, calls), way);
        }
        let computed = way.longer(0, table::latency(&self.graph.get(node).instruction, self.times));
        if effects.string && effects.address.contains(&register) {
            return self.states.query(Some(number), Question::register(node, register, calls), computed);
        }
        self.values(number, node, &effects, calls, computed);
    }

    fn notes_way_through(&mut self, node: Node) {
        let address = self.graph.get(node).instruction.ip();
        if self.through.len() < MOST_WAYS_THROUGH && !self.through.contains(&address) {
            self.through.push(address);
        }
    }

    /// Requests all values that an instruction computes with.
    fn values(&mut self, number: u32, node: Node, effects: &Effects, calls: Calls, way: Distance) {
        for &register in effects.values.iter().filter(|&&register| register != STACK_POINTER) {
            self.states.query(Some(number), Question::register(node, register, calls), way);
        }
        for touched in effects.memory.iter().filter(|touched| touched.reads) {
            match touched.local {
                Some(local) => {
                    self.readers.entry(node).or_insert(way);
                    let way = way.longer(0, self.times.forwarding_cycles);
                    self.states.query(Some(number), Question::value(node, ValuePlace::Local(local, node), calls), way);
                }
                None => self.load(number, node, calls, way),
            }
        }
    }

    /// Notes the load that the value comes from, and requests its address.
    fn load(&mut self, number: u32, node: Node, calls: Calls, way: Distance) {
        let address = way.longer(0, self.times.load_cycles);
        let beside = self.on_the_line_of(node);
        let is_own = node == self.start || beside.contains(&self.start);
        if is_own && self.own.is_none_or(|own| order(address) < order(own)) {
            self.own = Some(address);
        }
        for load in [node].into_iter().chain(beside) {
            if let Some((_, known)) = self.loads.iter_mut().find(|(known, _)| *known == load) {
                *known = std::cmp::min_by_key(*known, way, |way| order(*way));
                continue;
            }
            if self.loads.len() == MOST_LOADS {
                return self.states.give_up(number);
            }
            self.loads.push((load, way));
        }
        let calls = if node == self.start { 0 } else { calls };
        self.states.query(Some(number), Question { node, wanted: Requested::Address, calls }, address);
    }

    fn effects(&mut self, node: Node) -> Effects {
        Effects::of(&self.graph.get(node).instruction, &mut self.factory)
    }
}

/// Orders ways to one value: the nearest is followed, and of equals the one of most cycles.
fn order(way: Distance) -> (u32, std::cmp::Reverse<u32>) {
    (way.instructions, std::cmp::Reverse(way.cycles.to_bits()))
}
