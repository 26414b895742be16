//! Bytes of an element: from the distances between the places that one instruction uses.

use super::super::objects::{Key, Object, ObjectId};
use super::super::spacing::greatest_common;
use super::super::touches::Touches;
use super::touched;
use crate::observer::{Effective, Observer, Outcome};
use nearmiss_record::machine::Machine;
use nearmiss_record::reference::Control;
use nearmiss_record::symbols::Symbols;
use rustc_hash::FxHashMap;

/// Bytes of an element, at least: two words.
const LEAST_BYTES: u64 = 16;
/// Bytes of an element, at most: a page.
const MOST_BYTES: u64 = 4096;
/// Share of an object's references by instructions that agree on the bytes.
const AGREE: f64 = 0.75;
/// Such a share where others may step through arrays inside the elements.
const SOME_AGREE: f64 = 0.3;

/// Bytes of the elements of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ElementSize {
    /// Bytes from one element to the next.
    pub bytes: u64,
    /// Each block of the allocator is one element.
    pub is_block: bool,
    /// Most references agree; else a declaration must have as many bytes.
    pub is_agreed: bool,
}

/// Element sizes by object.
#[derive(Clone, Debug, Default)]
pub struct SizesByObject(pub(super) FxHashMap<Key, ElementSize>);

impl SizesByObject {
    /// Whether no object has elements.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Places of one instruction in one object.
#[derive(Clone, Copy, Debug, Default)]
struct Steps {
    first: u64,
    /// Greatest common divisor of the distances from the first place.
    divisor: u64,
    references: u64,
}

/// Listens to a model; see the module's text.
pub struct ElementSizes {
    touches: Touches,
    steps: FxHashMap<(ObjectId, u32), Steps>,
}

impl ElementSizes {
    /// For a run on this machine.
    pub fn new(machine: &Machine, symbols: &Symbols) -> Self {
        ElementSizes { touches: Touches::new(machine, symbols), steps: FxHashMap::default() }
    }

    /// Returns the bytes of an element of each object that has elements.
    pub fn sizes(&self) -> SizesByObject {
        let mut by_object: FxHashMap<ObjectId, Vec<Steps>> = FxHashMap::default();
        self.steps.iter().for_each(|((object, _), steps)| by_object.entry(*object).or_default().push(*steps));
        let sizes = by_object.iter().filter_map(|(object, steps)| {
            let object = &self.touches.tracker.objects.rows[object.0 as usize];
            Some((object.key.clone(), size(object, steps)?))
        });
        SizesByObject(sizes.collect())
    }

    #[inline]
    fn reference(&mut self, reference: &Effective) {
        let Some(touched) = touched(&mut self.touches, reference) else { return };
        let offset = reference.record.vaddr() - touched.start;
        let steps = self.steps.entry((touched.object, reference.record.insn().0)).or_default();
        if steps.references == 0 {
            steps.first = offset;
        }
        steps.references += 1;
        let distance = offset.abs_diff(steps.first);
        if distance > 0 && (steps.divisor == 0 || !distance.is_multiple_of(steps.divisor)) {
            steps.divisor = greatest_common(distance, steps.divisor);
        }
    }
}

/// The largest size that most references agree on. A block is one element where each instruction uses one place of it,
/// or, with a declaration of its size, where some do: others may step through arrays inside.
fn size(object: &Object, steps: &[Steps]) -> Option<ElementSize> {
    let all: u64 = steps.iter().map(|steps| steps.references).sum();
    let agreeing = |bytes: u64| {
        let agreeing = steps.iter().filter(|steps| steps.divisor.is_multiple_of(bytes));
        agreeing.map(|steps| steps.references).sum::<u64>() as f64 / all.max(1) as f64
    };
    let is_block = object.count > 1 && !object.sizes_differ && (LEAST_BYTES..=MOST_BYTES).contains(&object.bytes);
    if is_block && matches!(object.key, Key::Heap { .. } | Key::Managed { .. }) {
        let (share, at_one_place) = (agreeing(object.bytes), agreeing(0));
        if share >= AGREE || at_one_place >= SOME_AGREE {
            return Some(ElementSize { bytes: object.bytes, is_block, is_agreed: share >= AGREE });
        }
    }
    let mut candidates: Vec<u64> = steps.iter().map(|steps| steps.divisor).collect();
    candidates.retain(|bytes| (LEAST_BYTES..=MOST_BYTES).contains(bytes));
    candidates.sort_unstable();
    candidates.dedup();
    // One element is no array.
    let fits = |bytes: &u64| object.sizes_differ || object.bytes >= 2 * bytes;
    candidates.retain(fits);
    let largest = |share: f64| candidates.iter().rev().copied().find(|bytes| agreeing(*bytes) >= share);
    let agreed = largest(AGREE);
    let bytes = agreed.or_else(|| largest(SOME_AGREE))?;
    Some(ElementSize { bytes, is_block: false, is_agreed: agreed.is_some() })
}

impl Observer for ElementSizes {
    fn control(&mut self, vcpu: u32, control: &Control<'_>) {
        self.touches.control(vcpu, control, |_| ());
    }

    fn hit(&mut self, reference: &Effective) {
        self.reference(reference);
    }

    fn miss(&mut self, reference: &Effective, _: &Outcome) {
        self.reference(reference);
    }

    fn instructions(&mut self, _: u32, _: u64) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::ledger::{References, Row};

    fn object(count: u64, bytes: u64) -> Object {
        Object {
            key: Key::Heap { context: 1 },
            references: References::default(),
            misses: Row::default(),
            count,
            bytes,
            sizes_differ: false,
            addresses: 0,
            requested_alignment: 0,
            insns: Vec::new(),
        }
    }

    fn steps(divisor: u64, references: u64) -> Steps {
        Steps { first: 0, divisor, references }
    }

    fn bytes(object: &Object, list: &[Steps]) -> Option<(u64, bool)> {
        size(object, list).map(|size| (size.bytes, size.is_block))
    }

    #[test]
    fn an_element_is_what_most_references_step_by() {
        let array = object(1, 1 << 20);
        assert_eq!(bytes(&array, &[steps(72, 100), steps(144, 50), steps(8, 40)]), Some((72, false)));
        let unsure = Some(ElementSize { bytes: 72, is_block: false, is_agreed: false });
        assert_eq!(size(&array, &[steps(72, 100), steps(8, 100)]), unsure, "as many step by words");
        assert_eq!(bytes(&array, &[steps(72, 20), steps(8, 100)]), None, "most step by words");
        assert_eq!(bytes(&array, &[steps(8, 100)]), None, "an array of words");
        assert_eq!(bytes(&object(1, 100), &[steps(72, 100)]), None, "there is one element");
    }

    #[test]
    fn a_block_of_which_each_instruction_uses_one_place_is_an_element() {
        assert_eq!(bytes(&object(1000, 48), &[steps(0, 100), steps(0, 3)]), Some((48, true)));
        assert_eq!(bytes(&object(1, 48), &[steps(0, 100)]), None, "there is one block");
        let with_array = Some(ElementSize { bytes: 200, is_block: true, is_agreed: false });
        assert_eq!(size(&object(1000, 200), &[steps(0, 100), steps(4, 100)]), with_array, "an array inside");
        assert_eq!(bytes(&object(1000, 4096), &[steps(64, 100), steps(0, 3)]), Some((64, false)), "arrays in blocks");
    }
}
