//! From the bytes that instructions use to fields.

use std::collections::BTreeMap;

/// A word of the processor: wider accesses copy several fields at once.
const WORD_BYTES: u32 = 8;

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

/// Returns the fields, ascending, half-open: bytes used by words that overlap are one field; what only wider accesses use
/// is cut into words.
pub(super) fn fields(spans: impl Iterator<Item = Span>, element_bytes: u32) -> Vec<(u32, u32)> {
    let (words, wide): (Vec<Span>, Vec<Span>) = spans.partition(|(_, bytes)| *bytes <= WORD_BYTES);
    let mut begins: BTreeMap<u32, u32> = BTreeMap::new();
    for (from, bytes) in words {
        let to = begins.entry(from).or_default();
        *to = (*to).max((from + bytes).min(element_bytes));
    }
    let mut fields: Vec<(u32, u32)> = Vec::new();
    for (from, to) in begins {
        match fields.last_mut() {
            Some(last) if from < last.1 => last.1 = last.1.max(to),
            _ => fields.push((from, to)),
        }
    }
    for (from, bytes) in wide {
        add_gaps(&mut fields, (from, (from + bytes).min(element_bytes)));
    }
    fields
}

/// Adds the words of a range that belong to no field.
fn add_gaps(fields: &mut Vec<(u32, u32)>, (mut from, to): (u32, u32)) {
    while from < to {
        let at = fields.partition_point(|field| field.1 <= from);
        let next = fields.get(at).map_or(to, |field| field.0.min(to));
        if next <= from {
            from = fields[at].1;
            continue;
        }
        let end = ((from / WORD_BYTES + 1) * WORD_BYTES).min(next);
        fields.insert(at, (from, end));
        from = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(spans: &[Span]) -> Vec<(u32, u32)> {
        fields(spans.iter().copied(), 64)
    }

    #[test]
    fn words_that_overlap_are_one_field() {
        assert_eq!(of(&[(0, 8), (8, 8), (16, 4), (20, 4)]), [(0, 8), (8, 16), (16, 20), (20, 24)]);
        assert_eq!(of(&[(16, 8), (20, 4), (16, 4)]), [(16, 24)]);
        assert_eq!(of(&[(60, 8)]), [(60, 64)], "it ends with its element");
    }

    #[test]
    fn what_a_copy_alone_uses_is_cut_into_words() {
        assert_eq!(of(&[(4, 4), (0, 32)]), [(0, 4), (4, 8), (8, 16), (16, 24), (24, 32)]);
        assert_eq!(of(&[(0, 16), (8, 16)]), [(0, 8), (8, 16), (16, 24)]);
    }
}
