//! Pieces of an element that a declaration can move: the members of its structure, or else the fields that were used and
//! the bytes between them.

use nearmiss_analysis::{Member, Structure};
use nearmiss_machine::attribution::{UsedElements, UsedField};

/// Most bytes that the start of a piece is aligned to.
const MOST_ALIGNED: u64 = 8;

/// Bytes that stay together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// First byte.
    pub from: u64,
    /// Byte behind the last one.
    pub to: u64,
    /// Declared member, where that is known.
    pub member: Option<Member>,
    /// References to the piece.
    pub references: u64,
}

impl Piece {
    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.to - self.from
    }

    /// Returns the alignment of the piece in bytes: the largest power of two, at most 8, that divides the start and the
    /// size.
    pub fn alignment(&self) -> u64 {
        let lowest = |value: u64| if value == 0 { MOST_ALIGNED } else { 1 << value.trailing_zeros().min(3) };
        lowest(self.from).min(lowest(self.bytes()))
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
        let structure = declared(used, structures);
        let pieces = match structure {
            Some(structure) => structure.members.iter().map(member).collect(),
            None => between(&used.fields, used.bytes),
        };
        let mut element = Element {
            bytes: used.bytes,
            structure: structure.map(|structure| structure.name.clone()),
            pieces,
            visits: Vec::new(),
            bytes_a_visit: bytes_a_visit(used),
        };
        for piece in &mut element.pieces {
            let inside =
                used.fields.iter().filter(|field| piece.from < field.to.into() && u64::from(field.from) < piece.to);
            piece.references = inside.map(|field| field.reads + field.writes).sum();
        }
        element.visits =
            used.visits.iter().map(|(set, count)| (element.pieces_of(*set, &used.fields), *count)).collect();
        element
    }

    fn pieces_of(&self, set: u128, fields: &[UsedField]) -> u128 {
        let used = || fields.iter().enumerate().filter(|(at, _)| set >> at & 1 != 0).map(|(_, field)| field);
        let bit = |(at, piece): (usize, &Piece)| {
            let touches = used().any(|field| piece.from < field.to.into() && u64::from(field.from) < piece.to);
            if touches { 1u128 << at } else { 0 }
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

fn member(member: &Member) -> Piece {
    Piece { from: member.offset, to: member.offset + member.bytes, member: Some(member.clone()), references: 0 }
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

/// Returns the structure with members that hold the used fields best: each in one member. None where two fit alike.
fn declared<'s>(used: &UsedElements, structures: &'s [Structure]) -> Option<&'s Structure> {
    let begins = |structure: &Structure| {
        let is_begin = |field: &&UsedField| structure.members.iter().any(|m| m.offset == u64::from(field.from));
        used.fields.iter().filter(is_begin).count()
    };
    let fitting: Vec<&Structure> = structures.iter().filter(|structure| fits(used, structure)).collect();
    let most = fitting.iter().map(|structure| begins(structure)).max()?;
    let mut best = fitting.into_iter().filter(|structure| begins(structure) == most);
    let first = best.next()?;
    best.all(|other| other.members == first.members).then_some(first)
}

fn fits(used: &UsedElements, structure: &Structure) -> bool {
    let in_order = structure.members.windows(2).all(|pair| pair[0].offset + pair[0].bytes <= pair[1].offset);
    let sound = structure.members.iter().all(|m| m.bytes > 0 && m.offset + m.bytes <= structure.bytes);
    let inside = |field: &UsedField| {
        let (from, to) = (u64::from(field.from), u64::from(field.to));
        structure.members.iter().any(|m| m.offset <= from && to <= m.offset + m.bytes)
    };
    in_order && sound && structure.members.len() <= 128 && used.fields.iter().all(inside)
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

    fn structure(name: &str, members: &[(u64, u64)]) -> Structure {
        let member = |(offset, bytes): &(u64, u64)| Member { offset: *offset, bytes: *bytes, ..Member::default() };
        Structure { name: name.to_owned(), bytes: 64, members: members.iter().map(member).collect() }
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
        let [node, other] = [structure("node", &[(0, 8), (8, 8), (16, 4), (24, 40)]), structure("other", &[(0, 20)])];
        let crossing = structure("crossing", &[(0, 4), (4, 60)]);
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
}
