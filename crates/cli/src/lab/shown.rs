//! A lab's tables as text.

use crate::table::{lines, table, width};
use nearmiss_lab::{Entry, Lab, MetricTable, Show};
use nearmiss_record::words::counted;
use std::fmt::Write;

/// The head, a table a figure, and what the marks mean.
pub fn text(lab: &Lab, show: &Show) -> String {
    let path = lab.path().display();
    let cells = counted(show.cells as u64, "cell");
    let mut text = format!("Lab {} ({path}), seed {}: {}, measured", show.name, show.seed, cells);
    if show.not_done > 0 {
        let _ = write!(text, ", {} of them without figures", show.not_done);
    }
    text.push('\n');
    for metric in &show.metrics {
        let _ = write!(text, "\n{}\n{}\n", title(show, metric), one(show, metric));
    }
    let entries = || show.metrics.iter().flat_map(|m| &m.rows).flat_map(|row| &row.entries).flatten();
    let notes = notes(show, &entries().collect::<Vec<_>>());
    if !notes.is_empty() {
        let _ = write!(text, "\n{}\n", notes.join("\n"));
    }
    text
}

fn title(show: &Show, metric: &MetricTable) -> String {
    let unit = if metric.unit.is_empty() { String::new() } else { format!(" in {}", metric.unit) };
    let by = show.column_axis.as_ref().map(|axis| format!(" by {axis}")).unwrap_or_default();
    format!("Measured {}{unit}{by}: median, least–largest", metric.metric)
}

fn one(show: &Show, metric: &MetricTable) -> String {
    let values = if show.columns.is_empty() { vec!["all"] } else { show.columns.iter().map(String::as_str).collect() };
    let header: Vec<&str> = show.row_axes.iter().map(String::as_str).chain(values).collect();
    let mut table = table(&header, width());
    for row in &metric.rows {
        let entries = row.entries.iter().map(|entry| entry.as_ref().map(entry_text).unwrap_or_default());
        table.add_row(row.levels.iter().cloned().chain(entries));
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
    for (count, what) in [(entry.failed, "failed"), (entry.timed_out, "timed out")] {
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

fn notes(show: &Show, entries: &[&Entry]) -> Vec<String> {
    let mut notes = Vec::new();
    let ratios: Vec<_> = entries.iter().filter_map(|entry| entry.against_first.as_ref()).collect();
    if !ratios.is_empty() {
        let sure = show.confidence * 100.0;
        notes.push(format!(
            "×: ratio to the row's first column, repetition by repetition, with its {sure:.0}% interval."
        ));
    }
    if ratios.iter().any(|ratio| ratio.interval.is_none()) {
        notes.push("A ratio without an interval is of too few repetitions: six give one.".to_owned());
    }
    if entries.iter().any(|entry| entry.wide) {
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
