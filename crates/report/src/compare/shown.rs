//! The rows of a table that are shown, and one for all others, so that every column is whole; figures in words.

use super::join::sum;
use super::sides::letters;
use crate::number::{bytes, grouped, scaled};
use crate::observe::time;
use nearmiss_record::comparison::{
    ComparedRow, ComparedRun, ComparedTable, Figures, RunComparison, UNATTRIBUTED, Unit,
};

/// The runs of both sides with their letters.
pub fn named(comparison: &RunComparison) -> Vec<(String, &ComparedRun)> {
    let sides = [&comparison.before, &comparison.after];
    letters(sides.map(Vec::len)).concat().into_iter().zip(sides.into_iter().flatten()).collect()
}

/// Rows shown of a table.
pub struct Shown {
    /// The first rows.
    pub rows: Vec<ComparedRow>,
    /// One row for the others, and what could not be attributed: below the rest, however that is sorted.
    pub below: Vec<ComparedRow>,
    /// The sums.
    pub total: Option<Vec<Figures>>,
}

/// The first `top` rows that are anything in either run, the others as one, the unattributed row and the sums.
pub fn shown(table: &ComparedTable, top: usize) -> Shown {
    let is_something = |row: &&ComparedRow| row.figures.iter().any(|f| f.before > 0 || f.after > 0);
    let (mut below, mut rows): (Vec<ComparedRow>, Vec<ComparedRow>) =
        table.rows.iter().filter(is_something).cloned().partition(|row| row.name == UNATTRIBUTED);
    // A row for one other row would save nothing, and rows that do not add up have no sum.
    if table.total.is_some() && rows.len() > top + 1 {
        let others = rows.split_off(top);
        let figures =
            (0..table.columns.len()).map(|c| sum(others.iter().filter_map(|row| row.figures.get(c)))).collect();
        let name = format!("others ({})", grouped(others.len() as u64));
        below.insert(0, ComparedRow { name, detail: String::new(), figures });
    }
    Shown { rows, below, total: table.total.clone() }
}

/// A figure in its unit.
pub fn amount(figure: u64, unit: Unit) -> String {
    match unit {
        Unit::Count => scaled(figure),
        Unit::Nanoseconds => time(figure),
        Unit::Bytes => bytes(figure),
    }
}

/// A difference in its unit, with its sign.
pub fn signed(difference: i64, unit: Unit) -> String {
    let sign = match difference {
        0 => "",
        1.. => "+",
        _ => "-",
    };
    format!("{sign}{}", amount(difference.unsigned_abs(), unit))
}

/// The difference as a share of A: `-27%`; `new`, `gone` where one run has nothing.
pub fn change(figures: Figures) -> String {
    match (figures.before, figures.after) {
        (before, after) if before == after => String::new(),
        (0, _) => "new".to_owned(),
        (_, 0) => "gone".to_owned(),
        (before, after) => {
            let percent = (after as f64 / before as f64 - 1.0) * 100.0;
            match percent {
                1000.0.. => format!("×{:.0}", after as f64 / before as f64),
                p if p.abs() < 0.05 => format!("{}<0.1%", if p < 0.0 { "-" } else { "+" }),
                p if p.abs() < 9.95 => format!("{p:+.1}%"),
                p => format!("{p:+.0}%"),
            }
        }
    }
}

/// Less is better of every figure; none is named where the noise is not known.
pub fn direction(figures: Figures) -> &'static str {
    match (figures.difference, figures.noise) {
        (0, _) | (_, None) => "",
        (difference, Some(noise)) if difference.unsigned_abs() <= noise => "noise",
        (1.., _) => "worse",
        _ => "better",
    }
}
