//! A paper's record for a terminal.

use crate::record::{GridRow, PaperRecord, Row, Shape, Table, Theirs, Unit};
use nearmiss_record::words::grouped;
use std::fmt::Write as _;

/// Width of text.
const PAGE_COLUMNS: usize = 100;

/// Returns the text of a figure in the tables.
pub fn figure(value: f64, unit: Unit) -> String {
    // No "-0.0".
    let rounded = (value * 10.0).round() / 10.0 + 0.0;
    match unit {
        Unit::Times => format!("{value:.2}×"),
        _ if value.is_nan() => "–".to_owned(),
        Unit::Millis => format!("{value:.1} ms"),
        Unit::PerSecond => format!("{value:.0}/s"),
        Unit::Count if value >= 1000.0 => grouped(value.round() as u64),
        Unit::Count => format!("{rounded:.1}"),
        Unit::Correlation => format!("{value:.2}"),
        Unit::Percent => format!("{rounded:.1}%"),
        Unit::ChangePercent => format!("{rounded:+.1}%"),
    }
}

/// The whole record.
pub fn render(record: &PaperRecord) -> String {
    let mut out = format!("{}\n", record.title);
    let measured_too = record.tables.iter().any(|table| table.known == Some("measured"));
    out += match record.known {
        "modelled" if measured_too => {
            "The paper's figures are measured (there); ours are as each table states: modelled are replicas on the machine\nmodel, measured are programs here.\n"
        }
        "modelled" => "The paper's figures are measured (there); ours are modelled: replicas on the machine model.\n",
        _ => "The paper's figures are measured (there); ours are measured here.\n",
    };
    for t in &record.tables {
        table(&mut out, t, record.known);
    }
    out += match record.known {
        _ if record.parameters.is_empty() => "",
        "modelled" => "\nParameters of the model\n",
        _ => "\nParameters\n",
    };
    for p in &record.parameters {
        paragraph(&mut out, 2, 4, &format!("{}: {}", p.name, p.value));
        paragraph(&mut out, 6, 6, &p.how);
    }
    if let Some(here) = &record.here {
        out += "\nThe same on this machine today, measured (or: --here)\n";
        let _ = writeln!(out, "  {} && {}\n      {}", here.build, here.command(), here.shows);
    }
    out
}

fn table(out: &mut String, table: &Table, known: &str) {
    let known = table.known.unwrap_or(known);
    out.push('\n');
    paragraph(out, 0, 4, &format!("({}) {} — {}", table.name, table.title, table.source));
    if !table.rows.is_empty() {
        let head = ["", "", "paper", known, "deviation"].map(str::to_owned).to_vec();
        columns(out, &std::iter::once(head).chain(table.rows.iter().map(cells)).collect::<Vec<_>>());
    }
    if let Some(grid) = &table.grid {
        let head = ["", ""].map(str::to_owned).into_iter().chain(grid.columns.iter().cloned()).collect();
        columns(
            out,
            &std::iter::once(head).chain(grid.rows.iter().map(|r| grid_cells(r, grid.unit))).collect::<Vec<_>>(),
        );
        let _ = writeln!(out, "  {known}; {}", grid.mark);
    }
    for shape in &table.shapes {
        paragraph(out, 2, 4, &sentence(shape));
    }
    for note in &table.notes {
        paragraph(out, 2, 4, note);
    }
}

/// Lines no longer than a page, the first and the others indented.
fn paragraph(out: &mut String, first: usize, others: usize, text: &str) {
    let mut line = " ".repeat(first);
    let mut empty = true;
    for word in text.split(' ') {
        if !empty && line.chars().count() + 1 + word.chars().count() > PAGE_COLUMNS {
            let _ = writeln!(out, "{line}");
            line = " ".repeat(others);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line += word;
        empty = false;
    }
    let _ = writeln!(out, "{line}");
}

/// Aligns cells: the first two to the left.
fn columns(out: &mut String, rows: &[Vec<String>]) {
    let mut widths = vec![0; rows.iter().map(Vec::len).max().unwrap_or(0)];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    for row in rows {
        let mut line = String::new();
        for (i, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let gap = " ".repeat(width - cell.chars().count());
            line += "  ";
            line += &if i < 2 { format!("{cell}{gap}") } else { format!("{gap}{cell}") };
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

fn grid_cells(row: &GridRow, unit: Unit) -> Vec<String> {
    let cell =
        |(i, value): (usize, &f64)| format!("{}{}", if row.from == Some(i) { "| " } else { "" }, figure(*value, unit));
    [row.of.clone(), row.what.clone()].into_iter().chain(row.cells.iter().enumerate().map(cell)).collect()
}

fn cells(row: &Row) -> Vec<String> {
    let paper = match &row.paper {
        Theirs::Figure(value) => figure(*value, row.unit),
        Theirs::Words(words) => words.clone(),
        Theirs::None => "–".to_owned(),
    };
    let deviation = match row.deviation_points {
        Some(points) if row.fitted => format!("{:+.1} fitted", points + 0.0),
        Some(points) => format!("{:+.1}", points + 0.0),
        None => String::new(),
    };
    vec![row.of.clone(), row.what.clone(), paper, figure(row.ours, row.unit), deviation]
}

fn sentence(shape: &Shape) -> String {
    let verdict = if shape.holds { "holds" } else { "DOES NOT HOLD" };
    format!("{verdict}: {} ({})", shape.claim, shape.ours)
}
