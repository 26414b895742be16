//! The comparison as one HTML file that needs nothing else. Names are hostile until escaped: `maud` escapes all text.

use super::shown::{amount, change, direction, named, shown, signed};
use crate::html::{SCRIPT, page_head};
use crate::name::{fitted, plain};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use nearmiss_record::comparison::{ComparedColumn, ComparedRow, ComparedRun, ComparedTable, Figures, RunComparison};

const ROWS: usize = 60;
const NAME_WIDTH: usize = 100;

/// The page.
pub fn html(comparison: &RunComparison) -> String {
    let [a, b] = [&comparison.before, &comparison.after]
        .map(|side| side.first().map_or(String::new(), |run| fitted(&run.target, 80)));
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (page_head(&format!("{b} against {a}"), &html! {}, ""))
            body {
                a.skip href="#main" { "Skip to the figures" }
                header {
                    p.kicker { "nearmiss report --compare · every figure on this page was " (comparison.origin) }
                    h1 { code { (b) } " (B) against " code { (a) } " (A)" }
                    @for (letter, compared) in named(comparison) { (run(&letter, compared)) }
                }
                nav aria-label="Sections" {
                    ul { @for t in &comparison.tables { li { a href={ "#" (id(t)) } { (plain(&t.title)) } } } li { a href="#notes" { "Notes" } } }
                }
                main #main tabindex="-1" {
                    @for t in &comparison.tables {
                        section #(id(t)) aria-labelledby={ (id(t)) "-title" } {
                            h2 #{ (id(t)) "-title" } { (plain(&t.title)) }
                            (table(t))
                        }
                    }
                    section #notes { h2 { "Notes" } @for note in &comparison.notes { p { (plain(note)) } } }
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

/// Returns an id from the table's name: that of an event may hold anything.
fn id(table: &ComparedTable) -> String {
    table.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

fn run(letter: &str, run: &ComparedRun) -> Markup {
    html! { p { strong { (letter) } " " code { (plain(&run.path)) } " on " (plain(&run.machine)) ", " (plain(&run.started)) } }
}

fn table(table: &ComparedTable) -> Markup {
    let shown = shown(table, ROWS);
    html! {
        div.scroll tabindex="0" role="region" aria-label=(plain(&table.title)) {
            table data-sort {
                thead { tr {
                    th scope="col" { "of" } th scope="col" { "in" }
                    @for c in &table.columns {
                        th.n scope="col" { (c.name) ", A" } th.n scope="col" { "B" } th.n scope="col" { "B − A" }
                    }
                    th scope="col" { "" }
                } }
                tbody { @for row in &shown.rows { tr { (name(row)) (figures(&row.figures, &table.columns)) } } }
                tfoot {
                    @for row in &shown.below { tr { (name(row)) (figures(&row.figures, &table.columns)) } }
                    @if let Some(total) = &shown.total { tr { th scope="row" colspan="2" { "total" } (figures(total, &table.columns)) } }
                }
            }
        }
    }
}

fn name(row: &ComparedRow) -> Markup {
    html! {
        th scope="row" title=(plain(&row.name)) { code { (fitted(&row.name, NAME_WIDTH)) } }
        td { (fitted(&row.detail, NAME_WIDTH)) }
    }
}

fn figures(figures: &[Figures], columns: &[ComparedColumn]) -> Markup {
    let lead = figures.first().copied().unwrap_or_default();
    html! {
        @for (f, c) in figures.iter().zip(columns) {
            td.n data-v=(f.before) { (amount(f.before, c.unit)) }
            td.n data-v=(f.after) { (amount(f.after, c.unit)) }
            td.n data-v=(f.difference) { (signed(f.difference, c.unit)) }
        }
        td { (change(lead)) " " (direction(lead)) }
    }
}
