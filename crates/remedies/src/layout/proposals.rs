//! Changes of a structure that are worth a rehearsal.

use super::orders::{FieldOrder, Judge, placed};
use super::pieces::Element;
use nearmiss_record::policy::{PlacedField, Rearranged};

/// Share of the visits that a hot part serves alone, at least.
const HOT: f64 = 0.9;
/// Share of an element's bytes that its hot part has, at most.
const MOST_HOT: f64 = 0.75;
/// Share of lines that an order saves, at least.
const LEAST_SAVED: f64 = 0.02;
/// Header of a block of glibc's malloc, and the size that blocks are multiples of.
const BLOCK_HEADER: u64 = 8;
const BLOCK_MULTIPLE: u64 = 16;

/// Kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// Another order of the fields.
    Order,
    /// Elements of whole lines.
    Align,
    /// Hot and cold fields in two arrays.
    Split,
    /// Fields that are used apart in arrays of their own.
    Columns,
}

impl Change {
    /// All kinds of change.
    pub const ALL: [Change; 4] = [Change::Order, Change::Align, Change::Split, Change::Columns];

    /// Name, as typed.
    pub fn name(self) -> &'static str {
        match self {
            Change::Order => "order",
            Change::Align => "align",
            Change::Split => "split",
            Change::Columns => "columns",
        }
    }
}

/// A change, with the places of all pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// Kind of the change.
    pub change: Change,
    /// New arrays; the first has what is used most.
    pub parts: Vec<FieldOrder>,
    /// Bytes that each element of the first array is aligned to; 1: to no more than its fields are.
    pub aligned: u64,
}

impl Proposal {
    /// Bytes of an element in all arrays.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).sum()
    }

    /// Whether all fields follow one another as before.
    pub fn keeps_order(&self, element: &Element, ground: Ground) -> bool {
        let mut fields = self.rearranged(element, ground).fields;
        fields.sort_unstable_by_key(|field| (field.part, field.at));
        fields.is_sorted_by_key(|field| field.from)
    }

    /// The change as a policy has it, without the places of the elements.
    pub fn rearranged(&self, element: &Element, ground: Ground) -> Rearranged {
        let is_aligned = self.aligned > 1;
        let stride = if is_aligned { |bytes| bytes } else { ground.stride() };
        // The elements of an array come to lie one behind another.
        let fields_of = |part: usize, &(at, place): &(usize, u64)| {
            let ranges = element.pieces[at].ranges().enumerate();
            ranges.map(move |(number, (from, to))| PlacedField {
                from,
                to,
                part: part as u32,
                at: place + number as u64 * (to - from),
            })
        };
        let fields = self.parts.iter().enumerate();
        Rearranged {
            elements: Vec::new(),
            bytes: element.bytes,
            begin: if is_aligned { 0 } else { ground.begin },
            parts: self.parts.iter().map(|part| stride(part.bytes)).collect(),
            fields: fields
                .flat_map(|(part, order)| order.places.iter().flat_map(move |place| fields_of(part, place)))
                .collect(),
        }
    }
}

/// Bytes from one block of glibc's malloc to the next.
pub fn block_bytes(bytes: u64) -> u64 {
    (bytes + BLOCK_HEADER).next_multiple_of(BLOCK_MULTIPLE).max(2 * BLOCK_MULTIPLE)
}

/// Where elements lie.
#[derive(Clone, Copy, Debug)]
pub struct Ground {
    /// Bytes of a line.
    pub line: u64,
    /// Bytes behind the begin of a line at which the first element begins.
    pub begin: u64,
    /// Each element is a block of the allocator.
    pub is_block: bool,
}

impl Ground {
    /// Bytes from one element to the next.
    fn stride(self) -> fn(u64) -> u64 {
        if self.is_block { block_bytes } else { |bytes| bytes }
    }

    fn judge(self, element: &Element, least_bytes: u64) -> Judge<'_> {
        Judge { visits: &element.visits, line: self.line, least_bytes, begin: self.begin, stride: self.stride() }
    }
}

/// Returns the changes that could help, one of a kind.
pub fn proposals(element: &Element, ground: Ground) -> Vec<Proposal> {
    let arrays = || columns(element).filter(|_| !ground.is_block);
    let all = [order(element, ground), align(element, ground), split(element, ground), arrays()];
    all.into_iter().flatten().collect()
}

/// Lines that a visit touches, on average.
pub fn lines_a_visit(element: &Element, ground: Ground) -> f64 {
    let judge = ground.judge(element, 0);
    judge.lines(&element.pieces, &as_it_was(element)) / judge.judged().max(1) as f64
}

fn as_it_was(element: &Element) -> FieldOrder {
    let places = element.pieces.iter().enumerate().map(|(at, piece)| (at, piece.from)).collect();
    FieldOrder { places, bytes: element.bytes, is_as_it_was: true }
}

fn order(element: &Element, ground: Ground) -> Option<Proposal> {
    let judge = ground.judge(element, 0);
    let before = judge.lines(&element.pieces, &as_it_was(element));
    let (best, lines) = judge.best(&element.pieces);
    (lines < before * (1.0 - LEAST_SAVED)).then(|| Proposal { change: Change::Order, parts: vec![best], aligned: 1 })
}

/// Elements of whole lines, where they straddle some.
fn align(element: &Element, ground: Ground) -> Option<Proposal> {
    let whole = packed(element).bytes.next_multiple_of(ground.line);
    if element.bytes < ground.line || whole == element.bytes && ground.begin == 0 && !ground.is_block {
        return None;
    }
    let before = ground.judge(element, 0).lines(&element.pieces, &as_it_was(element));
    let aligned = Ground { begin: 0, is_block: false, ..ground };
    let (mut best, lines) = aligned.judge(element, whole).best(&element.pieces);
    best.bytes = best.bytes.next_multiple_of(ground.line);
    (lines < before * (1.0 - LEAST_SAVED)).then(|| Proposal {
        change: Change::Align,
        parts: vec![best],
        aligned: ground.line,
    })
}

/// All pieces, in as few bytes as they take.
fn packed(element: &Element) -> FieldOrder {
    let mut all: Vec<usize> = (0..element.pieces.len()).collect();
    sort_by_alignment(element, &mut all);
    placed(&element.pieces, &all, 0)
}

/// Larger alignments first, so that no bytes are lost between pieces.
fn sort_by_alignment(element: &Element, pieces: &mut [usize]) {
    pieces.sort_by_key(|at| std::cmp::Reverse(element.pieces[*at].alignment()));
}

/// The pieces that most visits use alone, and the others behind them.
fn split(element: &Element, ground: Ground) -> Option<Proposal> {
    let (mut first, rest) = hot_and_cold(element);
    if first.is_empty() || rest.is_empty() {
        return None;
    }
    sort_by_alignment(element, &mut first);
    let (line, stride) = (ground.line, ground.stride());
    let mut hot = placed(&element.pieces, &first, 0);
    let is_small = hot.bytes as f64 <= MOST_HOT * element.bytes as f64;
    // A hot part that would straddle lines is no smaller than a power of two.
    if hot.bytes < line && !line.is_multiple_of(hot.bytes) && hot.bytes.next_power_of_two() * 4 <= hot.bytes * 5 {
        hot.bytes = hot.bytes.next_power_of_two();
    }
    let aligned = alignment(hot.bytes, ground);
    if stride(hot.bytes) >= stride(element.bytes) || !is_small && aligned == 1 {
        return None;
    }
    Some(Proposal { change: Change::Split, parts: vec![hot, placed(&element.pieces, &rest, 0)], aligned })
}

/// The pieces that most visits use alone, and the others.
fn hot_and_cold(element: &Element) -> (Vec<usize>, Vec<usize>) {
    let (mut hot, mut served, all) = (0u128, 0, element.all_visits());
    for (set, count) in &element.visits {
        if served as f64 >= HOT * all as f64 {
            break;
        }
        hot |= set;
        served += count;
    }
    (0..element.pieces.len()).partition(|at| hot >> at & 1 != 0)
}

/// Returns the bytes that elements of this size are aligned to, so that each lies on as few lines as it can; 1: they are
/// not aligned, or lie so already.
fn alignment(bytes: u64, ground: Ground) -> u64 {
    let boundary = bytes.min(ground.line);
    let fits = boundary > 0 && ground.line.is_multiple_of(boundary) && bytes.is_multiple_of(boundary);
    if fits && !ground.is_block && !ground.begin.is_multiple_of(boundary) { boundary } else { 1 }
}

/// One array for each group of pieces that are used together.
fn columns(element: &Element) -> Option<Proposal> {
    let mut groups: Vec<(u128, Vec<usize>)> = Vec::new();
    for at in 0..element.pieces.len() {
        // The visits that use a piece are those of its group.
        let uses = element.visits.iter().enumerate().take(128).filter(|(_, (set, _))| set >> at & 1 != 0);
        let users = uses.fold(0u128, |all, (visit, _)| all | 1 << visit);
        match groups.iter_mut().find(|(known, _)| *known == users) {
            Some((_, group)) => group.push(at),
            None => groups.push((users, vec![at])),
        }
    }
    let used = groups.iter().filter(|(users, _)| *users != 0).count();
    if used < 2 {
        return None;
    }
    groups.sort_by_key(|(users, _)| *users == 0);
    let parts = groups.iter().map(|(_, group)| placed(&element.pieces, group, 0)).collect();
    Some(Proposal { change: Change::Columns, parts, aligned: 1 })
}

#[cfg(test)]
mod tests {
    use super::super::pieces::tests::{structure, used};
    use super::*;

    const GROUND: Ground = Ground { line: 64, begin: 0, is_block: false };

    fn of(bytes: u64, fields: &[(u32, u32)], visits: &[(u128, u64)]) -> (Element, Vec<Proposal>) {
        let element = Element::new(&used(bytes, fields, visits), &[]);
        let found = proposals(&element, GROUND);
        (element, found)
    }

    fn names(found: &[Proposal]) -> Vec<&'static str> {
        found.iter().map(|proposal| proposal.change.name()).collect()
    }

    #[test]
    fn two_words_of_a_large_node_are_put_together_or_split_off() {
        let (element, found) = of(256, &[(0, 8), (248, 256)], &[(0b11, 1000)]);
        assert_eq!(names(&found), ["order", "split"]);
        assert_eq!(found[1].parts.iter().map(|part| part.bytes).collect::<Vec<_>>(), [16, 240]);
        let policy = found[1].rearranged(&element, GROUND);
        assert_eq!(policy.fields[1], PlacedField { from: 248, to: 256, part: 0, at: 8 });
        assert_eq!(
            found[1].rearranged(&element, Ground { is_block: true, ..GROUND }).parts,
            [32, 256],
            "as malloc's blocks"
        );
    }

    #[test]
    fn an_element_of_which_all_is_used_stays_as_it_is() {
        let (_, found) = of(16, &[(0, 8), (8, 16)], &[(0b11, 1000)]);
        assert!(found.is_empty(), "{found:?}");
        let fields: Vec<(u32, u32)> = (0..8).map(|at| (at * 8, at * 8 + 8)).collect();
        assert!(of(64, &fields, &[(0xff, 1000)]).1.is_empty());
    }

    #[test]
    fn elements_that_straddle_lines_are_aligned() {
        let fields: Vec<(u32, u32)> = (0..9).map(|at| (at * 8, at * 8 + 8)).collect();
        let (element, found) = of(72, &fields, &[(0b11111111, 1000)]);
        assert!(names(&found).contains(&"align"), "{found:?}");
        let align = found.iter().find(|one| one.change == Change::Align);
        assert_eq!(align.map(|one| (one.bytes(), one.keeps_order(&element, GROUND))), Some((128, true)));
    }

    #[test]
    fn elements_that_fit_into_a_line_without_their_padding_take_no_two() {
        // Two words of 4 bytes with padding behind each: 72 bytes, of which 64 are used.
        let members: Vec<(u64, u64)> =
            [(0, 4)].into_iter().chain((1..8).map(|at| (at * 8, 8))).chain([(64, 4)]).collect();
        let fields: Vec<(u32, u32)> =
            members.iter().map(|(from, bytes)| (*from as u32, (from + bytes) as u32)).collect();
        let element = Element::new(&used(72, &fields, &[(0x1ff, 1000)]), &[structure("quote", 72, &members)]);
        let ground = Ground { begin: 16, ..GROUND };
        let found = proposals(&element, ground);
        let align = found.iter().find(|one| one.change == Change::Align);
        assert_eq!(
            align.map(|one| (one.bytes(), one.aligned, one.keeps_order(&element, ground))),
            Some((64, 64, false))
        );
    }

    #[test]
    fn a_hot_part_that_a_line_is_a_multiple_of_is_aligned() {
        // 56 bytes are used, of 72: 64 at the begins of lines.
        let trie = |begin, is_block| {
            let element = Element::new(&used(72, &[(0, 8), (8, 56)], &[(0b11, 1000)]), &[]);
            let ground = Ground { begin, is_block, ..GROUND };
            let split = proposals(&element, ground).into_iter().find(|one| one.change == Change::Split);
            split.map(|one| (one.parts[0].bytes, one.aligned, one.rearranged(&element, ground).begin))
        };
        assert_eq!(trie(16, false), Some((64, 64, 0)));
        assert_eq!(trie(16, true), None, "blocks have a header");
        let (_, found) = of(256, &[(0, 8), (8, 16), (248, 256)], &[(0b111, 1000)]);
        assert_eq!(found[1].parts[0].bytes, 24);
        assert_eq!(
            [(32, 16), (32, 32), (48, 16), (128, 16)]
                .map(|(bytes, begin)| alignment(bytes, Ground { begin, ..GROUND })),
            [32, 1, 1, 64]
        );
    }

    #[test]
    fn fields_that_are_scanned_apart_have_arrays_of_their_own() {
        let (_, found) = of(32, &[(0, 8), (8, 16), (16, 24), (24, 32)], &[(0b1, 500), (0b10, 500), (0b1100, 500)]);
        let columns = found.iter().find(|one| one.change == Change::Columns);
        assert_eq!(columns.map(|one| one.parts.len()), Some(3));
    }
}
