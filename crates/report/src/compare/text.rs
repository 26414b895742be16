//! The comparison for a terminal.

use super::shown::{amount, change, direction, named, shown, signed};
use crate::name::{cell, fitted, plain, right, wrapped};
use nearmiss_record::comparison::{ComparedColumn, ComparedRow, ComparedTable, Figures, RunComparison, Unit};
use unicode_width::UnicodeWidthStr;

/// Columns of a figure, of a difference, of a change in percent, of its direction.
const FIGURE: usize = 10;
const CHANGE: usize = 8;
const DIRECTION: usize = "  better".len();
/// Columns of the difference of a figure that is not the first.
const MORE: usize = 15;
/// Names are not cut below this for the sake of more figures.
const LEAST_NAME: usize = 26;

/// The page: of each table `top` rows. It holds ANSI styles: strip them where no terminal reads it.
pub fn text(comparison: &RunComparison, width: usize, top: usize) -> String {
    let mut page = Page { width: width.clamp(60, 160), top, out: String::new() };
    for (letter, run) in named(comparison) {
        page.line(&format!("{letter:<2} {}  on {}", plain(&run.path), plain(&run.machine)));
        page.line(&format!("   {}", fitted(&run.target, page.width - 3)));
    }
    for table in &comparison.tables {
        page.table(table, &comparison.origin);
    }
    page.notes(&comparison.notes);
    page.out
}

struct Page {
    width: usize,
    top: usize,
    out: String,
}

impl Page {
    fn line(&mut self, text: &str) {
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }

    fn title(&mut self, text: &str) {
        let bold = anstyle::Style::new().bold();
        self.out.push_str(&format!("\n{bold}{}{bold:#}\n", text.trim_end()));
    }

    fn table(&mut self, table: &ComparedTable, origin: &str) {
        let shown = shown(table, self.top);
        let Some((lead, others)) = table.columns.split_first() else { return };
        if shown.rows.is_empty() && shown.below.is_empty() {
            self.title(&format!("{}, {origin}: none in either run", table.title));
            return;
        }
        let fixed = 2 + 3 * FIGURE + CHANGE + DIRECTION;
        let fitting = self.width.saturating_sub(fixed + LEAST_NAME) / MORE;
        let others = &others[..fitting.min(others.len())];
        let name_width = self.width - fixed - others.len() * MORE;
        let title = format!("{}, {origin} {}", table.title, lead.name);
        let mut heads = ["A", "B", "B - A"].map(|title| right(title, FIGURE)).concat();
        heads += &" ".repeat(CHANGE + DIRECTION);
        heads += &others.iter().map(|c| right(&c.name, MORE)).collect::<String>();
        if title.width() <= name_width + 2 {
            self.title(&(cell(&title, name_width + 2) + &heads));
        } else {
            self.title(&fitted(&title, self.width));
            self.line(&(" ".repeat(name_width + 2) + &heads));
        }
        for row in shown.rows.iter().chain(&shown.below) {
            self.row(&label(row, name_width), &row.figures, lead, others, name_width);
        }
        if let Some(total) = &shown.total {
            self.row("total", total, lead, others, name_width);
        }
    }

    fn row(&mut self, name: &str, figures: &[Figures], lead: &ComparedColumn, others: &[ComparedColumn], width: usize) {
        let Some((first, rest)) = figures.split_first() else { return };
        let mut line = format!("  {}", cell(name, width));
        line += &[first.before, first.after].map(|f| right(&amount(f, lead.unit), FIGURE)).concat();
        line += &right(&signed(first.difference, lead.unit), FIGURE);
        line += &right(&change(*first), CHANGE);
        line += &format!("{:DIRECTION$}", format!("  {}", direction(*first)));
        let difference = |(column, figures): (&ComparedColumn, &Figures)| -> String {
            let unit: Unit = column.unit;
            right(&signed(figures.difference, unit), MORE)
        };
        line += &others.iter().zip(rest).map(difference).collect::<String>();
        self.line(&line);
    }

    fn notes(&mut self, notes: &[String]) {
        if !notes.is_empty() {
            self.title("Notes");
        }
        for note in notes {
            for (i, part) in wrapped(&plain(note), self.width - 4).iter().enumerate() {
                self.line(&format!("{}{part}", if i == 0 { "  " } else { "    " }));
            }
        }
    }
}

fn label(row: &ComparedRow, width: usize) -> String {
    if row.detail.is_empty() {
        return fitted(&row.name, width);
    }
    let detail = fitted(&row.detail, width / 2);
    format!("{}  {detail}", fitted(&row.name, width.saturating_sub(2 + detail.width())))
}
