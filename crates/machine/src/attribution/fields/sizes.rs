//! Bytes of an element: from the distances between the places that one instruction uses.

use super::super::objects::{Key, Object, ObjectId};
use super::super::spacing::greatest_common;
use super::super::touches::Touches;
use super::touched;
use crate::observer::{Effective, Observer, Outcome};
use nearmiss_record::code::CodeBlock;
use nearmiss_record::machine::Machine;
use nearmiss_record::reference::{Control, MARK_PART};
use nearmiss_record::symbols::Symbols;
use nearmiss_record::units::InsnId;
use rustc_hash::FxHashMap;

/// Bytes of an element, at least: two words.
const LEAST_BYTES: u64 = 16;
/// Bytes of an element, at most: a page.
const MOST_BYTES: u64 = 4096;
/// Runs of equal steps through arrays inside the elements from which their begins count.
const LEAST_RUNS: u64 = 8;
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
    /// The place before, and the part of the run that it is of: a part begins within a run of steps.
    last: u64,
    part: u32,
    runs: Runs,
}

/// Runs of equal steps: of an instruction that goes through an array inside each element.
#[derive(Clone, Copy, Debug, Default)]
struct Runs {
    /// The step that most references make: the majority vote of Boyer and Moore.
    step: u64,
    votes: u64,
    first: u64,
    /// Greatest common divisor of the distances between begins of runs.
    divisor: u64,
    count: u64,
}

impl Runs {
    /// The instruction came to a place by this step.
    fn step(&mut self, place: u64, step: u64) {
        if step == self.step {
            self.votes += 1;
        } else if self.votes == 0 {
            *self = Runs { step, votes: 1, ..Runs::default() };
        } else {
            self.votes -= 1;
            self.begin(place);
        }
    }

    fn begin(&mut self, place: u64) {
        if self.count == 0 {
            self.first = place;
        }
        self.count += 1;
        self.divisor = greatest_common(place.abs_diff(self.first), self.divisor);
    }

    /// Distance that all begins are multiples of; 0: there is one begin. `None`: there are few runs.
    fn distance(&self) -> Option<u64> {
        (self.count >= LEAST_RUNS).then_some(self.divisor)
    }
}

/// Listens to a model; see the module's text.
pub struct ElementSizes {
    touches: Touches,
    steps: FxHashMap<(ObjectId, u32), Steps>,
    alike: Alike,
    part: u32,
}

/// Ids of one instruction. The recorder gives another id to an instruction in a block that it cut short, as before each
/// timer's interrupt: the steps through an array go on there.
#[derive(Debug, Default)]
struct Alike {
    by_place: FxHashMap<(u64, u64), u32>,
    /// The first id, by id.
    first: FxHashMap<u32, u32>,
}

impl Alike {
    fn add(&mut self, block: &CodeBlock<'_>) {
        for (offset, id) in block.named() {
            let place = (block.vaddr.wrapping_add(offset.into()), block.paddr >> 12);
            let first = *self.by_place.entry(place).or_insert(id.0);
            if first != id.0 {
                self.first.insert(id.0, first);
            }
        }
    }

    #[inline]
    fn first(&self, insn: InsnId) -> u32 {
        self.first.get(&insn.0).copied().unwrap_or(insn.0)
    }
}

impl ElementSizes {
    /// For a run on this machine.
    pub fn new(machine: &Machine, symbols: &Symbols) -> Self {
        ElementSizes {
            touches: Touches::new(machine, symbols),
            steps: FxHashMap::default(),
            alike: Alike::default(),
            part: 0,
        }
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
        let insn = self.alike.first(reference.record.insn());
        let steps = self.steps.entry((touched.object, insn)).or_default();
        if steps.references == 0 {
            steps.first = offset;
        } else if steps.part == self.part {
            steps.runs.step(offset, offset.wrapping_sub(steps.last));
        }
        (steps.last, steps.part) = (offset, self.part);
        steps.references += 1;
        let distance = offset.abs_diff(steps.first);
        if distance > 0 && (steps.divisor == 0 || !distance.is_multiple_of(steps.divisor)) {
            steps.divisor = greatest_common(distance, steps.divisor);
        }
    }
}

/// The largest size that most references agree on; or, with a declaration of its size, some do, or do but for steps through
/// an array inside. A block is one element where each instruction uses one place of it, or, with a declaration of its size,
/// where some do.
fn size(object: &Object, steps: &[Steps]) -> Option<ElementSize> {
    let all: u64 = steps.iter().map(|steps| steps.references).sum();
    let agreeing = |bytes: u64| {
        let agreeing = steps.iter().filter(|steps| steps.divisor.is_multiple_of(bytes));
        agreeing.map(|steps| steps.references).sum::<u64>() as f64 / all.max(1) as f64
    };
    let some = |bytes: u64| {
        let begins = |steps: &Steps| steps.runs.distance().is_some_and(|distance| is_multiple(distance, bytes));
        let agreeing = steps.iter().filter(|steps| steps.divisor.is_multiple_of(bytes) || begins(steps));
        agreeing.map(|steps| steps.references).sum::<u64>() as f64 / all.max(1) as f64
    };
    let is_block = object.count > 1 && !object.sizes_differ && (LEAST_BYTES..=MOST_BYTES).contains(&object.bytes);
    if is_block && matches!(object.key, Key::Heap { .. } | Key::Managed { .. }) {
        let (share, at_one_place) = (agreeing(object.bytes), some(0));
        if share >= AGREE || at_one_place >= SOME_AGREE {
            return Some(ElementSize { bytes: object.bytes, is_block, is_agreed: share >= AGREE });
        }
    }
    let mut candidates: Vec<u64> = steps.iter().flat_map(|steps| [steps.divisor, steps.runs.divisor]).collect();
    candidates.retain(|bytes| (LEAST_BYTES..=MOST_BYTES).contains(bytes));
    candidates.sort_unstable();
    candidates.dedup();
    // One element is no array.
    let fits = |bytes: &u64| object.sizes_differ || object.bytes >= 2 * bytes;
    candidates.retain(fits);
    let agreed = candidates.iter().rev().copied().find(|bytes| agreeing(*bytes) >= AGREE);
    let bytes = agreed.or_else(|| candidates.iter().rev().copied().find(|bytes| some(*bytes) >= SOME_AGREE))?;
    Some(ElementSize { bytes, is_block: false, is_agreed: agreed.is_some() })
}

/// Whether a distance between begins of runs is a multiple of an element's bytes; one begin is none of an array.
fn is_multiple(distance: u64, bytes: u64) -> bool {
    if bytes == 0 { distance == 0 } else { distance > 0 && distance.is_multiple_of(bytes) }
}

impl Observer for ElementSizes {
    fn control(&mut self, vcpu: u32, control: &Control<'_>) {
        self.part += u32::from(matches!(control, Control::Mark { number: MARK_PART, .. }));
        if let Control::Code(block) = control {
            self.alike.add(block);
        }
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
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::attribution::ledger::{References, Row};

    #[test]
    fn an_instruction_of_a_block_cut_short_is_the_same() {
        let mut alike = Alike::default();
        let mut add = |vaddr, named: &[(u16, InsnId)]| {
            let payload = CodeBlock::encode(0x5000, named, &[0x90; 16]);
            alike.add(&CodeBlock::decode(vaddr, &payload).unwrap());
        };
        add(0x1000, &[(0, InsnId(1)), (4, InsnId(2)), (9, InsnId(3))]);
        add(0x1004, &[(0, InsnId(7)), (5, InsnId(8))]);
        add(0x2004, &[(0, InsnId(9))]);
        assert_eq!([1, 2, 3, 7, 8, 9].map(|id| alike.first(InsnId(id))), [1, 2, 3, 2, 3, 9]);
    }

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
        Steps { divisor, references, ..Steps::default() }
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
    fn steps_through_an_array_inside_count_by_their_begins() {
        // Six ports of 64 bytes in each router of 424, routers in any order.
        let mut through = Steps { first: 80, divisor: 8, references: 600, ..Steps::default() };
        let mut last = 80;
        for router in 0..100u64 {
            for port in 0..6 {
                let place = router * 37 % 100 * 424 + 80 + port * 64;
                through.runs.step(place, place.wrapping_sub(last));
                last = place;
            }
        }
        assert_eq!((through.runs.step, through.runs.distance()), (64, Some(424)));
        let array = object(1, 1 << 20);
        let found = Some(ElementSize { bytes: 424, is_block: false, is_agreed: false });
        assert_eq!(size(&array, &[through, steps(8, 200)]), found, "of these bytes there must be a declaration");
        assert_eq!(size(&array, &[through, steps(8, 2000)]), None);
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
