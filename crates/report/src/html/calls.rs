//! Where in the calls the waiting is.

use super::Section;
use crate::levels::misses;
use crate::load::Report;
use crate::name::{fitted, plain};
use crate::number::{counted, grouped};
use crate::plot::flame::flame;
use crate::stacks::tree;
use maud::html;
use nearmiss_record::model::StackRow;

pub(super) fn section(report: &Report) -> Option<Section> {
    let stacks = &report.model.stacks;
    let waits = stacks.iter().any(|s| s.stall_cycles > 0);
    let weight =
        |s: &StackRow| if waits { s.stall_cycles } else { s.misses.iter().fold(0, |a: u64, b| a.saturating_add(*b)) };
    let unit = if waits { "cycles waiting" } else { "misses, all levels added up" };
    let all_misses = || (0..report.levels.len()).fold(0, |a: u64, i| a.saturating_add(misses(&report.model.totals, i)));
    let whole = if waits { report.model.totals.stall_cycles } else { all_misses() };
    let nodes = tree(stacks.iter().map(|s| (s.frames.iter().map(String::as_str), weight(s))));
    let total = nodes.first()?.weight;
    if total == 0 {
        return None;
    }
    let mut heaviest: Vec<&StackRow> = stacks.iter().filter(|s| weight(s) > 0).collect();
    heaviest.sort_by_key(|s| std::cmp::Reverse(weight(s)));
    const SHOWN: usize = 20;
    let (shown, rest) = heaviest.split_at(heaviest.len().min(SHOWN));
    let body = html! {
        (flame(&nodes, "Modelled", unit, "Call stacks"))
        details {
            summary { "Table: the heaviest call stacks" }
            div.scroll tabindex="0" role="region" aria-label="The heaviest call stacks" {
                table data-sort {
                    thead { tr { th scope="col" { "stack, outermost first" } th.n scope="col" { (unit) } } }
                    tbody { @for s in shown { tr { td { @for (i, f) in s.frames.iter().enumerate() { @if i > 0 { " › " } code { (plain(&fitted(f, 60))) } } } td.n data-v=(weight(s)) { (grouped(weight(s))) } } } }
                    tfoot {
                        @if !rest.is_empty() { tr { th scope="row" { "others (" (counted(rest.len() as u64, "stack")) ")" } td.n { (grouped(rest.iter().fold(0u64, |a, s| a.saturating_add(weight(s))))) } } }
                        @if whole > total { tr { th scope="row" { "no call stack known" } td.n { (grouped(whole - total)) } } }
                        tr { th scope="row" { "total" } td.n { (grouped(whole.max(total))) } }
                    }
                }
            }
        }
    };
    Section::new("stacks", "Call stacks that wait", body)
}
