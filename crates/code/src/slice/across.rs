//! Joins of control flow: branches, calls, and the beginnings of functions.

use super::Slice;
use super::returns;
use super::states::{Calls, Distance, Question};
use crate::graph::{Edge, Node};
use crate::place::{FLAGS, Local, STACK_POINTER, ValuePlace, survives_a_call};

/// Calls entered from behind, one within the other.
const MOST_CALLS: usize = 4;
/// Bytes that a call pushes.
const RETURN_ADDRESS: i64 = 8;

impl Slice<'_> {
    /// Requests the value of a place before `node`, from all instructions that may run before `node`.
    pub(super) fn across(&mut self, number: u32, node: Node, place: ValuePlace, calls: Calls, way: Distance) {
        let ways = self.graph.ways_to(node);
        if ways.is_empty() {
            return self.nothing_before(number, place, way);
        }
        let entered = ways.iter().any(|&(_, edge)| edge == Edge::Enters);
        if entered && calls != 0 {
            let (outer, call) = self.calls[calls as usize];
            if ways.contains(&(call, Edge::Enters)) {
                return self.at_the_call(number, call, place, outer, way.longer(1, 0.0));
            }
        }
        for (from, edge) in ways {
            let way = way.longer(1, 0.0);
            match edge {
                Edge::Falls | Edge::Jumps => self.through(number, from, place, calls, way),
                Edge::Enters => self.at_the_call(number, from, place, calls, way),
                Edge::Returns => self.behind_a_call(number, from, place, calls, way),
            }
        }
    }

    fn nothing_before(&mut self, number: u32, place: ValuePlace, way: Distance) {
        match place {
            ValuePlace::Local(_, reader) => self.lost(number, reader, way),
            ValuePlace::Register(STACK_POINTER | FLAGS) => {}
            ValuePlace::Register(_) => self.states.give_up(number),
        }
    }

    /// Requests a value needed at a function's entry from before the call.
    fn at_the_call(&mut self, number: u32, call: Node, place: ValuePlace, calls: Calls, way: Distance) {
        let place = match place {
            ValuePlace::Register(FLAGS) => return,
            ValuePlace::Local(local, reader) if local.base == Some(STACK_POINTER) => {
                let displacement = local.displacement.wrapping_sub(RETURN_ADDRESS);
                if displacement < -RETURN_ADDRESS {
                    return self.lost(number, reader, way);
                }
                if displacement < 0 {
                    return;
                }
                ValuePlace::Local(Local { displacement, ..local }, reader)
            }
            other => other,
        };
        self.states.query(Some(number), Question::value(call, place, calls), way);
    }

    /// Requests a value needed after a call.
    fn behind_a_call(&mut self, number: u32, call: Node, place: ValuePlace, calls: Calls, way: Distance) {
        if self.graph.calls_the_kernel(call) {
            return self.through(number, call, place, calls, way);
        }
        let returns = self.returns_of(call);
        let over = way.longer(returns.instructions, 0.0);
        match place {
            ValuePlace::Register(FLAGS) => {}
            ValuePlace::Register(register) if survives_a_call(register) => {
                self.query_before(number, call, place, calls, over)
            }
            ValuePlace::Local(local, _) if local.base.is_some() => self.query_before(number, call, place, calls, over),
            ValuePlace::Local(..) if returns.nodes.is_empty() || self.depth(calls) >= MOST_CALLS => {
                self.query_before(number, call, place, calls, over);
            }
            ValuePlace::Register(_) if returns.nodes.is_empty() || self.depth(calls) >= MOST_CALLS => {
                self.states.give_up(number);
            }
            _ => self.follow_the_call(number, call, &returns.nodes, place, calls, way),
        }
    }

    fn query_before(&mut self, number: u32, call: Node, place: ValuePlace, calls: Calls, way: Distance) {
        self.states.query(Some(number), Question::value(call, place, calls), way);
    }

    fn follow_the_call(
        &mut self,
        number: u32,
        call: Node,
        returns: &[Node],
        place: ValuePlace,
        calls: Calls,
        way: Distance,
    ) {
        let inner = self.entered(calls, call);
        for &node in returns {
            self.states.query(Some(number), Question::value(node, place, inner), way);
        }
    }

    fn entered(&mut self, calls: Calls, call: Node) -> Calls {
        let known = self.calls.iter().skip(1).position(|&entered| entered == (calls, call));
        known.map_or_else(
            || {
                self.calls.push((calls, call));
                self.calls.len() as Calls - 1
            },
            |index| index as Calls + 1,
        )
    }

    fn depth(&self, calls: Calls) -> usize {
        std::iter::successors(Some(calls), |&calls| Some(self.calls[calls as usize].0))
            .take_while(|&calls| calls != 0)
            .count()
    }

    fn returns_of(&mut self, call: Node) -> returns::Returns {
        let graph = self.graph;
        self.returns.entry(call).or_insert_with(|| returns::of_call(graph, call)).clone()
    }
}
