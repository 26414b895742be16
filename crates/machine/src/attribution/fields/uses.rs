//! Uses of fields, and of fields together.

use super::super::objects::Key;
use super::super::touches::Touches;
use super::sizes::{ElementSize, SizesByObject};
use super::spans::{Count, Span};
use super::{Touched, touched};
use crate::hashing;
use crate::observer::{Effective, Observer, Outcome};
use nearmiss_record::machine::Machine;
use nearmiss_record::reference::{Control, Kind};
use nearmiss_record::symbols::Symbols;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Elements in use at once: a visit of an element ends when another one takes its place among these.
const RECENT: usize = 1 << 10;
/// Bits of a visit.
pub(super) const GRANULES: u64 = 128;
/// Sets of used granules that are kept apart by object.
const MOST_VISITS: usize = 1 << 12;

/// Bytes of a granule: the smallest that an element has no more than [`GRANULES`] of.
pub(super) fn granule_bytes(element_bytes: u64) -> u64 {
    element_bytes.div_ceil(GRANULES).next_power_of_two().max(4)
}

/// The granules that `bytes` bytes from `from` on lie in.
pub(super) fn granules(from: u64, bytes: u64, granule: u64) -> u128 {
    let (first, last) = (from / granule, (from + bytes.max(1) - 1) / granule);
    let count = (last - first + 1).min(GRANULES);
    let ones = if count == GRANULES { u128::MAX } else { (1u128 << count) - 1 };
    ones.checked_shl(first as u32).unwrap_or(0)
}

/// Uses of the elements of one object.
pub(super) struct Uses {
    pub size: ElementSize,
    /// By the bytes and the instruction.
    pub spans: FxHashMap<(Span, u32), Count>,
    /// Visits of elements by the granules that were used.
    pub visits: FxHashMap<u128, u64>,
    /// First and last element in use of each block, or of the object, by process and start.
    pub blocks: BTreeMap<(u32, u64), (u64, u64)>,
}

/// A visit under way.
#[derive(Clone, Copy, Default)]
struct Visit {
    /// First address of the element; 0: none.
    element: u64,
    object: u32,
    used: u128,
}

/// Listens to a model; see the module's text.
pub struct FieldUses {
    touches: Touches,
    sizes: SizesByObject,
    /// By object; none where it has no elements.
    pub(super) uses: Vec<Option<Box<Uses>>>,
    recent: Vec<Visit>,
}

impl FieldUses {
    /// For a run on this machine, with the elements that the first replay found.
    pub fn new(machine: &Machine, symbols: &Symbols, sizes: SizesByObject) -> Self {
        let touches = Touches::new(machine, symbols);
        FieldUses { touches, sizes, uses: Vec::new(), recent: vec![Visit::default(); RECENT] }
    }

    /// Counts the visits that are under way.
    pub(super) fn end_visits(&mut self) {
        for visit in std::mem::take(&mut self.recent) {
            self.ended(visit);
        }
    }

    pub(super) fn touches(&self) -> &Touches {
        &self.touches
    }

    /// Key of an object.
    pub(super) fn key(&self, object: usize) -> &Key {
        &self.touches.tracker.objects.rows[object].key
    }

    fn reference(&mut self, reference: &Effective, stall_cycles: u32) {
        let Some(touched) = touched(&mut self.touches, reference) else { return };
        let (record, object) = (reference.record, touched.object.0 as usize);
        if object >= self.uses.len() {
            self.enter(object);
        }
        let Some(uses) = &mut self.uses[object] else { return };
        let (vaddr, bytes) = (record.vaddr(), uses.size.bytes);
        let into = (vaddr - touched.start) % bytes;
        let span = (into as u32, record.size());
        let count = uses.spans.entry((span, record.insn().0)).or_default();
        let is_read = matches!(record.kind(), Some(Kind::Load));
        count.add(&Count { reads: is_read.into(), writes: (!is_read).into(), stall_cycles: stall_cycles.into() });
        let used = granules(into, record.size().into(), granule_bytes(bytes));
        self.visit(Visit { element: vaddr - into, object: object as u32, used }, &touched);
    }

    /// A reference that was counted makes the core wait for more cycles.
    fn waited(&mut self, reference: &Effective, cycles: u32) {
        let Some(touched) = touched(&mut self.touches, reference) else { return };
        let Some(Some(uses)) = self.uses.get_mut(touched.object.0 as usize) else { return };
        let into = ((reference.record.vaddr() - touched.start) % uses.size.bytes) as u32;
        let span = ((into, reference.record.size()), reference.record.insn().0);
        if let Some(count) = uses.spans.get_mut(&span) {
            count.stall_cycles += u64::from(cycles);
        }
    }

    /// Makes room for the rows of objects up to this one.
    fn enter(&mut self, object: usize) {
        for at in self.uses.len()..=object {
            let size = self.sizes.0.get(self.key(at)).copied();
            let uses = size.map(|size| Uses {
                size,
                spans: FxHashMap::default(),
                visits: FxHashMap::default(),
                blocks: BTreeMap::new(),
            });
            self.uses.push(uses.map(Box::new));
        }
    }

    fn visit(&mut self, visit: Visit, touched: &Touched) {
        let slot = hashing::place(visit.element, RECENT.ilog2());
        let before = &mut self.recent[slot];
        if (before.element, before.object) == (visit.element, visit.object) {
            before.used |= visit.used;
            return;
        }
        let ended = std::mem::replace(before, visit);
        self.ended(ended);
        self.notes_element(visit, touched);
    }

    fn notes_element(&mut self, visit: Visit, touched: &Touched) {
        let pid = self.touches.pid(touched.cpu);
        let Some(Some(uses)) = self.uses.get_mut(visit.object as usize) else { return };
        let (first, last) = uses.blocks.entry((pid, touched.start)).or_insert((visit.element, visit.element));
        (*first, *last) = (visit.element.min(*first), visit.element.max(*last));
    }

    fn ended(&mut self, visit: Visit) {
        let Some(Some(uses)) = self.uses.get_mut(visit.object as usize).filter(|_| visit.element != 0) else { return };
        if uses.visits.len() < MOST_VISITS || uses.visits.contains_key(&visit.used) {
            *uses.visits.entry(visit.used).or_default() += 1;
        }
    }
}

impl Observer for FieldUses {
    fn control(&mut self, vcpu: u32, control: &Control<'_>) {
        self.touches.control(vcpu, control, |_| ());
    }

    fn hit(&mut self, reference: &Effective) {
        self.reference(reference, 0);
    }

    fn miss(&mut self, reference: &Effective, outcome: &Outcome) {
        self.reference(reference, outcome.stall_cycles);
    }

    fn waited_for(&mut self, reference: &Effective, _: &Outcome, cycles: u32) {
        self.waited(reference, cycles);
    }

    fn instructions(&mut self, _: u32, _: u64) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn granules_are_bits_of_a_visit() {
        assert_eq!([16, 512, 513, 4096].map(granule_bytes), [4, 4, 8, 32]);
        assert_eq!(granules(0, 8, 4), 0b11);
        assert_eq!(granules(6, 4, 4), 0b110);
        assert_eq!(granules(508, 4, 4), 1 << 127);
        assert_eq!(granules(0, 512, 4), u128::MAX);
        assert_eq!(granules(1024, 4, 4), 0, "beyond the element");
    }
}
