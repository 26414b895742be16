//! Joins the rows of the runs' tables by their names.

use super::sides::figures;
use nearmiss_record::comparison::{ComparedColumn, ComparedRow, ComparedTable, Figures, UNATTRIBUTED, Unit};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A row of one run: its name, its detail, a figure a column.
pub struct Row {
    pub name: String,
    pub detail: String,
    pub figures: Vec<u64>,
}

/// Key by which two rows are the same.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Name and detail.
    NameAndDetail,
    /// Name and detail; but a name that each side has with one detail of its own is one row. Two builds of a program are
    /// two modules of the same functions.
    NameWhereDetailsDiffer,
}

/// Columns by name and unit.
pub fn columns<const N: usize>(columns: [(&str, Unit); N]) -> Vec<ComparedColumn> {
    columns.map(|(name, unit)| ComparedColumn { name: name.to_owned(), unit }).to_vec()
}

/// A table with rows that are parts of a whole: joined, the largest difference first, with their sums.
pub fn table(
    (name, title): (&str, &str),
    columns: Vec<ComparedColumn>,
    by: By,
    sides: [Vec<Vec<Row>>; 2],
) -> ComparedTable {
    let mut joined = Joined::new(columns.len(), [sides[0].len(), sides[1].len()]);
    for (side, runs) in sides.into_iter().enumerate() {
        for (run, rows) in runs.into_iter().enumerate() {
            rows.into_iter().for_each(|row| joined.add(row, side, run));
        }
    }
    if by == By::NameWhereDetailsDiffer {
        joined.pair_leftovers();
    }
    let total = joined.total();
    let mut rows = joined.rows();
    rows.sort_by_key(|row| {
        let lead = row.figures.first().copied().unwrap_or_default();
        // Stable: rows of equal weight stay in the order of their names.
        (row.name == UNATTRIBUTED, Reverse(lead.difference.unsigned_abs()), Reverse(lead.before.max(lead.after)))
    });
    ComparedTable { name: name.to_owned(), title: title.to_owned(), columns, rows, total: Some(total) }
}

/// A table with rows that do not add up, in their own order: each a name with its figures of both sides.
pub fn list(
    (name, title): (&str, &str),
    columns: Vec<ComparedColumn>,
    rows: impl IntoIterator<Item = (String, Vec<Figures>)>,
) -> ComparedTable {
    let row = |(name, figures)| ComparedRow { name, detail: String::new(), figures };
    let rows = rows.into_iter().map(row).collect();
    ComparedTable { name: name.to_owned(), title: title.to_owned(), columns, rows, total: None }
}

/// Sum of figures.
pub fn sum<'a>(figures: impl IntoIterator<Item = &'a Figures>) -> Figures {
    figures.into_iter().fold(Figures::default(), |sum, f| sum.plus(*f))
}

type Key = (String, String);

/// Figures of a side by run and column.
type Runs = Vec<Vec<u64>>;

/// Figures of both sides; none of a side that lacks the row.
type BothRuns = [Option<Runs>; 2];

struct Joined {
    rows: BTreeMap<Key, BothRuns>,
    columns: usize,
    /// Runs of each side.
    runs: [usize; 2],
}

impl Joined {
    fn new(columns: usize, runs: [usize; 2]) -> Self {
        Joined { rows: BTreeMap::new(), columns, runs }
    }

    fn add(&mut self, row: Row, side: usize, run: usize) {
        let sides = self.rows.entry((row.name, row.detail)).or_default();
        let sums = sides[side].get_or_insert_with(|| vec![vec![0; self.columns]; self.runs[side]]);
        for (sum, figure) in sums[run].iter_mut().zip(row.figures) {
            *sum = sum.saturating_add(figure);
        }
    }

    /// A column's figures of the runs of both sides, summed over these rows.
    fn column<'a>(&self, rows: impl Iterator<Item = &'a BothRuns> + Clone, column: usize) -> Figures {
        let of_run = |side: usize, run: usize| {
            let figures = rows.clone().filter_map(|row| row[side].as_ref()?.get(run)?.get(column));
            figures.fold(0, |sum: u64, figure| sum.saturating_add(*figure))
        };
        figures(&[0, 1].map(|side| (0..self.runs[side]).map(|run| of_run(side, run)).collect()))
    }

    fn total(&self) -> Vec<Figures> {
        (0..self.columns).map(|column| self.column(self.rows.values(), column)).collect()
    }

    fn rows(&self) -> Vec<ComparedRow> {
        let row = |((name, detail), sides): (&Key, &BothRuns)| {
            let figures = (0..self.columns).map(|column| self.column(std::iter::once(sides), column)).collect();
            ComparedRow { name: name.clone(), detail: detail.clone(), figures }
        };
        self.rows.iter().map(row).collect()
    }

    fn pair_leftovers(&mut self) {
        let mut leftovers: BTreeMap<String, [Vec<Key>; 2]> = BTreeMap::new();
        for (key, sides) in &self.rows {
            let only = match sides {
                [Some(_), None] => 0,
                [None, Some(_)] => 1,
                _ => continue,
            };
            leftovers.entry(key.0.clone()).or_default()[only].push(key.clone());
        }
        for (name, [before, after]) in leftovers {
            let ([a], [b]) = (&before[..], &after[..]) else { continue };
            let mut take = |key, side: usize| self.rows.remove(key).and_then(|mut sides| sides[side].take());
            let sides = [take(a, 0), take(b, 1)];
            self.rows.insert((name, format!("{} → {}", a.1, b.1)), sides);
        }
    }
}
