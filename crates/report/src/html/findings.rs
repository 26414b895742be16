//! Findings with all their evidence: what is wrong, what would remedy it, and what that would gain.

use super::Section;
use super::head::marked;
use crate::cell;
use crate::findings::{as_sentence, gain, how_measured, known, predicted};
use crate::name::plain;
use maud::{Markup, html};
use nearmiss_record::figures::{Cell, Table};
use nearmiss_record::finding::{Finding, Findings, Prediction, Reach, Unexplained};
use nearmiss_record::words::{listed, quoted};

/// The section of a page.
pub(super) fn section(findings: Option<&Findings>) -> Option<Section> {
    Section::new("findings", "Findings", body(findings?))
}

/// Findings, waits that no remedy explains, advice and notes.
pub(crate) fn body(findings: &Findings) -> Markup {
    html! {
        p.quiet { "By " code { "nearmiss diagnose" } ", on " (plain(&findings.machine)) "." }
        @if let Some(caution) = &findings.caution { p.warning { (plain(caution)) "." } }
        @if let Some(measured) = &findings.measured { p { (how_measured(measured)) } }
        @for (number, finding) in findings.findings.iter().enumerate() { (article(number + 1, finding)) }
        @if let Some(why) = &findings.healthy {
            p { span.tag { (known(findings.known)) } " nothing to remedy: " (text(why)) "." }
        }
        @if let Some(unexplained) = &findings.unexplained { (waits(findings, unexplained)) }
        @if !findings.advice.is_empty() {
            h3 { "Advice" }
            @for advice in &findings.advice { p { (sentence(advice)) } }
        }
        @if !findings.notes.is_empty() {
            h3 { "Notes on the findings" }
            ul { @for note in &findings.notes { li { (sentence(note)) } } }
        }
    }
}

fn article(number: usize, finding: &Finding) -> Markup {
    html! {
        article.finding {
            h3 { (number) ". " (plain(&finding.remedy)) ": " (plain(&gain(&finding.prediction))) }
            p { span.tag { (known(finding.known)) } " " (sentence(&finding.symptom)) }
            dl.evidence {
                @for line in &finding.evidence.lines { dt { (plain(&line.label)) } dd { (text(&line.text)) } }
                dt { "Cause" } dd { (sentence(&finding.cause)) }
                dt { "Remedy" } dd { (sentence(&finding.treatment)) (by_the_author(&finding.reach)) }
                dt { "Predicted" } dd { (prediction(&finding.prediction)) }
                @if !finding.unless.is_empty() {
                    dt { "Unless" } dd { @for reason in &finding.unless { p { (sentence(reason)) } } }
                }
                @if let Some(apply) = &finding.apply { dt { "Apply" } dd { code { (plain(&quoted(apply))) } } }
                @if let Some(verify) = &finding.verify { dt { "Verify" } dd { code { (plain(&quoted(verify))) } } }
            }
            @for evidence in &finding.evidence.tables { (table(evidence)) }
        }
    }
}

fn by_the_author(reach: &Reach) -> Markup {
    html! {
        @if let Reach::Inside { why, change } = reach {
            p { "Not remediable from outside: " (text(why)) ". In the program: " (text(change)) "." }
        }
    }
}

fn prediction(prediction: &Prediction) -> Markup {
    html! {
        (text(&predicted(prediction)))
        @if !prediction.approximate.is_empty() {
            ul { @for reason in &prediction.approximate { li { (sentence(reason)) } } }
        }
    }
}

fn waits(findings: &Findings, unexplained: &Unexplained) -> Markup {
    html! {
        p {
            span.tag { (known(findings.known)) } " no remedy (" (plain(&listed(&unexplained.consulted, "or")))
            ") explains its waits: " (sentence(&unexplained.why))
        }
        ul { @for wait in &unexplained.waits { li { (sentence(&wait.words())) } } }
    }
}

/// A table of typed cells; figures to the right.
fn table(table: &Table) -> Markup {
    let is_figure = |at: usize| table.rows.first().and_then(|row| row.get(at)).is_some_and(is_figure_cell);
    html! {
        div.scroll {
            table {
                caption { (plain(&table.title)) }
                thead {
                    tr {
                        @for (at, column) in table.columns.iter().enumerate() {
                            th scope="col" class=[is_figure(at).then_some("n")] { (plain(column)) }
                        }
                    }
                }
                tbody {
                    @for row in &table.rows {
                        tr { @for value in row { td class=[is_figure_cell(value).then_some("n")] { (plain(&cell::cell(value))) } } }
                    }
                }
            }
        }
    }
}

fn is_figure_cell(cell: &Cell) -> bool {
    !matches!(cell, Cell::Text(_))
}

fn text(words: &str) -> Markup {
    marked(&plain(words))
}

fn sentence(words: &str) -> Markup {
    text(&as_sentence(words))
}
