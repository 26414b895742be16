//! Pressure on the sets of each cache level.

use super::Section;
use crate::load::Report;
use crate::name::plain;
use crate::number::{counted, grouped, spoken_percent};
use crate::plot::chart::pct;
use crate::sentence::hot;
use maud::{Markup, html};
use nearmiss_record::model::SetMap;

/// More sets than this share cells.
const MOST_CELLS: usize = 512;
const ROW_HEIGHT: usize = 14;
/// Multiples of an even spread from which on a cell is one shade darker.
const SHADES: [f64; 6] = [0.5, 1.0, 2.0, 4.0, 8.0, 16.0];

pub(super) fn section(report: &Report) -> Option<Section> {
    let maps: Vec<&SetMap> = report.model.sets.iter().filter(|m| !m.misses.is_empty()).collect();
    if maps.is_empty() {
        return None;
    }
    let body = html! {
        p { "Modelled data misses by cache set, all caches of a level together. The shade is the pressure against an even spread over the sets: misses that crowd on few sets are what coloring spreads." }
        ul.legend {
            li { span.swatch.h0 {} "none" }
            li { span.swatch.h1 {} "under ½×" }
            @for (i, least) in SHADES.iter().enumerate() {
                li { span.swatch.{ "h" (i + 2) } {} @if *least < 1.0 { "½–1×" } @else if i + 1 < SHADES.len() { (least) "–" (SHADES[i + 1]) "×" } @else { (least) "× and more" } }
            }
        }
        @for map in maps {
            h3 { (plain(&map.cache)) ": " (counted(map.misses.len() as u64, "set")) " of " (counted(u64::from(map.ways), "way")) }
            div.pair {
                (half(map, &map.misses, "misses"))
                @if total(&map.conflict_misses) > 0 { (half(map, &map.conflict_misses, "conflict misses")) } @else { p.quiet { "No conflict misses." } }
            }
            (table(map))
        }
    };
    Section::new("sets", "Pressure on cache sets", body)
}

fn total(values: &[u64]) -> u64 {
    values.iter().fold(0, |a: u64, b| a.saturating_add(*b))
}

fn half(map: &SetMap, values: &[u64], noun: &str) -> Markup {
    let all = total(values);
    let concentration = match hot(values) {
        Some(hot) => format!(
            "{} of {} {noun} in {}",
            spoken_percent(hot.held, all),
            grouped(all),
            counted(hot.sets as u64, "set")
        ),
        None => format!("no {noun}"),
    };
    let sets = values.len();
    let together = sets.div_ceil(MOST_CELLS).max(1);
    let cells: Vec<u64> = values.chunks(together).map(total).collect();
    let columns = if cells.len() > 128 { 64 } else { 32 }.min(cells.len());
    let rows = cells.len().div_ceil(columns);
    let even = all as f64 / sets as f64 * together as f64;
    let width = 100.0 / columns as f64;
    let label = |i: usize| {
        let (from, to) = (i * together, ((i + 1) * together).min(sets) - 1);
        let sets = if from == to { format!("set {from}") } else { format!("sets {from}–{to}") };
        let lines = total(&map.lines[from..=to]);
        format!(
            "{sets}: {} {noun}, {:.1}× an even spread; {} for {} ways each",
            grouped(cells[i]),
            cells[i] as f64 / even,
            counted(lines, "line"),
            map.ways
        )
    };
    html! {
        figure {
            figcaption { b { (noun) } ": " (concentration) }
            div.plot {
                div.ytitle { "first set of the row" }
                div.ylabels style={ "height:" (rows * ROW_HEIGHT) "px" } aria-hidden="true" {
                    @for row in (0..rows).step_by(rows.div_ceil(4).max(1)) {
                        span style={ "top:" (row * ROW_HEIGHT + ROW_HEIGHT / 2) "px" } { (grouped((row * columns * together) as u64)) }
                    }
                }
                div.area data-chart tabindex="0" role="group" aria-label={ "Set map of " (plain(&map.cache)) ", " (noun) ": " (concentration) ". Arrow keys read the values; a table follows." } {
                    svg.heat width="100%" height=(rows * ROW_HEIGHT) aria-hidden="true" {
                        @for (i, value) in cells.iter().enumerate().filter(|(_, v)| **v > 0) {
                            rect class={ "h" (shade(*value as f64 / even)) } data-v=(label(i)) x=(pct((i % columns) as f64 * width)) width=(pct(width)) y=(i / columns * ROW_HEIGHT) height=(ROW_HEIGHT) {}
                        }
                    }
                }
                div.xlabels aria-hidden="true" { span.first style="left:0%" { "+0" } span.last style="left:100%" { "+" (grouped((columns * together - 1) as u64)) } }
                div.xtitle { "set number, counted from the row's first" @if together > 1 { " (" (together) " sets a cell)" } }
            }
            output.readout aria-live="polite" { "Point at a cell, or use the arrow keys." }
        }
    }
}

fn shade(times_even: f64) -> usize {
    1 + SHADES.iter().filter(|least| times_even >= **least).count()
}

/// The sets with the most conflict misses, and all others.
fn table(map: &SetMap) -> Markup {
    const ROWS: usize = 16;
    let mut order: Vec<usize> = (0..map.misses.len()).collect();
    order.sort_by_key(|i| (std::cmp::Reverse((map.conflict_misses[*i], map.misses[*i])), *i));
    let (shown, rest) = order.split_at(order.len().min(ROWS));
    let sum_of = |sets: &[usize], values: &[u64]| sets.iter().fold(0u64, |a, i| a.saturating_add(values[*i]));
    html! {
        details {
            summary { "Table: the sets of " (plain(&map.cache)) " with the most conflict misses" }
            div.scroll tabindex="0" role="region" aria-label={ "Sets of " (plain(&map.cache)) } {
                table data-sort {
                    thead { tr { th.n scope="col" { "set" } th.n scope="col" { "misses" } th.n scope="col" { "conflict misses" } th.n scope="col" { "lines seen" } } }
                    tbody {
                        @for i in shown {
                            tr {
                                td.n data-v=(i) { (i) }
                                td.n data-v=(map.misses[*i]) { (grouped(map.misses[*i])) }
                                td.n data-v=(map.conflict_misses[*i]) { (grouped(map.conflict_misses[*i])) }
                                td.n data-v=(map.lines[*i]) { (grouped(map.lines[*i])) }
                            }
                        }
                    }
                    tfoot {
                        @if !rest.is_empty() {
                            tr { th.n scope="row" { "others (" (counted(rest.len() as u64, "set")) ")" } td.n { (grouped(sum_of(rest, &map.misses))) } td.n { (grouped(sum_of(rest, &map.conflict_misses))) } td.n { (grouped(sum_of(rest, &map.lines))) } }
                        }
                        tr { th.n scope="row" { "total" } td.n { (grouped(total(&map.misses))) } td.n { (grouped(total(&map.conflict_misses))) } td.n { (grouped(total(&map.lines))) } }
                    }
                }
            }
        }
    }
}
