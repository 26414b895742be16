//! A lab's tables as text.

use super::pictures;
use crate::table::{lines, table, width};
use nearmiss_lab::{Entry, Lab, MetricTable, Row, Show, Totals};
use nearmiss_record::words::counted;
use nearmiss_report::matrix::{Section, page};
use std::fmt::Write;

/// The head, a table a figure, and what the marks mean.
pub fn text(lab: &Lab, show: &Show) -> String {
    let mut text = format!("{}\n", head(lab, show));
    for metric in with_figures(show) {
        let _ = write!(text, "\n{}\n{}\n", title(show, metric), one(show, metric));
    }
    let notes = notes(show);
    if !notes.is_empty() {
        let _ = write!(text, "\n{}\n", notes.join("\n"));
    }
    text
}

/// The tables of a lab as one page, with pictures.
pub fn html(lab: &Lab, show: &Show) -> String {
    let section = |metric: &MetricTable| Section {
        title: title(show, metric),
        header: header(show).into_iter().map(str::to_owned).collect(),
        names: show.row_axes.len(),
        rows: metric.rows.iter().map(cells).collect(),
        picture: pictures::of(show, metric),
    };
    let sections: Vec<Section> = with_figures(show).map(section).collect();
    page(&show.name, &head(lab, show), &sections, &notes(show))
}

/// Tables of what no cell has are left out.
fn with_figures(show: &Show) -> impl Iterator<Item = &MetricTable> {
    show.metrics.iter().filter(|metric| !metric.rows.is_empty())
}

fn head(lab: &Lab, show: &Show) -> String {
    let cells = counted(show.cells as u64, "cell");
    let path = lab.path().display();
    let mut head = format!("Lab {} ({path}), seed {}: {cells}, measured", show.name, show.seed);
    if show.not_done > 0 {
        let _ = write!(head, ", {} of them failed or without all figures", show.not_done);
    }
    let Totals { cells, ended, .. } = show.totals;
    if ended < cells {
        let rest = match lab.is_busy() {
            true => "nearmiss works on the rest".to_owned(),
            false => format!("`nearmiss lab resume {path}` runs the rest"),
        };
        let _ = write!(head, "\nUnfinished: {ended} of {cells} cells have ended; {rest}");
    }
    head
}

fn title(show: &Show, metric: &MetricTable) -> String {
    let unit = if metric.unit.is_empty() { String::new() } else { format!(" in {}", metric.unit) };
    let by = show.column_axis.as_ref().map(|axis| format!(" by {axis}")).unwrap_or_default();
    format!("Measured {}{unit}{by}: median, least–largest", metric.metric)
}

fn header(show: &Show) -> Vec<&str> {
    let values = if show.columns.is_empty() { vec!["all"] } else { show.columns.iter().map(String::as_str).collect() };
    show.row_axes.iter().map(String::as_str).chain(values).collect()
}

fn cells(row: &Row) -> Vec<String> {
    let entries = row.entries.iter().map(|entry| entry.as_ref().map(entry_text).unwrap_or_default());
    row.levels.iter().cloned().chain(entries).collect()
}

fn one(show: &Show, metric: &MetricTable) -> String {
    let mut table = table(&header(show), width());
    for row in &metric.rows {
        table.add_row(cells(row));
    }
    lines(&table)
}

fn entry_text(entry: &Entry) -> String {
    let mut text = match &entry.summary {
        Some(of) => {
            let [median, least, largest] = [of.median, of.least, of.largest].map(number);
            if least == largest { median } else { format!("{median} ({least}–{largest})") }
        }
        None => entry.words.iter().map(|(word, count)| format!("{word} ({count})")).collect::<Vec<_>>().join(", "),
    };
    if entry.wide {
        text.push('~');
    }
    for (count, what) in [(entry.lacking, "without"), (entry.failed, "failed"), (entry.timed_out, "timed out")] {
        if count > 0 {
            let _ = write!(text, " {count} {what}");
        }
    }
    if let Some(ratio) = &entry.against_first {
        let _ = write!(text, " ×{:.3}", ratio.ratio);
        if let Some((low, high)) = ratio.interval {
            let _ = write!(text, " [{low:.3}, {high:.3}]");
        }
    }
    text.trim().to_owned()
}

/// Four digits that count, without an exponent where people can read the number.
fn number(number: f64) -> String {
    match number.abs() {
        0.0 => "0".to_owned(),
        size if size >= 1e9 => format!("{:.3}e9", number / 1e9),
        size if size >= 1e6 => format!("{:.3}e6", number / 1e6),
        size if size >= 1000.0 => format!("{number:.0}"),
        size if size >= 1e-6 => {
            let decimals = 3 - size.log10().floor() as i32;
            format!("{number:.*}", usize::try_from(decimals).unwrap_or(0))
        }
        _ => format!("{number:.3e}"),
    }
}

fn notes(show: &Show) -> Vec<String> {
    let entries = || show.metrics.iter().flat_map(|m| &m.rows).flat_map(|row| &row.entries).flatten();
    let mut notes = Vec::new();
    let ratios: Vec<_> = entries().filter_map(|entry| entry.against_first.as_ref()).collect();
    if !ratios.is_empty() {
        let sure = show.confidence * 100.0;
        notes.push(format!(
            "×: ratio to the row's first column, repetition by repetition, with its {sure:.0}% interval."
        ));
    }
    if ratios.iter().any(|ratio| ratio.interval.is_none()) {
        notes.push("A ratio without an interval is of too few repetitions: six give one.".to_owned());
    }
    if entries().any(|entry| entry.lacking > 0) {
        notes.push("without: repetitions with a successful command that lack this figure alone.".to_owned());
    }
    if entries().any(|entry| entry.wide) {
        notes.push("~: the repetitions differ by more than the specification's `spread.wide`.".to_owned());
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_have_four_digits() {
        let numbers = [0.0, 0.001234, 0.5, 12.345, 999.95, 1234.5, 2.5e6, 3.21e10, 1e-9];
        let texts = ["0", "0.001234", "0.5000", "12.35", "1000.0", "1234", "2.500e6", "32.100e9", "1.000e-9"];
        assert_eq!(numbers.map(number), texts);
    }
}
