//! Joins the rows of two runs' tables by their names.

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
    /// Name and detail; but a name that each run has with one detail of its own is one row. Two builds of a program are
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
    before: impl IntoIterator<Item = Row>,
    after: impl IntoIterator<Item = Row>,
) -> ComparedTable {
    let mut joined = Joined::default();
    before.into_iter().for_each(|row| joined.add(row, 0, columns.len()));
    after.into_iter().for_each(|row| joined.add(row, 1, columns.len()));
    if by == By::NameWhereDetailsDiffer {
        joined.pair_leftovers();
    }
    let mut rows: Vec<ComparedRow> = joined.0.into_iter().map(|(key, sides)| row(key, &sides)).collect();
    rows.sort_by_key(|row| {
        let lead = row.figures.first().copied().unwrap_or_default();
        // Stable: rows of equal weight stay in the order of their names.
        (row.name == UNATTRIBUTED, Reverse(lead.difference.unsigned_abs()), Reverse(lead.before.max(lead.after)))
    });
    let total = (0..columns.len()).map(|c| sum(rows.iter().filter_map(|row| row.figures.get(c)))).collect();
    ComparedTable { name: name.to_owned(), title: title.to_owned(), columns, rows, total: Some(total) }
}

/// A table with rows that do not add up, in their own order: each a name with its figures of both runs.
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

/// Figures of both runs, by column; none of a run that lacks the row.
type Sides = [Option<Vec<u64>>; 2];

#[derive(Default)]
struct Joined(BTreeMap<Key, Sides>);

impl Joined {
    fn add(&mut self, row: Row, side: usize, columns: usize) {
        let sides = self.0.entry((row.name, row.detail)).or_default();
        let sums = sides[side].get_or_insert_with(|| vec![0; columns]);
        for (sum, figure) in sums.iter_mut().zip(row.figures) {
            *sum = sum.saturating_add(figure);
        }
    }

    fn pair_leftovers(&mut self) {
        let mut leftovers: BTreeMap<String, [Vec<Key>; 2]> = BTreeMap::new();
        for (key, sides) in &self.0 {
            let only = match sides {
                [Some(_), None] => 0,
                [None, Some(_)] => 1,
                _ => continue,
            };
            leftovers.entry(key.0.clone()).or_default()[only].push(key.clone());
        }
        for (name, [before, after]) in leftovers {
            let ([a], [b]) = (&before[..], &after[..]) else { continue };
            let mut take = |key, side: usize| self.0.remove(key).and_then(|mut sides| sides[side].take());
            let sides = [take(a, 0), take(b, 1)];
            self.0.insert((name, format!("{} → {}", a.1, b.1)), sides);
        }
    }
}

fn row((name, detail): Key, sides: &Sides) -> ComparedRow {
    let [before, after] = sides.each_ref().map(|side| side.as_deref().unwrap_or_default());
    let figure = |of: &[u64], column: usize| of.get(column).copied().unwrap_or(0);
    let figures =
        (0..before.len().max(after.len())).map(|c| Figures::new(figure(before, c), figure(after, c))).collect();
    ComparedRow { name, detail, figures }
}
