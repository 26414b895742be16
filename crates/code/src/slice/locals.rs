//! Values that code keeps in its stack frame or in a variable of a fixed address.

use super::states::{Calls, Question};
use super::{Distance, Slice};
use crate::effects::{Effects, Rebased, rebased};
use crate::graph::Node;
use crate::place::{FLAGS, Local, ValuePlace};

impl Slice<'_> {
    /// Requests the sources of a local's value after an instruction.
    pub(super) fn through_local(&mut self, number: u32, node: Node, read: (Local, Node), calls: Calls, way: Distance) {
        let (local, reader) = read;
        let placed = self.graph.get(node);
        let from = match local.base.map(|base| rebased(&placed.instruction, placed.summary, base)) {
            Some(Rebased::Lost) => return self.lost(number, reader, way),
            Some(Rebased::From(base, by)) => (Some(base), by),
            None => (None, 0),
        };
        let local = Local { base: from.0, displacement: local.displacement.wrapping_add(from.1), ..local };
        let effects = self.effects(node);
        let stores = effects.memory.iter().filter(|touched| touched.writes).filter_map(|touched| touched.local);
        let overlapping: Vec<_> = stores.filter(|store| store.overlaps(&local)).collect();
        if !overlapping.iter().any(|store| store.covers(&local)) {
            let question = Question::value(node, ValuePlace::Local(local, reader), calls);
            self.states.query(Some(number), question, way);
        }
        if !overlapping.is_empty() {
            self.notes_way_through(node);
            self.values(number, node, &stored(effects), calls, way);
        }
    }

    /// The memory was written where no walk sees it: its reader is a load as any other.
    pub(super) fn lost(&mut self, number: u32, reader: Node, way: Distance) {
        let way = self.readers.get(&reader).copied().unwrap_or(way);
        self.load(number, reader, 0, way);
    }
}

/// Returns a store's effects: its values and its loads. Flags that it reads decide only whether it runs on.
fn stored(mut effects: Effects) -> Effects {
    effects.values.retain(|&register| register != FLAGS);
    effects
}
