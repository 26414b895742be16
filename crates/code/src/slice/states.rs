//! State of a walk: values at places of the code, each with its nearest distance and its dependents.

use crate::graph::{NONE, Node};
use crate::place::{RegisterNumber, ValuePlace};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A chain of calls that the walk has entered from behind; 0: none.
pub(super) type Calls = u32;

/// Value or fact requested at an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Requested {
    /// The value of a place, just before the instruction.
    Value(ValuePlace),
    /// The address of the instruction's own access.
    Address,
    /// All that the instruction computes with: of a branch, what decides its way.
    Inputs,
}

/// A question of the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Question {
    pub node: Node,
    pub wanted: Requested,
    pub calls: Calls,
}

impl Question {
    /// Returns a query for a place's value before `node`.
    pub(super) fn value(node: Node, place: ValuePlace, calls: Calls) -> Question {
        Question { node, wanted: Requested::Value(place), calls }
    }

    /// Returns the query without its reader: the value of a local is the same for all that read it.
    fn of_anybody(self) -> Question {
        match self.wanted {
            Requested::Value(ValuePlace::Local(local, _)) => {
                Question::value(self.node, ValuePlace::Local(local, NONE), self.calls)
            }
            _ => self,
        }
    }

    pub(super) fn register(node: Node, register: RegisterNumber, calls: Calls) -> Question {
        Question::value(node, ValuePlace::Register(register), calls)
    }
}

/// Distance of a query from the access under study.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub(super) struct Distance {
    /// Instructions.
    pub instructions: u32,
    /// Cycles from the value to the access.
    pub cycles: f32,
}

impl Distance {
    pub(super) fn longer(self, instructions: u32, cycles: f32) -> Distance {
        Distance { instructions: self.instructions + instructions, cycles: self.cycles + cycles }
    }
}

struct State {
    way: Distance,
    answered: bool,
    unknown: bool,
    from: Vec<u32>,
}

/// Questions in the order of their distance.
#[derive(Default)]
pub(super) struct States {
    states: Vec<State>,
    questions: Vec<Question>,
    numbers: FxHashMap<Question, u32>,
    open: BinaryHeap<Reverse<(u32, u32)>>,
}

impl States {
    /// Records that the answer to `dependent` depends on `question`, which lies `way` off. Among ways of equal length the
    /// one of more cycles counts: the value waits for all it is computed from.
    pub(super) fn query(&mut self, dependent: Option<u32>, question: Question, way: Distance) {
        let next = self.states.len() as u32;
        let number = *self.numbers.entry(question).or_insert(next);
        if number == next {
            self.questions.push(question);
            self.states.push(State { way, answered: false, unknown: false, from: Vec::new() });
            self.open.push(Reverse((way.instructions, number)));
        }
        let state = &mut self.states[number as usize];
        state.from.extend(dependent);
        let nearer = !state.answered && way.instructions < state.way.instructions;
        let later = way.instructions == state.way.instructions && way.cycles > state.way.cycles;
        if nearer || later {
            state.way = way;
            state.answered = false;
            self.open.push(Reverse((way.instructions, number)));
        }
    }

    /// The nearest question not yet answered.
    pub(super) fn nearest(&mut self) -> Option<(u32, Question, Distance)> {
        while let Some(Reverse((_, number))) = self.open.pop() {
            let state = &mut self.states[number as usize];
            if !std::mem::replace(&mut state.answered, true) {
                return Some((number, self.questions[number as usize], state.way));
            }
        }
        None
    }

    /// Returns the number of queries.
    pub(super) fn count(&self) -> usize {
        self.states.len()
    }

    /// Notes that the answer to a question is not known.
    pub(super) fn give_up(&mut self, number: u32) {
        self.states[number as usize].unknown = true;
    }

    /// Notes that no open question will be answered.
    pub(super) fn give_up_the_open(&mut self) {
        for state in self.states.iter_mut().filter(|state| !state.answered) {
            state.unknown = true;
        }
    }

    /// Whether the first query depends on one without an answer, other than through a loop. A value that enters a loop
    /// from outside is old in most turns, and no instruction waits for it.
    pub(super) fn unknown(&self) -> bool {
        if !self.states.iter().any(|state| state.unknown) {
            return false;
        }
        let same = self.same();
        let (mut dependencies, mut unknown) = (vec![Vec::new(); self.states.len()], vec![false; self.states.len()]);
        for (number, state) in self.states.iter().enumerate() {
            let question = same[number];
            unknown[question as usize] |= state.unknown;
            for &from in &state.from {
                dependencies[same[from as usize] as usize].push(question);
            }
        }
        reaches(&dependencies, &super::turns::on_a_cycle(&dependencies), &unknown)
    }

    /// Returns, for each query, the first that differs from it at most in the reader.
    fn same(&self) -> Vec<u32> {
        let mut first = FxHashMap::default();
        let plain = self.questions.iter().map(|question| question.of_anybody());
        plain.enumerate().map(|(number, question)| *first.entry(question).or_insert(number as u32)).collect()
    }
}

/// Whether a path leads from the first vertex to a wanted one past no other vertex that lies on a cycle.
fn reaches(edges: &[Vec<u32>], cyclic: &[bool], wanted: &[bool]) -> bool {
    let mut visited = vec![false; edges.len()];
    let mut open = vec![0_usize];
    while let Some(vertex) = open.pop() {
        if std::mem::replace(&mut visited[vertex], true) || (vertex != 0 && cyclic[vertex]) {
            continue;
        }
        if wanted[vertex] {
            return true;
        }
        open.extend(edges[vertex].iter().map(|&next| next as usize));
    }
    false
}
