//! The miss-ratio curve: how many references would miss a cache of another size.

use super::Section;
use crate::load::Report;
use crate::number::{grouped, miss_ratio, percentage};
use crate::plot::chart::{Plot, Tick, pct, ticks_to};
use maud::html;
use nearmiss_record::units::Bytes;

pub(super) fn section(report: &Report) -> Option<Section> {
    let curve = report.model.curve.as_ref()?;
    let points: Vec<(u64, u64)> = curve.points.iter().copied().filter(|(bytes, _)| *bytes > 0).collect();
    let (first, last) = (points.iter().map(|p| p.0).min()?, points.iter().map(|p| p.0).max()?);
    let (low, high) = ((first as f64).log2(), (last as f64).log2());
    let x = |bytes: u64| if high > low { ((bytes as f64).log2() - low) * 100.0 / (high - low) } else { 50.0 };
    let ratio = |count: u64| percentage(count, curve.references);
    let shown = |count: u64| miss_ratio(count, curve.references);
    let highest = points.iter().map(|p| ratio(p.1)).fold(0.0, f64::max).max(0.001);
    let (y_ticks, end) = ticks_to(highest, |v| format!("{}%", (v * 1000.0).round() / 1000.0));
    let y = |count: u64| 100.0 - ratio(count) * 100.0 / end;
    let label = |(bytes, count): (u64, u64)| {
        format!("{}: {} of references miss ({})", Bytes(bytes), shown(count), grouped(count))
    };
    let path: Vec<String> = points.iter().map(|p| format!("{:.3},{:.3}", x(p.0), y(p.1))).collect();
    let sizes: Vec<_> =
        report.levels.iter().filter_map(|l| Some((l, l.size?.0))).filter(|(_, s)| (first..=last).contains(s)).collect();
    let marks = html! {
        @for (_, size) in &sizes { line.size x1=(pct(x(*size))) x2=(pct(x(*size))) y1="0" y2="100%" {} }
        svg viewBox="0 0 100 100" width="100%" height="100%" preserveAspectRatio="none" { polyline.curve points=(path.join(" ")) {} }
        @for (level, size) in &sizes { text.size x=(pct(x(*size))) y="1em" dx="4" { (level.name) } }
        @for p in &points { circle data-v=(label(*p)) cx=(pct(x(p.0))) cy=(pct(y(p.1))) r="5" {} }
    };
    let step = (((high - low) / 6.0).ceil() as usize).max(1);
    let x_ticks = (low.ceil() as u32..=high as u32)
        .step_by(step)
        .map(|n| Tick { at: x(1 << n.min(63)), label: Bytes(1 << n.min(63)).to_string() })
        .collect();
    let body = html! {
        p { "Modelled: fully associative least-recently-used data caches of every size, from one pass over " (grouped(curve.references)) " references; "
            @if curve.exact { "exact." } @else { b { "approximate" } ", see the notes." } " Vertical lines: the machine's caches." }
        (Plot { alt: "Miss ratio against cache size.", x_title: "cache size (bytes, logarithmic)", y_title: "references that miss (%)", x_ticks, y_ticks, height: 220, marks, hint: "Point at a dot, or use the arrow keys." }.draw())
        details {
            summary { "Table: misses by cache size" }
            div.scroll tabindex="0" role="region" aria-label="Misses by cache size" {
                table data-sort {
                    thead { tr { th.n scope="col" { "cache size" } th.n scope="col" { "misses" } th.n scope="col" { "of references" } } }
                    tbody { @for (bytes, count) in &points { tr { td.n data-v=(bytes) { (Bytes(*bytes)) } td.n data-v=(count) { (grouped(*count)) } td.n data-v=(count) { (shown(*count)) } } } }
                }
            }
        }
    };
    Section::new("curve", "Misses over cache sizes", body)
}
