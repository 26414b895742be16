//! Rehearsals as text: a table a subject, a row a parameter.

use crate::number::{bytes, fixed_percent, grouped};
use nearmiss_record::rehearsal::{Rehearsal, RehearsalRow, Rehearsals};

/// All tables.
pub fn render(rehearsals: &Rehearsals) -> String {
    let mut out = String::new();
    if rehearsals.tables.is_empty() {
        out.push_str("nothing to rehearse: no objects of this run crowd on few sets\n");
    }
    for (number, table) in rehearsals.tables.iter().enumerate() {
        if number > 0 {
            out.push('\n');
        }
        one(&mut out, table, &rehearsals.machine);
    }
    out
}

fn one(out: &mut String, table: &Rehearsal, machine: &str) {
    out.push_str(&format!("{}: {}\n", table.remedy, table.subject));
    out.push_str(&format!(
        "predicted on {machine}: medians over {} page placements, overlap {}; {}\n\n",
        table.placements.len(),
        table.overlap,
        table.exactness
    ));
    let mut header = vec!["colors".to_owned()];
    header.extend(table.levels.iter().map(|level| format!("{level} misses")));
    header.extend(["bus, objects", "bus, others", "cycles", "least", "most", "gain", "memory"].map(str::to_owned));
    let first = table.rows.first().map_or(1, |row| row.cycles).max(1);
    let mut rows = vec![header];
    rows.extend(table.rows.iter().map(|row| cells(row, first)));
    let columns = rows[0].len();
    let widths: Vec<usize> = (0..columns).map(|c| rows.iter().map(|r| r[c].len()).max().unwrap_or(0)).collect();
    for row in rows {
        let line: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}")).collect();
        out.push_str(line.join("  ").trim_end());
        out.push('\n');
    }
}

fn cells(row: &RehearsalRow, first: u64) -> Vec<String> {
    let mut cells = vec![grouped(row.parameter)];
    cells.extend(row.misses.iter().map(|misses| grouped(*misses)));
    cells.extend([row.transactions_on_objects, row.transactions_elsewhere, row.cycles].map(grouped));
    cells.extend([row.cycles_low, row.cycles_high].map(grouped));
    cells.push(fixed_percent(1.0 - row.cycles as f64 / first as f64, 1));
    cells.push(bytes(row.memory_bytes));
    cells
}
