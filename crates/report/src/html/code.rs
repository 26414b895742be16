//! The hottest functions, line by line and instruction by instruction.

use super::Section;
use crate::code::{Annotated, Figures, File, ShownInstruction, hottest};
use crate::function_name::folded;
use crate::levels::class_name;
use crate::load::Report;
use crate::name::{fitted, plain};
use crate::number::{counted, grouped, percent_of, percentage};
use crate::plot::chart::pct;
use maud::{Markup, html};
use nearmiss_record::model::MissClass;

/// Functions that are taken apart.
pub const FUNCTIONS: usize = 8;
/// Functions that are open at first.
const OPEN: usize = 1;

pub(super) fn section(report: &Report) -> Option<Section> {
    let functions = hottest(report, FUNCTIONS);
    if functions.is_empty() {
        return None;
    }
    let body = html! {
        p { "Modelled, the function with the most cycles first; of lines and instructions those with a part in 200 of some figure. Bars: misses by class." }
        @for (index, function) in functions.into_iter().enumerate() { (annotated(report, &Annotated::of(report, function), index < OPEN)) }
    };
    Section::new("code", "Code of the hottest functions", body)
}

fn annotated(report: &Report, annotated: &Annotated<'_>, open: bool) -> Markup {
    let (function, whole) = (annotated.function, &annotated.whole);
    let name = fitted(&folded(&function.name), 100);
    html! {
        details open[open] {
            summary { code title=(plain(&function.name)) { (name) } " " (percent_of(whole.cycles, report.model.totals.cycles)) " of the cycles" }
            @if let Some(why) = report.texts.without_code.get(&function.module) { p.quiet { (plain(why)) } }
            div.scroll tabindex="0" role="region" aria-label={ "Code of " (name) } {
                table {
                    thead { tr {
                        th scope="col" { "line" } th scope="col" { "source and instructions" }
                        th.n scope="col" { "cycles" } th.n scope="col" { "references" }
                        @for level in &report.levels { th.n scope="col" { (level.name) " misses" } }
                    } }
                    tbody {
                        @for file in &annotated.files { (file_rows(report, whole, file)) }
                        @for place in &annotated.without_line { (instruction(report, whole, place)) }
                    }
                    tfoot {
                        @if annotated.others.0 > 0 { (closing(report, whole, &annotated.others.1, &counted(annotated.others.0 as u64, "other line"))) }
                        @if !annotated.no_line.is_nothing() { (closing(report, whole, &annotated.no_line, "no source line known")) }
                        (closing(report, whole, whole, "the whole function"))
                    }
                }
            }
        }
    }
}

fn file_rows(report: &Report, whole: &Figures, file: &File<'_>) -> Markup {
    html! {
        tr { th scope="row" colspan=(4 + report.levels.len()) { code { (plain(file.path)) } @if let Some(remark) = report.texts.remark(file.path) { " (" (remark) ")" } } }
        @for line in &file.lines {
            tr {
                td.n { (line.number) }
                td { code style="white-space:pre-wrap" { (report.texts.line(file.path, line.number).unwrap_or_default()) } }
                (figures(report, whole, &line.figures))
            }
            @for place in &line.instructions { (instruction(report, whole, place)) }
        }
    }
}

fn instruction(report: &Report, whole: &Figures, place: &ShownInstruction<'_>) -> Markup {
    html! {
        tr {
            td {}
            td.quiet { code { (format!("{:x}", place.address)) "  " (report.texts.instruction(&place.row.module, place.address)) } }
            (figures(report, whole, &place.figures))
        }
    }
}

fn closing(report: &Report, whole: &Figures, sums: &Figures, what: &str) -> Markup {
    html! { tr { th scope="row" colspan="2" { (what) } (figures(report, whole, sums)) } }
}

fn figures(report: &Report, whole: &Figures, figures: &Figures) -> Markup {
    html! {
        td.n title=(grouped(figures.cycles)) { (percent_of(figures.cycles, whole.cycles)) }
        td.n { (grouped(figures.references)) }
        @for level in &report.levels {
            td.n {
                (grouped(figures.misses(level.index)))
                (bar(figures.levels.get(level.index).unwrap_or(&[0; 6]), whole.misses(level.index)))
            }
        }
    }
}

fn bar(classes: &[u64; 6], whole: u64) -> Markup {
    html! {
        @if classes.iter().any(|misses| *misses > 0) {
            span.bar {
                @for (class, misses) in MissClass::ALL.into_iter().zip(classes) {
                    @if *misses > 0 { span class={ "k" (class as usize) } style={ "width:" (pct(percentage(*misses, whole))) } title={ (class_name(class)) ": " (grouped(*misses)) } {} }
                }
            }
        }
    }
}
