//! A gate for a terminal: the verdict, the table, and what is behind it.

use super::words::{
    beyond, cause, change, headline, is_shown, mean, noise, recorder, ruling, section, title, whole_title,
};
use crate::name::{cell, plain, right, wrapped};
use crate::number::counted;
use anstyle::{AnsiColor, Style};
use nearmiss_record::gate::{Cause, GateRecord, GatedSide, JudgedFigure, Ruling};

/// Columns of a figure's name, its two means, its change and its noise.
const WIDTHS: [usize; 5] = [24, 15, 15, 10, 9];
/// Columns of a line of text.
const WIDTH: usize = 96;

/// The verdict as text with styles; the caller strips them for other outputs than terminals.
pub fn text(record: &GateRecord) -> String {
    let style = verdict_style(if record.passed { Ruling::Better } else { Ruling::Beyond });
    let mut lines = vec![styled(&headline(record), style), String::new(), recorder(record)];
    lines.push(side("old", &record.old));
    lines.push(side("new", &record.new));
    lines.push(String::new());
    lines.extend(table(record));
    lines.extend(why(record));
    if !record.notes.is_empty() {
        lines.push(String::new());
        lines.extend(record.notes.iter().flat_map(|note| wrapped(&plain(note), WIDTH)));
    }
    lines.join("\n") + "\n"
}

fn side(name: &str, side: &GatedSide) -> String {
    format!("  {name}  {}  ({})", plain(&side.command), counted(side.recordings as u64, "recording"))
}

fn table(record: &GateRecord) -> Vec<String> {
    let head = ["", "OLD", "NEW", "CHANGE", "NOISE"];
    let mut lines = vec![row(head.map(str::to_owned), "VERDICT")];
    let mut under = "";
    for figure in record.figures.iter().filter(|figure| is_shown(figure)) {
        if section(figure) != under {
            under = section(figure);
            lines.push(under.to_owned());
        }
        lines.push(figure_row(figure));
    }
    lines
}

fn figure_row(figure: &JudgedFigure) -> String {
    let indent = if figure.name.starts_with("syscalls.") { "    " } else { "  " };
    let name = format!("{indent}{}", title(&figure.name));
    let cells = [name, mean(figure.old), mean(figure.new), change(figure), noise(figure)];
    row(cells, &styled(&ruling(figure), verdict_style(figure.ruling)))
}

fn row(cells: [String; 5], last: &str) -> String {
    let [name, figures @ ..] = cells;
    let figures: String = figures.iter().zip(&WIDTHS[1..]).map(|(text, width)| right(text, *width)).collect();
    format!("{}{figures}  {last}", cell(&name, WIDTHS[0]))
}

fn why(record: &GateRecord) -> Vec<String> {
    let mut lines = Vec::new();
    for figure in beyond(record).filter(|figure| figure.causes.iter().any(|found| is_news(found, figure))) {
        lines.push(String::new());
        lines.push(format!("Why {} {}", whole_title(&figure.name), change(figure)));
        for found in &figure.causes {
            let mut parts = wrapped(&cause(found, figure), WIDTH - 4).into_iter();
            lines.extend(parts.next().map(|first| format!("  {first}")));
            lines.extend(parts.map(|rest| format!("    {rest}")));
        }
    }
    let unknown: Vec<String> =
        beyond(record).filter(|figure| figure.causes.is_empty()).map(|figure| whole_title(&figure.name)).collect();
    if !unknown.is_empty() {
        lines.push(String::new());
        lines.extend(wrapped(&format!("No cause is known for more {}.", unknown.join(", ")), WIDTH));
    }
    lines
}

/// Whether a cause has more than the figure's name: a call by that name does not, unless its caller is known.
fn is_news(cause: &Cause, figure: &JudgedFigure) -> bool {
    !cause.caller.is_empty() || figure.name.strip_prefix("syscalls.") != Some(&cause.name)
}

fn verdict_style(ruling: Ruling) -> Style {
    match ruling {
        Ruling::Beyond => Style::new().bold().fg_color(Some(AnsiColor::Red.into())),
        Ruling::Better => Style::new().fg_color(Some(AnsiColor::Green.into())),
        Ruling::Unclear => Style::new().fg_color(Some(AnsiColor::Yellow.into())),
        Ruling::NoDifference | Ruling::Within => Style::new(),
    }
}

fn styled(text: &str, style: Style) -> String {
    format!("{style}{text}{style:#}")
}
