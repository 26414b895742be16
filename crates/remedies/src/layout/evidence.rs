//! Evidence of how the fields of a structure are used.

use super::pieces::{Element, Piece};
use nearmiss_machine::attribution::{UsedElements, UsedField};
use nearmiss_record::figures::{Cell, Table};
use nearmiss_record::finding::{Evidence, EvidenceLine};
use nearmiss_record::words::{bytes, grouped, listed, percent};

/// Fields and visits that a finding lists in its lines.
const MOST_NAMED: usize = 3;
/// Rows of a table, at most.
const MOST_ROWS: usize = 128;

/// Returns the evidence of the uses of an element's fields; `most_gain` is the share of the command's cycles that wait.
pub fn evidence(
    used: &UsedElements,
    element: &Element,
    (line_bytes, lines_a_visit): (u64, f64),
    most_gain: f64,
) -> Evidence {
    let visit = format!(
        "A visit of an element uses {:.0} of its {} on {lines_a_visit:.1} lines, on average.",
        element.bytes_a_visit,
        bytes(element.bytes)
    );
    let lines = [EvidenceLine::new("Visits", visit)].into_iter().chain(visits(element)).chain(fields(used, element));
    let lines = lines.chain(lines_of(element, line_bytes));
    Evidence { lines: lines.collect(), tables: vec![fields_table(used, element), visits_table(element)], most_gain }
}

fn visits(element: &Element) -> impl Iterator<Item = EvidenceLine> {
    let all = element.all_visits().max(1) as f64;
    element.visits.iter().take(MOST_NAMED).map(move |(set, count)| {
        EvidenceLine::new("", format!("{} of the visits use {}.", percent(*count as f64 / all), names(element, *set)))
    })
}

/// `` `key` and `next` ``.
pub fn names(element: &Element, set: u128) -> String {
    let of: Vec<String> = pieces(element, set).map(Piece::name).collect();
    let beyond = of.len().saturating_sub(2 * MOST_NAMED);
    let mut named: Vec<String> = of.into_iter().take(2 * MOST_NAMED).collect();
    if beyond > 0 {
        named.push(format!("{beyond} more"));
    }
    listed(&named, "and")
}

fn pieces(element: &Element, set: u128) -> impl Iterator<Item = &Piece> {
    element.pieces.iter().enumerate().filter(move |(at, _)| set >> at & 1 != 0).map(|(_, piece)| piece)
}

fn fields<'a>(used: &'a UsedElements, element: &'a Element) -> impl Iterator<Item = EvidenceLine> + 'a {
    let mut most: Vec<&UsedField> = used.fields.iter().collect();
    most.sort_by_key(|field| std::cmp::Reverse(field.reads + field.writes));
    let name = |field: &UsedField| {
        piece_of(element, field).map_or(format!("bytes {} to {}", field.from, field.to - 1), Piece::name)
    };
    // Bytes of one field that are used apart have a row each in the table, and one line here.
    let mut named: Vec<(String, &UsedField)> = Vec::new();
    for field in most {
        let name = name(field);
        if named.len() < MOST_NAMED && named.iter().all(|(known, _)| *known != name) {
            named.push((name, field));
        }
    }
    named.into_iter().enumerate().map(|(number, (name, field))| {
        let (reads, writes) = (grouped(field.reads), grouped(field.writes));
        let at = field.used_at.first().map_or(String::new(), |site| format!(", most at {site}"));
        EvidenceLine::new(
            if number == 0 { "Fields" } else { "" },
            format!("{name}: {reads} reads and {writes} writes{at}."),
        )
    })
}

/// The lines of an element that begins with one, each with the share of the references that fall into it.
fn lines_of(element: &Element, line_bytes: u64) -> Option<EvidenceLine> {
    let of_each = |number| Some((number, of_line(element, line_bytes, number)?));
    let lines: Vec<(u64, String)> = (0..element.bytes.div_ceil(line_bytes)).filter_map(of_each).collect();
    let text = |alike: &[(u64, String)]| match alike {
        [(first, text), .., (last, _)] => format!("{first} to {last}, each: {text}"),
        [(number, text)] => format!("{number}: {text}"),
        [] => String::new(),
    };
    let lines: Vec<String> = lines.chunk_by(|(_, a), (_, b)| a == b).map(text).collect();
    (element.bytes > line_bytes).then(|| EvidenceLine::new("Lines", format!("{}.", lines.join("; "))))
}

/// Share of the references that fields on one line have, with those that begin there.
fn of_line(element: &Element, line_bytes: u64, number: u64) -> Option<String> {
    let all: u64 = element.pieces.iter().map(|piece| piece.references).sum();
    let here = |piece: &Piece| piece.ranges().filter(|(from, _)| from / line_bytes == number).count();
    let inside: Vec<&Piece> = element.pieces.iter().filter(|piece| piece.references > 0 && here(piece) > 0).collect();
    // A member of an array's elements is referenced on each line that one of them begins on.
    let part = |piece: &&Piece| piece.references as f64 * here(piece) as f64 / piece.ranges().count().max(1) as f64;
    let share = inside.iter().map(part).sum::<f64>() / all.max(1) as f64;
    let names: Vec<String> = inside.iter().take(2 * MOST_NAMED).map(|piece| piece.name()).collect();
    (!names.is_empty()).then(|| format!("{} of the references, to {}", percent(share), listed(&names, "and")))
}

fn piece_of<'e>(element: &'e Element, field: &UsedField) -> Option<&'e Piece> {
    element.pieces.iter().find(|piece| piece.touches(field))
}

fn table(title: &str, columns: &[&str], rows: Vec<Vec<Cell>>) -> Table {
    Table { title: title.to_owned(), columns: columns.iter().map(|column| (*column).to_owned()).collect(), rows }
}

fn fields_table(used: &UsedElements, element: &Element) -> Table {
    let row = |field: &UsedField| {
        let member = piece_of(element, field).and_then(|piece| piece.member.as_ref());
        vec![
            Cell::Bytes(field.from.into()),
            Cell::Bytes((field.to - field.from).into()),
            Cell::text(member.map_or("", |member| member.name.as_str())),
            Cell::text(member.map_or("", |member| member.type_name.as_str())),
            Cell::Count(field.reads),
            Cell::Count(field.writes),
            Cell::Cycles(field.stall_cycles),
            Cell::text(field.used_at.join("; ")),
        ]
    };
    let columns = ["offset", "bytes", "member", "type", "reads", "writes", "cycles", "used at"];
    table("fields", &columns, used.fields.iter().take(MOST_ROWS).map(row).collect())
}

fn visits_table(element: &Element) -> Table {
    let row = |(set, count): &(u128, u64)| {
        let of: Vec<String> = pieces(element, *set).map(Piece::name).collect();
        vec![Cell::text(of.join(", ")), Cell::Count(*count)]
    };
    table("visits", &["fields used together", "visits"], element.visits.iter().take(MOST_ROWS).map(row).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn piece(from: u64, to: u64, times: u64, references: u64) -> Piece {
        Piece { from, to, times, stride: 64, member: None, references }
    }

    #[test]
    fn references_to_an_arrays_members_are_shared_by_its_lines() {
        let pieces = vec![piece(0, 4, 1, 10), piece(80, 84, 3, 90)];
        let element = Element { bytes: 256, structure: None, pieces, visits: Vec::new(), bytes_a_visit: 16.0 };
        let text = lines_of(&element, 64).unwrap().text;
        let name = element.pieces[1].name();
        let expected = format!(
            "0: 10% of the references, to {}; 1 to 3, each: 30% of the references, to {name}.",
            element.pieces[0].name()
        );
        assert_eq!(text, expected);
        assert!(lines_of(&Element { bytes: 64, ..element }, 64).is_none(), "an element on one line");
    }
}
