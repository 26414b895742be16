//! Places of the waiting in the calls.

use super::Section;
use crate::function_name::folded;
use crate::levels::misses;
use crate::load::Report;
use crate::name::{fitted, plain};
use crate::number::{counted, grouped};
use crate::plot::flame::flame;
use crate::stacks::{Weights, tree};
use maud::html;
use nearmiss_record::model::StackRow;

pub(super) fn section(report: &Report) -> Option<Section> {
    let stacks = &report.model.stacks;
    let weights = Weights::of(&report.model);
    let weight = |s: &StackRow| weights.of_row(s);
    let unit = weights.unit();
    let whole = match weights {
        Weights::Cycles => report.model.totals.cycles,
        Weights::Waits => report.model.totals.stall_cycles,
        Weights::Misses => {
            (0..report.levels.len()).fold(0, |a: u64, i| a.saturating_add(misses(&report.model.totals, i)))
        }
    };
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
        @if weights == Weights::Cycles {
            p.quiet { "Cycles include those that are not spent waiting. The width of a function, all its stacks together, is exact; how its computing is split over the stacks that lead to it is estimated from the references kept under each." }
        }
        details {
            summary { "Table: the heaviest call stacks" }
            div.scroll tabindex="0" role="region" aria-label="The heaviest call stacks" {
                table data-sort {
                    thead { tr { th scope="col" { "stack, outermost first" } th.n scope="col" { (unit) } } }
                    tbody { @for s in shown { tr { td { @for (i, f) in s.frames.iter().enumerate() { @if i > 0 { " › " } code title=(plain(f)) { (fitted(&folded(f), 60)) } } } td.n data-v=(weight(s)) { (grouped(weight(s))) } } } }
                    tfoot {
                        @if !rest.is_empty() { tr { th scope="row" { "others (" (counted(rest.len() as u64, "stack")) ")" } td.n { (grouped(rest.iter().fold(0u64, |a, s| a.saturating_add(weight(s))))) } } }
                        @if whole > total { tr { th scope="row" { "no call stack known" } td.n { (grouped(whole - total)) } } }
                        tr { th scope="row" { "total" } td.n { (grouped(whole.max(total))) } }
                    }
                }
            }
        }
    };
    let title = if weights == Weights::Cycles { "Cycles by call stack" } else { "Call stacks that wait" };
    Section::new("stacks", title, body)
}
