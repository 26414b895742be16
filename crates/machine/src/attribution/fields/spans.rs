//! From the bytes that instructions use to fields.

use std::collections::{BTreeMap, BTreeSet};

/// A word of the processor: wider accesses copy several fields at once.
const WORD_BYTES: u32 = 8;
/// Places one behind another that a loop over an element copies or clears, at least.
const LEAST_COPIED: usize = 4;

/// First byte in the element, and bytes.
pub(super) type Span = (u32, u32);

/// Counts of the references to some bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub reads: u64,
    pub writes: u64,
    pub stall_cycles: u64,
}

impl Count {
    pub fn references(&self) -> u64 {
        self.reads + self.writes
    }

    pub fn add(&mut self, other: &Count) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.stall_cycles += other.stall_cycles;
    }
}

/// Bytes that are used as one, half-open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub from: u32,
    pub to: u32,
    /// Only instructions that copy or clear use it.
    pub is_copied: bool,
}

/// Returns the fields, ascending, of the bytes that each instruction uses. A word over narrower ones that fill it copies
/// them; other words that overlap are one field. Instructions that copy or clear decide on nothing: what they alone use is
/// cut into words.
pub(super) fn fields(used: &BTreeSet<(u32, Span)>, element_bytes: u32) -> Vec<Range> {
    let copying = copying(used);
    let mut spans: Vec<(bool, u32, u32)> = used
        .iter()
        .map(|(insn, (from, bytes))| (*bytes > WORD_BYTES || copying.contains(insn), *bytes, *from))
        .collect();
    // The narrowest first, so that the result is the same in any order.
    spans.sort_unstable();
    spans.dedup();
    let mut fields = Vec::new();
    for (is_copied, bytes, from) in spans {
        let range = Range { from, to: (from + bytes).min(element_bytes), is_copied };
        if is_copied { add_gaps(&mut fields, range) } else { add(&mut fields, range) }
    }
    fields
}

/// Instructions that use many places one behind another, as a loop that copies or clears does: one at `rep stos` has the
/// words of a structure, of all its fields.
fn copying(used: &BTreeSet<(u32, Span)>) -> BTreeSet<u32> {
    let mut followed: BTreeMap<u32, usize> = BTreeMap::new();
    for (insn, (from, bytes)) in used {
        *followed.entry(*insn).or_default() += usize::from(used.contains(&(*insn, (from + bytes, *bytes))));
    }
    followed.into_iter().filter(|(_, followed)| *followed + 1 >= LEAST_COPIED).map(|(insn, _)| insn).collect()
}

/// Adds a word as a field, joined with the fields that it overlaps; adds nothing if fields fill it.
fn add(fields: &mut Vec<Range>, range: Range) {
    let first = fields.partition_point(|field| field.to <= range.from);
    let behind = fields.partition_point(|field| field.from < range.to);
    let filled = fields[first..behind].iter().try_fold(range.from, |to, field| (field.from <= to).then_some(field.to));
    if filled.is_some_and(|to| to >= range.to) {
        return;
    }
    let overlapping = fields.drain(first..behind);
    let joined =
        overlapping.fold(range, |all, field| Range { from: all.from.min(field.from), to: all.to.max(field.to), ..all });
    fields.insert(first, joined);
}

/// Adds the words of a range that belong to no field.
fn add_gaps(fields: &mut Vec<Range>, range: Range) {
    let mut from = range.from;
    while from < range.to {
        let at = fields.partition_point(|field| field.to <= from);
        let next = fields.get(at).map_or(range.to, |field| field.from.min(range.to));
        if next <= from {
            from = fields[at].to;
            continue;
        }
        let end = ((from / WORD_BYTES + 1) * WORD_BYTES).min(next);
        fields.insert(at, Range { from, to: end, ..range });
        from = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fields of spans with an instruction each, and whether only copies use them.
    fn of(spans: &[Span]) -> Vec<(u32, u32, bool)> {
        let used = spans.iter().enumerate().map(|(insn, span)| (insn as u32, *span)).collect();
        ranges(&used)
    }

    fn ranges(used: &BTreeSet<(u32, Span)>) -> Vec<(u32, u32, bool)> {
        fields(used, 64).into_iter().map(|field| (field.from, field.to, field.is_copied)).collect()
    }

    #[test]
    fn words_that_overlap_are_one_field() {
        let four = [(0, 8, false), (8, 16, false), (16, 20, false), (20, 24, false)];
        assert_eq!(of(&[(0, 8), (8, 8), (16, 4), (20, 4)]), four);
        assert_eq!(of(&[(16, 8), (20, 4)]), [(16, 24, false)]);
        assert_eq!(of(&[(16, 4), (18, 4), (21, 2)]), [(16, 23, false)]);
        assert_eq!(of(&[(60, 8)]), [(60, 64, false)], "it ends with its element");
    }

    #[test]
    fn a_word_over_fields_that_fill_it_copies_them() {
        assert_eq!(of(&[(16, 8), (20, 4), (16, 4)]), [(16, 20, false), (20, 24, false)]);
        assert_eq!(of(&[(16, 8), (16, 4), (20, 2)]), [(16, 24, false)], "two bytes of it are of no field");
    }

    #[test]
    fn what_a_copy_alone_uses_is_cut_into_words() {
        let words = [(0, 4, true), (4, 8, false), (8, 16, true), (16, 24, true), (24, 32, true)];
        assert_eq!(of(&[(4, 4), (0, 32)]), words);
        assert_eq!(of(&[(0, 16), (8, 16)]), [(0, 8, true), (8, 16, true), (16, 24, true)]);
    }

    #[test]
    fn an_instruction_that_clears_word_by_word_decides_on_no_field() {
        // `rep stos` over four words; others use 4 bytes at 8, at 12 and at 20.
        let clears = |words: u32| (0..words).map(|word| (1, (word * 8, 8)));
        let others = [(2, (8, 4)), (3, (12, 4)), (4, (20, 4))];
        let cleared = ranges(&clears(4).chain(others).collect());
        let [id, area, speed] = [(8, 12, false), (12, 16, false), (20, 24, false)];
        assert_eq!(cleared, [(0, 8, true), id, area, (16, 20, true), speed, (24, 32, true)]);
        let three = ranges(&clears(3).chain(others).collect());
        assert_eq!(three, [(0, 8, false), id, area, (16, 24, false)], "three words are no loop");
    }
}
