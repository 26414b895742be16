//! Where in the calls the waiting is: an icicle of call stacks, outermost function on top.

use super::Section;
use super::plot::pct;
use crate::levels::misses;
use crate::load::Report;
use crate::name::{fitted, plain};
use crate::number::{counted, grouped, percent_of, percentage};
use crate::stacks::{Node, tree};
use maud::html;
use nearmiss_record::model::StackRow;

/// Narrower contexts are not drawn.
const LEAST_PERCENT: f64 = 0.15;
/// Nor more than these, the widest first.
const MOST_DRAWN: usize = 1500;
const ROW_HEIGHT: usize = 20;
const NAME_WIDTH: usize = 120;

struct Placed<'a> {
    node: &'a Node,
    from: f64,
    width: f64,
}

pub(super) fn section(report: &Report) -> Option<Section> {
    let stacks = &report.model.stacks;
    let waits = stacks.iter().any(|s| s.stall_cycles > 0);
    let weight =
        |s: &StackRow| if waits { s.stall_cycles } else { s.misses.iter().fold(0, |a: u64, b| a.saturating_add(*b)) };
    let unit = if waits { "cycles waiting" } else { "misses, all levels added up" };
    let all_misses = || (0..report.levels.len()).fold(0, |a: u64, i| a.saturating_add(misses(&report.model.totals, i)));
    let whole = if waits { report.model.totals.stall_cycles } else { all_misses() };
    let nodes = tree(stacks, weight);
    let total = nodes.first()?.weight;
    if total == 0 {
        return None;
    }
    let placed = place(&nodes, total);
    let depth = placed.iter().map(|p| p.node.depth).max().unwrap_or(0);
    let left_out = nodes.len() - 1 - placed.len();
    let say = |n: &Node| {
        format!("{}: {}, {} {unit}", fitted(&n.name, NAME_WIDTH), percent_of(n.weight, total), grouped(n.weight))
    };
    let mut heaviest: Vec<&StackRow> = stacks.iter().filter(|s| weight(s) > 0).collect();
    heaviest.sort_by_key(|s| std::cmp::Reverse(weight(s)));
    const SHOWN: usize = 20;
    let (shown, rest) = heaviest.split_at(heaviest.len().min(SHOWN));
    let body = html! {
        p { "Modelled: width is the share of " (unit) ", callers above callees. Select a function to widen it."
            @if left_out > 0 { " Not drawn: " (counted(left_out as u64, "narrow context")) "." } }
        div.icicle data-icicle style={ "height:" ((depth * ROW_HEIGHT).max(ROW_HEIGHT)) "px" } role="group" aria-label="Call stacks. Tab enters, arrow keys move, Enter widens; a table follows." {
            @for (i, p) in placed.iter().enumerate() {
                button type="button" tabindex=(if i == 0 { "0" } else { "-1" }) class={ "f" (p.node.name.len() % 5) } data-x=(format!("{:.5}", p.from)) data-w=(format!("{:.5}", p.width)) data-v=(say(p.node))
                    style={ "left:" (pct(p.from)) ";width:" (pct(p.width)) ";top:" ((p.node.depth - 1) * ROW_HEIGHT) "px" } { (fitted(&p.node.name, NAME_WIDTH)) }
            }
        }
        output.readout aria-live="polite" { "Point at a function, or use the arrow keys." }
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

/// Each drawn context with its place in percentage, level by level from the outermost.
fn place(nodes: &[Node], total: u64) -> Vec<Placed<'_>> {
    let mut placed = Vec::new();
    let mut level: Vec<(usize, f64)> = vec![(0, 0.0)];
    while !level.is_empty() && placed.len() < MOST_DRAWN {
        let mut next = Vec::new();
        for (node, from) in level {
            let mut at = from;
            for callee in &nodes[node].callees {
                let width = percentage(nodes[*callee].weight, total);
                if width >= LEAST_PERCENT {
                    placed.push(Placed { node: &nodes[*callee], from: at, width });
                    next.push((*callee, at));
                }
                at += width;
            }
        }
        level = next;
    }
    placed.truncate(MOST_DRAWN);
    placed
}
