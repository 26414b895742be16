//! Lines that CPUs take from each other, and who evicted whom.

use super::Section;
use crate::function_name::folded;
use crate::load::Report;
use crate::name::{fitted, plain};
use crate::number::grouped;
use crate::order;
use maud::{Markup, html};
use nearmiss_record::model::{BlameRow, LineSharing, SharedLineRow, Tenant};
use nearmiss_record::words::bytes;

/// Most tenants of a line that a row names.
const MOST_TENANTS: usize = 4;

pub(super) fn lines(report: &Report, top: usize) -> Option<Section> {
    let mut rows: Vec<&SharedLineRow> = report.model.shared_lines.iter().collect();
    if rows.is_empty() {
        return None;
    }
    let both = |r: &SharedLineRow| r.true_sharing.saturating_add(r.false_sharing);
    rows.sort_by_key(|r| std::cmp::Reverse(both(r)));
    let (shown, rest) = rows.split_at(rows.len().min(top));
    let sum = |rows: &[&SharedLineRow], figure: fn(&SharedLineRow) -> u64| {
        rows.iter().fold(0u64, |a, r| a.saturating_add(figure(r)))
    };
    let order = order::of_sharing(report.model.order);
    let body = html! {
        p { "Modelled coherence misses by line (" (order) "). False sharing: the CPU that missed wanted other bytes than those that others wrote. Needless: the CPU lost the line again and had used nothing that another one had written. A line is shared falsely where tasks use different bytes of it, and truly where they use the same ones." }
        div.scroll tabindex="0" role="region" aria-label="Lines shared between CPUs" {
            table data-sort {
                thead { tr { th scope="col" { "object" } th.n scope="col" { "physical line" } th.n scope="col" { "true sharing" } th.n scope="col" { "false sharing" } th.n scope="col" { "needless" } th scope="col" { "shared" } th scope="col" { "tenants" } th scope="col" { "functions" } } }
                tbody {
                    @for r in shown {
                        tr {
                            th scope="row" title=(plain(&r.object)) { code { (fitted(&r.object, 80)) } }
                            td.n data-v=(r.line_paddr) { code { (format!("{:#x}", r.line_paddr)) } }
                            td.n data-v=(r.true_sharing) { (grouped(r.true_sharing)) }
                            td.n data-v=(r.false_sharing) { (grouped(r.false_sharing)) }
                            td.n data-v=(r.needless) { (grouped(r.needless)) }
                            td { (shared(r)) }
                            td.words { @for (i, t) in r.tenants.iter().take(MOST_TENANTS).enumerate() { @if i > 0 { "; " } (tenant(t)) } @if r.tenants.len() > MOST_TENANTS { " and " (r.tenants.len() - MOST_TENANTS) " more" } }
                            td.words { @for (i, f) in r.functions.iter().take(4).enumerate() { @if i > 0 { ", " } code title=(plain(f)) { (fitted(&folded(f), 60)) } } @if r.functions.len() > 4 { " and " (r.functions.len() - 4) " more" } }
                        }
                    }
                }
                tfoot {
                    @if !rest.is_empty() { tr { th scope="row" colspan="2" { "others (" (grouped(rest.len() as u64)) " lines)" } td.n { (grouped(sum(rest, |r| r.true_sharing))) } td.n { (grouped(sum(rest, |r| r.false_sharing))) } td.n { (grouped(sum(rest, |r| r.needless))) } td {} td {} td {} } }
                    tr { th scope="row" colspan="2" { "total" } td.n { (grouped(sum(&rows, |r| r.true_sharing))) } td.n { (grouped(sum(&rows, |r| r.false_sharing))) } td.n { (grouped(sum(&rows, |r| r.needless))) } td {} td {} td {} }
                }
            }
        }
    };
    Section::new("sharing", "Lines that move between CPUs", body)
}

fn shared(row: &SharedLineRow) -> &'static str {
    match row.sharing() {
        LineSharing::False => "falsely",
        LineSharing::True => "truly",
    }
}

/// `counters+0x8 (8 B, written by 1, read by 2)`.
fn tenant(tenant: &Tenant) -> Markup {
    let object = fitted(&tenant.object, 60);
    html! {
        code title=(plain(&tenant.object)) { (object) @if tenant.offset > 0 { (format!("+{:#x}", tenant.offset)) } }
        " (" (bytes(tenant.bytes.into())) ", written by " (tenant.writers.len()) ", read by " (tenant.readers.len()) ")"
    }
}

/// A function, and the call that led to it where that is known.
fn called(function: &str, at: &str) -> Markup {
    html! { code { (fitted(&folded(function), 80)) } @if !at.is_empty() { ", called at " code { (fitted(&folded(at), 80)) } } }
}

pub(super) fn blame(report: &Report, top: usize) -> Option<Section> {
    let mut rows: Vec<&BlameRow> = report.model.blame.iter().collect();
    if rows.is_empty() {
        return None;
    }
    rows.sort_by_key(|r| std::cmp::Reverse(r.misses));
    let (shown, rest) = rows.split_at(rows.len().min(top));
    let sum = |rows: &[&BlameRow]| rows.iter().fold(0u64, |a, r| a.saturating_add(r.misses));
    let body = html! {
        p { "Blame, modelled, of all that the CPUs executed: misses on lines that a line evicted which was never used again. It is not what would be saved without the evictor: that takes a replay." }
        div.scroll tabindex="0" role="region" aria-label="Who evicted whom" {
            table data-sort {
                thead { tr { th scope="col" { "cache" } th scope="col" { "evicted by" } th scope="col" { "missed by" } th.n scope="col" { "misses" } } }
                tbody { @for r in shown { tr { td { (fitted(&r.cache, 12)) } td title=(plain(&r.evictor)) { (called(&r.evictor, &r.evictor_called_at)) } td title=(plain(&r.victim)) { (called(&r.victim, &r.victim_called_at)) } td.n data-v=(r.misses) { (grouped(r.misses)) } } } }
                tfoot {
                    @if !rest.is_empty() { tr { th scope="row" colspan="3" { "others (" (grouped(rest.len() as u64)) " pairs)" } td.n { (grouped(sum(rest))) } } }
                    tr { th scope="row" colspan="3" { "total" } td.n { (grouped(sum(&rows))) } }
                }
            }
        }
    };
    Section::new("blame", "Who evicted whom", body)
}
