//! What a walk has met: values at places of the code, each with its nearest distance, and what led to what.

use crate::graph::Node;
use crate::place::{Place, RegisterNumber};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// A chain of calls that the walk has entered from behind; 0: none.
pub(super) type Calls = u32;

/// What is asked for at an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Wanted {
    /// The value of a place, just before the instruction.
    Value(Place),
    /// The address of the instruction's own access.
    Address,
}

/// A question of the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Question {
    pub node: Node,
    pub wanted: Wanted,
    pub calls: Calls,
}

impl Question {
    /// The same question for another place before another instruction.
    pub(super) fn value(node: Node, place: Place, calls: Calls) -> Question {
        Question { node, wanted: Wanted::Value(place), calls }
    }

    pub(super) fn register(node: Node, register: RegisterNumber, calls: Calls) -> Question {
        Question::value(node, Place::Register(register), calls)
    }
}

/// How far a question lies from the access that is asked about.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub(super) struct Way {
    /// Instructions.
    pub instructions: u32,
    /// Cycles from the value to the access.
    pub cycles: f32,
}

impl Way {
    pub(super) fn longer(self, instructions: u32, cycles: f32) -> Way {
        Way { instructions: self.instructions + instructions, cycles: self.cycles + cycles }
    }
}

struct State {
    way: Way,
    answered: bool,
    unknown: bool,
    from: Vec<u32>,
}

/// Questions in the order of their distance.
#[derive(Default)]
pub(super) struct States {
    states: Vec<State>,
    questions: Vec<Question>,
    numbers: HashMap<Question, u32>,
    open: BinaryHeap<Reverse<(u32, u32)>>,
}

impl States {
    /// Notes that the answer to `asker` depends on `question`, which lies `way` off.
    pub(super) fn ask(&mut self, asker: Option<u32>, question: Question, way: Way) {
        let next = self.states.len() as u32;
        let number = *self.numbers.entry(question).or_insert(next);
        if number == next {
            self.questions.push(question);
            self.states.push(State { way, answered: false, unknown: false, from: Vec::new() });
            self.open.push(Reverse((way.instructions, number)));
        }
        let state = &mut self.states[number as usize];
        state.from.extend(asker);
        if !state.answered && way.instructions < state.way.instructions {
            state.way = way;
            self.open.push(Reverse((way.instructions, number)));
        }
    }

    /// The nearest question not yet answered.
    pub(super) fn nearest(&mut self) -> Option<(u32, Question, Way)> {
        while let Some(Reverse((_, number))) = self.open.pop() {
            let state = &mut self.states[number as usize];
            if !std::mem::replace(&mut state.answered, true) {
                return Some((number, self.questions[number as usize], state.way));
            }
        }
        None
    }

    /// How many questions there are.
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

    /// Whether the first question depends on one without an answer, other than through a loop. What comes into a loop
    /// from outside is old in most turns, and nobody waits for it.
    pub(super) fn unknown(&self) -> bool {
        if !self.states.iter().any(|state| state.unknown) {
            return false;
        }
        let asked = self.asked();
        let turns = super::turns::on_a_cycle(&asked);
        let mut met = vec![false; self.states.len()];
        let mut open = vec![0_usize];
        while let Some(number) = open.pop() {
            if std::mem::replace(&mut met[number], true) || (number != 0 && turns[number]) {
                continue;
            }
            if self.states[number].unknown {
                return true;
            }
            open.extend(asked[number].iter().map(|&next| next as usize));
        }
        false
    }

    /// Of each question those that its answer depends on.
    fn asked(&self) -> Vec<Vec<u32>> {
        let mut asked = vec![Vec::new(); self.states.len()];
        for (number, state) in self.states.iter().enumerate() {
            for &from in &state.from {
                asked[from as usize].push(number as u32);
            }
        }
        asked
    }
}
