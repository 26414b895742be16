//! Calls as an icicle: the outermost function on top, each as wide as its share; a click widens one.

use super::chart::pct;
use crate::function_name::folded;
use crate::name::fitted;
use crate::number::{counted, grouped, percent_of, percentage};
use crate::stacks::Node;
use maud::{Markup, html};

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

/// The picture of a call tree. `kind`: *Modelled* or *Measured*; `unit`: what its weights count; `name`: text in place
/// of the picture.
pub(crate) fn flame(nodes: &[Node], kind: &str, unit: &str, name: &str) -> Markup {
    let total = nodes.first().map_or(0, |root| root.weight);
    let placed = place(nodes, total);
    let depth = placed.iter().map(|p| p.node.depth).max().unwrap_or(0);
    let left_out = nodes.len().saturating_sub(1 + placed.len());
    let label = |n: &Node| {
        format!("{}: {}, {} {unit}", fitted(&n.name, NAME_WIDTH), percent_of(n.weight, total), grouped(n.weight))
    };
    html! {
        p { (kind) ": width is the share of " (unit) ", callers above callees. Select a function to widen it."
            @if left_out > 0 { " Not drawn: " (counted(left_out as u64, "narrow context")) "." } }
        div.flame {
            div.frames {
                div.icicle data-icicle style={ "height:" ((depth * ROW_HEIGHT).max(ROW_HEIGHT)) "px" } role="group" aria-label={ (name) ". Tab enters, arrow keys move, Enter widens; a table follows." } {
                    @for (i, p) in placed.iter().enumerate() {
                        button type="button" tabindex=(if i == 0 { "0" } else { "-1" }) class={ "f" (p.node.name.len() % 5) } data-x=(format!("{:.5}", p.from)) data-w=(format!("{:.5}", p.width)) data-v=(label(p.node))
                            style={ "left:" (pct(p.from)) ";width:" (pct(p.width)) ";top:" ((p.node.depth - 1) * ROW_HEIGHT) "px" } { (fitted(&folded(&p.node.name), NAME_WIDTH)) }
                    }
                }
            }
            output.readout aria-live="polite" { "Point at a function, or use the arrow keys." }
        }
    }
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
