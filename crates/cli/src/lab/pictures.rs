//! A lab's tables as pictures.

use nearmiss_lab::{MetricTable, Row, Show};
use nearmiss_report::plot::figure::{Marks, Panel, Series, picture};

/// A panel distinguishes so many series, and has room for the names of so many rows.
const MOST_SERIES: usize = 3;
const MOST_ROWS: usize = 12;

/// The medians as bars, a row a place and a column a series; none of a table of words.
pub fn of(show: &Show, metric: &MetricTable) -> Option<String> {
    let rows: Vec<&Row> =
        metric.rows.iter().filter(|row| row.entries.iter().flatten().any(|e| e.summary.is_some())).collect();
    let columns = if show.columns.is_empty() { vec!["all"] } else { show.columns.iter().map(String::as_str).collect() };
    let numbered: Vec<(usize, &str)> = columns.into_iter().enumerate().collect();
    let panels: Vec<Panel> = rows
        .chunks(MOST_ROWS)
        .flat_map(|rows| numbered.chunks(MOST_SERIES).map(|columns| panel(show, metric, rows, columns)))
        .collect();
    let note = "Measured: medians. Where a bar is missing, there is no figure.";
    (!panels.is_empty()).then(|| picture(&format!("{}: {}", show.name, metric.metric), note, &panels))
}

fn median(row: &Row, column: usize) -> f64 {
    let entry = row.entries.get(column).and_then(Option::as_ref);
    entry.and_then(|entry| entry.summary.as_ref()).map_or(0.0, |summary| summary.median)
}

/// The power of a thousand in which the largest value has one to three digits before the point.
fn power(metric: &MetricTable) -> i32 {
    let medians = metric.rows.iter().flat_map(|row| (0..row.entries.len()).map(|column| median(row, column).abs()));
    let largest = medians.fold(0.0, f64::max);
    if largest > 0.0 && largest.is_finite() { (largest.log10() / 3.0).floor() as i32 * 3 } else { 0 }
}

fn panel(show: &Show, metric: &MetricTable, rows: &[&Row], columns: &[(usize, &str)]) -> Panel {
    let power = power(metric);
    let value = |row: &&Row, column: usize| median(row, column) / 10f64.powi(power);
    let unit = if metric.unit.is_empty() { &metric.metric } else { &metric.unit };
    let series =
        |(index, name): &(usize, &str)| Series::new(*name, rows.iter().map(|row| value(row, *index)).collect());
    Panel {
        title: metric.metric.clone(),
        x_title: show.row_axes.join(", "),
        y_title: if power == 0 { unit.clone() } else { format!("{unit}, in 10^{power}") },
        places: rows.iter().map(|row| row.levels.join("\n")).collect(),
        marks: Marks::Bars,
        series: columns.iter().map(series).collect(),
    }
}
