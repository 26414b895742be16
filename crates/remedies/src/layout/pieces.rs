//! Pieces of an element that a declaration can move: the members of its structure, or else the fields that were used and
//! the bytes between them.

use nearmiss_analysis::{Member, Structure};
use nearmiss_machine::attribution::{UsedElements, UsedField};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Most bytes that the start of a piece is aligned to.
const MOST_ALIGNED: u64 = 8;
/// Elements of an array inside a structure that is taken apart, at most.
const MOST_TIMES: u64 = 64;

/// Bytes that stay together: of an array inside the structure, one member of all its elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// First byte.
    pub from: u64,
    /// Byte behind the last one, of the first element.
    pub to: u64,
    /// Elements; of what is no array of structures 1.
    pub times: u64,
    /// Bytes from one element to the next.
    pub stride: u64,
    /// Declared member, where that is known.
    pub member: Option<Member>,
    /// References to the piece.
    pub references: u64,
}

impl Piece {
    /// Size in bytes, of all elements.
    pub fn bytes(&self) -> u64 {
        (self.to - self.from) * self.times
    }

    /// Returns the bytes of each element, half-open.
    pub fn ranges(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let Piece { from, to, times, stride, .. } = *self;
        (0..times).map(move |number| (from + number * stride, to + number * stride))
    }

    /// Whether a field has bytes of the piece.
    pub fn touches(&self, field: &UsedField) -> bool {
        self.ranges().any(|(from, to)| from < field.to.into() && u64::from(field.from) < to)
    }

    fn holds(&self, field: &UsedField) -> bool {
        self.ranges().any(|(from, to)| from <= field.from.into() && u64::from(field.to) <= to)
    }

    fn begins_with(&self, field: &UsedField) -> bool {
        self.ranges().any(|(from, _)| from == u64::from(field.from))
    }

    /// Returns the alignment of the piece in bytes: the largest power of two, at most 8, that divides the start, the
    /// size and the stride.
    pub fn alignment(&self) -> u64 {
        let lowest = |value: u64| if value == 0 { MOST_ALIGNED } else { 1 << value.trailing_zeros().min(3) };
        lowest(self.from).min(lowest(self.to - self.from)).min(lowest(self.stride))
    }

    /// Name for people: of the member, or where it lies.
    pub fn name(&self) -> String {
        match &self.member {
            Some(member) if !member.name.is_empty() => format!("`{}`", member.name),
            _ if self.bytes() == 1 => format!("the byte at {}", self.from),
            _ => format!("bytes {} to {}", self.from, self.to - 1),
        }
    }
}

impl Default for Piece {
    fn default() -> Self {
        Piece { from: 0, to: 0, times: 1, stride: 0, member: None, references: 0 }
    }
}

/// An element as it was used.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Element {
    /// Size in bytes.
    pub bytes: u64,
    /// Name of the structure, where that is known.
    pub structure: Option<String>,
    /// Ascending, without gaps but for the padding of a known structure.
    pub pieces: Vec<Piece>,
    /// Sets of pieces that were used together, and how often; most frequent first.
    pub visits: Vec<(u128, u64)>,
    /// Bytes that a visit uses, on average.
    pub bytes_a_visit: f64,
}

impl Element {
    /// The element by the declaration that fits its use best, if `structures` of its size has one.
    pub fn new(used: &UsedElements, structures: &[Structure]) -> Self {
        let (structure, pieces) = match declared(used, structures) {
            Some((structure, pieces)) => (Some(structure.name.clone()), pieces),
            None => (None, between(&used.fields, used.bytes)),
        };
        let mut element =
            Element { bytes: used.bytes, structure, pieces, visits: Vec::new(), bytes_a_visit: bytes_a_visit(used) };
        for piece in &mut element.pieces {
            let inside = used.fields.iter().filter(|field| piece.touches(field));
            piece.references = inside.map(|field| field.reads + field.writes).sum();
        }
        element.visits = element.visits_of(used);
        element
    }

    /// Visits that use other fields of the same pieces are one.
    fn visits_of(&self, used: &UsedElements) -> Vec<(u128, u64)> {
        let mut visits: BTreeMap<u128, u64> = BTreeMap::new();
        for (set, count) in &used.visits {
            *visits.entry(self.pieces_of(*set, &used.fields)).or_default() += count;
        }
        let mut visits: Vec<(u128, u64)> = visits.into_iter().filter(|(set, _)| *set != 0).collect();
        visits.sort_by_key(|(_, count)| Reverse(*count));
        visits
    }

    fn pieces_of(&self, set: u128, fields: &[UsedField]) -> u128 {
        let used = || fields.iter().enumerate().filter(|(at, _)| set >> at & 1 != 0).map(|(_, field)| field);
        let bit = |(at, piece): (usize, &Piece)| {
            if used().any(|field| piece.touches(field)) { 1u128 << at } else { 0 }
        };
        self.pieces.iter().take(128).enumerate().map(bit).fold(0, |all, bit| all | bit)
    }

    /// Number of visits.
    pub fn all_visits(&self) -> u64 {
        self.visits.iter().map(|(_, count)| count).sum()
    }
}

/// Bytes of the fields that a visit uses, on average.
fn bytes_a_visit(used: &UsedElements) -> f64 {
    let bytes = |set: u128| -> u64 {
        let fields = used.fields.iter().enumerate().filter(|(at, _)| set >> at & 1 != 0);
        fields.map(|(_, field)| u64::from(field.to - field.from)).sum()
    };
    let all: u64 = used.visits.iter().map(|(_, count)| count).sum();
    let sum: f64 = used.visits.iter().map(|(set, count)| bytes(*set) as f64 * *count as f64).sum();
    sum / all.max(1) as f64
}

/// Pieces of a structure's members: of an array of structures those of its elements.
fn pieces_of(structure: &Structure, with_arrays: bool) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = structure.members.iter().flat_map(|member| pieces(member, with_arrays)).collect();
    pieces.sort_by_key(|piece| piece.from);
    pieces
}

fn pieces(member: &Member, with_arrays: bool) -> Vec<Piece> {
    let piece = |member: &Member| Piece {
        from: member.offset,
        to: member.offset + member.bytes,
        member: Some(member.clone()),
        ..Piece::default()
    };
    if !with_arrays || member.of_element.is_empty() || !(2..=MOST_TIMES).contains(&member.times) {
        return vec![piece(member)];
    }
    let of_element = |inner: &Member| Piece {
        times: member.times,
        stride: member.bytes / member.times,
        member: Some(Member { name: format!("{}[].{}", member.name, inner.name), ..inner.clone() }),
        ..piece(inner)
    };
    member.of_element.iter().map(of_element).collect()
}

/// The fields that were used, and the bytes between them.
fn between(fields: &[UsedField], bytes: u64) -> Vec<Piece> {
    let (mut pieces, mut behind) = (Vec::new(), 0);
    let piece = |from, to| Piece { from, to, ..Piece::default() };
    for field in fields {
        let (from, to) = (u64::from(field.from), u64::from(field.to));
        if behind < from {
            pieces.push(piece(behind, from));
        }
        pieces.push(piece(from, to));
        behind = to;
    }
    if behind < bytes {
        pieces.push(piece(behind, bytes));
    }
    pieces
}

/// Returns the structure with members that hold the used fields best, and its pieces: each field in one of them. None where
/// two fit alike. The elements of arrays inside come apart where the fields fit so.
fn declared<'s>(used: &UsedElements, structures: &'s [Structure]) -> Option<(&'s Structure, Vec<Piece>)> {
    let begins = |pieces: &[Piece]| {
        let is_begin = |field: &&UsedField| pieces.iter().any(|piece| piece.begins_with(field));
        used.fields.iter().filter(is_begin).count()
    };
    let fitting = |structure: &'s Structure| {
        let pieces = [true, false].map(|with_arrays| pieces_of(structure, with_arrays));
        pieces.into_iter().find(|pieces| fits(used, structure.bytes, pieces)).map(|pieces| (structure, pieces))
    };
    let fitting: Vec<(&Structure, Vec<Piece>)> = structures.iter().filter_map(fitting).collect();
    let most = fitting.iter().map(|(_, pieces)| begins(pieces)).max()?;
    let mut best = fitting.into_iter().filter(|(_, pieces)| begins(pieces) == most);
    let first = best.next()?;
    best.all(|(other, _)| other.members == first.0.members).then_some(first)
}

fn fits(used: &UsedElements, bytes: u64, pieces: &[Piece]) -> bool {
    let mut ranges: Vec<(u64, u64)> = pieces.iter().flat_map(Piece::ranges).collect();
    ranges.sort_unstable();
    let in_order = ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0);
    let sound = ranges.iter().all(|(from, to)| from < to && *to <= bytes);
    let inside = |field: &UsedField| pieces.iter().any(|piece| piece.holds(field));
    // Copies take members and padding alike.
    let is_copied = used.fields.iter().all(|field| field.is_copied);
    let mut deciding = used.fields.iter().filter(|field| is_copied || !field.is_copied);
    in_order && sound && pieces.len() <= 128 && deciding.all(inside)
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use nearmiss_record::model::ObjectKind;

    pub fn used(bytes: u64, fields: &[(u32, u32)], visits: &[(u128, u64)]) -> UsedElements {
        let field = |(from, to): &(u32, u32)| UsedField { from: *from, to: *to, reads: 10, ..UsedField::default() };
        UsedElements {
            kind: ObjectKind::Heap,
            name: "a.c:1 main".to_owned(),
            site: None,
            module: None,
            bytes,
            is_block: false,
            is_agreed: true,
            fields: fields.iter().map(field).collect(),
            visits: visits.to_vec(),
            elements: Vec::new(),
        }
    }

    pub fn structure(name: &str, bytes: u64, members: &[(u64, u64)]) -> Structure {
        let member = |(offset, bytes): &(u64, u64)| Member { offset: *offset, bytes: *bytes, ..Member::default() };
        Structure { name: name.to_owned(), bytes, members: members.iter().map(member).collect() }
    }

    #[test]
    fn without_a_declaration_pieces_are_fields_and_what_lies_between() {
        let element = Element::new(&used(64, &[(0, 8), (16, 20)], &[(0b10, 5), (0b01, 3)]), &[]);
        let pieces: Vec<_> = element.pieces.iter().map(|p| (p.from, p.to, p.alignment(), p.references)).collect();
        assert_eq!(pieces, [(0, 8, 8, 10), (8, 16, 8, 0), (16, 20, 4, 10), (20, 64, 4, 0)]);
        assert_eq!(element.visits, [(0b100, 5), (0b001, 3)]);
        assert_eq!(element.bytes_a_visit, (4.0 * 5.0 + 8.0 * 3.0) / 8.0);
    }

    #[test]
    fn a_declaration_fits_if_each_field_lies_in_one_member() {
        let used = used(64, &[(0, 8), (16, 20)], &[]);
        let [node, other] =
            [structure("node", 64, &[(0, 8), (8, 8), (16, 4), (24, 40)]), structure("other", 64, &[(0, 20)])];
        let crossing = structure("crossing", 64, &[(0, 4), (4, 60)]);
        let named = |list: &[Structure]| Element::new(&used, list).structure;
        assert_eq!(named(&[other.clone(), crossing.clone(), node.clone()]), Some("node".to_owned()));
        assert_eq!(named(&[crossing]), None);
        let twin = Structure {
            name: "twin".to_owned(),
            members: vec![node.members[0].clone(), node.members[2].clone()],
            ..node.clone()
        };
        assert_eq!(named(&[node, twin]), None, "two fit alike");
    }

    #[test]
    fn a_field_that_only_copies_use_decides_on_no_declaration() {
        // A word that is cleared over the padding behind the second member.
        let mut used = used(64, &[(0, 8), (8, 16)], &[(0b11, 5)]);
        let node = [structure("node", 64, &[(0, 8), (8, 4), (16, 48)])];
        assert_eq!(Element::new(&used, &node).structure, None);
        used.fields[1].is_copied = true;
        assert_eq!(Element::new(&used, &node).structure, Some("node".to_owned()));
        used.fields[0].is_copied = true;
        assert_eq!(Element::new(&used, &node).structure, None, "none is left that decides");
    }

    #[test]
    fn visits_of_the_same_pieces_are_one() {
        let fields = [(0, 8), (8, 12), (12, 16)];
        let visits = [(0b010, 5), (0b001, 4), (0b110, 3), (0b100, 2)];
        let node = structure("node", 64, &[(0, 8), (8, 56)]);
        assert_eq!(Element::new(&used(64, &fields, &visits), &[node]).visits, [(0b10, 10), (0b01, 4)]);
    }

    #[test]
    fn members_of_an_array_inside_are_pieces() {
        let member =
            |offset, bytes, name: &str| Member { offset, bytes, name: name.to_owned(), times: 1, ..Member::default() };
        let of_element = vec![member(16, 4, "metric"), member(20, 4, "peer"), member(24, 8, "sent")];
        let ports = Member { of_element, times: 2, ..member(16, 32, "ports") };
        let router =
            |ports| Structure { name: "router".to_owned(), bytes: 64, members: vec![member(0, 8, "id"), ports] };
        // The second element's metric and the first one's peer.
        let fields = [(0, 8), (20, 24), (32, 36)];
        let element = Element::new(&used(64, &fields, &[(0b100, 7), (0b110, 3)]), &[router(ports.clone())]);
        let names: Vec<String> = element.pieces.iter().map(Piece::name).collect();
        assert_eq!(names, ["`id`", "`ports[].metric`", "`ports[].peer`", "`ports[].sent`"]);
        assert_eq!(element.pieces[1].ranges().collect::<Vec<_>>(), [(16, 20), (32, 36)]);
        assert_eq!(element.pieces.iter().map(Piece::bytes).collect::<Vec<_>>(), [8, 8, 8, 16]);
        assert_eq!(element.visits, [(0b0010, 7), (0b0110, 3)]);
        // A field over two of them leaves the array whole.
        let over = Element::new(&used(64, &[(16, 24)], &[(0b1, 5)]), &[router(ports)]);
        assert_eq!(over.pieces.iter().map(Piece::name).collect::<Vec<_>>(), ["`id`", "`ports`"]);
    }
}
