//! Rows of any type, for the tests of the logs.

use nearmiss_record::logs::{Kind, Row, Stored};

/// A row of the given cells, each made to fit where its field cannot have it; `None` where the fields contradict one
/// another. Numbers and texts are used in turn, as often as the row needs.
pub fn row<R: Row>(numbers: &[i64], texts: &[String]) -> Option<R> {
    let mut cells: Vec<(i64, String)> = R::COLUMNS
        .iter()
        .enumerate()
        .map(|(i, _)| (numbers[i % numbers.len()], texts[i % texts.len()].clone()))
        .collect();
    let mut weaker = vec![0; cells.len()];
    loop {
        let mut at = 0;
        let row = R::load(&mut || {
            let (number, text) = &cells[at];
            at += 1;
            Ok(match R::COLUMNS[at - 1].kind {
                Kind::Number => Stored::Number(*number),
                Kind::Text => Stored::Text(text.as_str().into()),
            })
        });
        match row {
            Ok(row) => return row.sound().is_ok().then_some(row),
            Err(_) => weaken(&mut cells[at - 1], &mut weaker[at - 1]),
        }
    }
}

fn weaken((number, text): &mut (i64, String), step: &mut u32) {
    *number = match *step {
        0 => *number & i64::MAX,
        1 => *number & i64::from(u32::MAX),
        _ => *number & 1,
    };
    *text = format!("{number:#x}");
    *step += 1;
}
