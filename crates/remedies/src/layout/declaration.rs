//! A structure as its author would declare it.

use super::orders::FieldOrder;
use super::pieces::{Element, Piece};
use super::proposals::{Change, Proposal};
use nearmiss_record::words::{bytes, counted};

/// Returns the new declaration, line by line; without names, the places of bytes.
pub fn declaration(element: &Element, proposal: &Proposal) -> Vec<String> {
    let name = element.structure.as_deref().unwrap_or("element");
    let aligned = |number| if number == 0 { proposal.aligned } else { 1 };
    let parts = proposal.parts.iter().enumerate();
    parts.flat_map(|(number, part)| array(element, part, &title(name, proposal, number), aligned(number))).collect()
}

/// `struct node`, `struct node_cold`, `struct node_2`.
fn title(name: &str, proposal: &Proposal, number: usize) -> String {
    match (proposal.change, number) {
        (_, 0) => format!("struct {name}"),
        (Change::Split, _) => format!("struct {name}_cold"),
        _ => format!("struct {name}_{}", number + 1),
    }
}

fn array(element: &Element, part: &FieldOrder, title: &str, aligned: u64) -> Vec<String> {
    let aligned = if aligned > 1 { format!("_Alignas({aligned}) ") } else { String::new() };
    let members = part.places.iter().enumerate().map(|(number, &(at, from))| {
        let first = if number == 0 { aligned.as_str() } else { "" };
        format!("{first}{}", member(&element.pieces[at], from))
    });
    let begin = format!("{title} {{ /* {} */", bytes(part.bytes));
    [begin].into_iter().chain(members).chain(["};".to_owned()]).collect()
}

/// `long key; /* at 0, was at 248 */`.
fn member(piece: &Piece, from: u64) -> String {
    let was = if from == piece.from { format!("at {from}") } else { format!("at {from}, was at {}", piece.from) };
    let was = if piece.times > 1 { format!("{was} and every {} behind it", piece.stride) } else { was };
    match &piece.member {
        Some(member) => {
            let space = if member.type_name.ends_with('*') { "" } else { " " };
            let times = if piece.times > 1 { format!("[{}]", piece.times) } else { String::new() };
            let name = member.name.replace("[].", "_");
            format!("{}{space}{name}{times}{}; /* {was} */", member.type_name, member.lengths)
        }
        None => format!(
            "char at_{}[{}]; /* {was}: {} */",
            piece.from,
            piece.bytes(),
            counted(piece.references, "reference")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::pieces::tests::used;
    use super::super::proposals::{Ground, proposals};
    use super::*;
    use nearmiss_analysis::{Member, Structure};

    #[test]
    fn a_split_node_is_declared_twice() {
        let member = |offset, bytes, type_name: &str, name: &str, lengths: &str| Member {
            offset,
            bytes,
            name: name.to_owned(),
            type_name: type_name.to_owned(),
            lengths: lengths.to_owned(),
            ..Member::default()
        };
        let members = vec![
            member(0, 8, "long", "key", ""),
            member(8, 240, "char", "text", "[240]"),
            member(248, 8, "struct node *", "next", ""),
        ];
        let node = Structure { name: "node".to_owned(), bytes: 256, members };
        let element = Element::new(&used(256, &[(0, 8), (248, 256)], &[(0b11, 1000)]), &[node]);
        let found = proposals(&element, Ground { line: 64, begin: 0, is_block: false });
        let split = found.iter().find(|one| one.change == Change::Split).map(|one| declaration(&element, one));
        let expected = [
            "struct node { /* 16 B */",
            "long key; /* at 0 */",
            "struct node *next; /* at 8, was at 248 */",
            "};",
            "struct node_cold { /* 240 B */",
            "char text[240]; /* at 0, was at 8 */",
            "};",
        ];
        assert_eq!(split.unwrap_or_default(), expected);
    }

    #[test]
    fn an_aligned_hot_part_is_declared_so() {
        let element = Element::new(&used(72, &[(0, 8), (8, 56)], &[(0b11, 1000)]), &[]);
        let found = proposals(&element, Ground { line: 64, begin: 16, is_block: false });
        let split = found.iter().find(|one| one.change == Change::Split).map(|one| declaration(&element, one));
        let expected = [
            "struct element { /* 64 B */",
            "_Alignas(64) char at_0[8]; /* at 0: 10 references */",
            "char at_8[48]; /* at 8: 10 references */",
            "};",
            "struct element_cold { /* 16 B */",
            "char at_56[16]; /* at 0, was at 56: 0 references */",
            "};",
        ];
        assert_eq!(split.unwrap_or_default(), expected);
    }
}
