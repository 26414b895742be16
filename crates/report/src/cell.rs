//! Tables of typed cells as text.

use crate::number::{bytes, duration, fixed_percent, grouped};
use nearmiss_record::figures::{Cell, Table};

/// Head and rows, figures to the right, two blanks between columns.
pub fn table(table: &Table) -> String {
    let mut rows = vec![table.columns.clone()];
    rows.extend(table.rows.iter().map(|row| row.iter().map(cell).collect()));
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|c| c.chars().count()).max();
    let widths: Vec<usize> = (0..table.columns.len()).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}")).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

/// Returns the text of one cell.
pub fn cell(cell: &Cell) -> String {
    match cell {
        Cell::Count(number) | Cell::Cycles(number) => grouped(*number),
        Cell::Number(number) => format!("{number:.1}"),
        Cell::Share(share) => fixed_percent(*share, 1),
        Cell::Bytes(count) => bytes(*count),
        Cell::Nanos(nanos) => duration(*nanos),
        Cell::Text(text) => text.clone(),
        Cell::Unknown => "–".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_read_as_such() {
        let columns = ["what", "count", "mean", "share", "memory", "time"].map(str::to_owned).to_vec();
        let row = |name: &str, count| {
            vec![
                Cell::text(name),
                Cell::Count(count),
                Cell::Number(1.25),
                Cell::Share(-0.051),
                Cell::Bytes(3456),
                Cell::Nanos(1_500_000),
            ]
        };
        let mut rows = vec![row("first", 1), row("µ", 1_234_567)];
        rows[0][1] = Cell::Unknown;
        let text = table(&Table { title: String::new(), columns, rows });
        assert_eq!(
            text,
            " what      count  mean  share   memory    time\n\
             first          –   1.2  -5.1%  3.4 KiB  1.5 ms\n    \
             µ  1,234,567   1.2  -5.1%  3.4 KiB  1.5 ms\n"
        );
    }
}
