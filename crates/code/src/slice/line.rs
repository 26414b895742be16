//! Loads that read near where another load reads.
//!
//! The first of an object's loads brings the line; the other loads find the line on its way. Records show the first
//! alone. So a value waits also for the loads ahead of its own that have the same base.

use super::Slice;
use crate::graph::{Edge, Node};
use crate::place::number;
use iced_x86::{Instruction, Register};

/// Bytes within which two accesses are likely to share a line.
const NEAR_BYTES: u64 = 64;
/// Instructions that are looked through.
const MOST_STEPS: usize = 48;

impl Slice<'_> {
    /// Loads ahead of this one, by the same base and no further than a line off, in the same function.
    pub(super) fn on_the_line_of(&self, load: Node) -> Vec<Node> {
        let own = self.graph.get(load).instruction;
        let (mut found, mut open, mut visited) = (Vec::new(), vec![load], vec![load]);
        if matches!(own.memory_base(), Register::None | Register::RIP) {
            return found;
        }
        while let Some(node) = open.pop() {
            for (before, way) in self.graph.ways_to(node) {
                let through = matches!(way, Edge::Falls | Edge::Jumps);
                if !through || visited.len() > MOST_STEPS || visited.contains(&before) || before == load {
                    continue;
                }
                visited.push(before);
                let placed = self.graph.get(before);
                let moves = [own.memory_base(), own.memory_index()].map(number);
                if moves.into_iter().flatten().any(|register| placed.summary.writes(register)) {
                    continue;
                }
                if is_near(&own, &placed.instruction) {
                    found.push(before);
                }
                open.push(before);
            }
        }
        found
    }
}

fn is_near(one: &Instruction, other: &Instruction) -> bool {
    apart(one, other).is_some_and(|bytes| bytes.unsigned_abs() < NEAR_BYTES)
}

/// Bytes from the address of one access to that of another by the same registers; `None`: by others.
fn apart(one: &Instruction, other: &Instruction) -> Option<i64> {
    let place = |of: &Instruction| (of.segment_prefix(), of.memory_base(), of.memory_index(), of.memory_index_scale());
    let bytes = other.memory_displacement64().wrapping_sub(one.memory_displacement64()) as i64;
    (place(one) == place(other)).then_some(bytes)
}
