//! Figures of a paper: SVG that stands alone, readable on light and on dark pages, every mark with its value as a title.

use super::axis::round_ticks;
use maud::{Markup, PreEscaped, html};

/// How a panel draws its series.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Marks {
    /// Bars side by side.
    Bars,
    /// Bars on top of one another.
    Stack,
    /// Dots with lines between.
    Lines,
}

/// Values over the panel's places.
pub struct Series {
    /// Name for the legend.
    pub name: String,
    /// Values, one a place.
    pub values: Vec<f64>,
    /// The paper's values, where it gives a number.
    pub paper: Vec<Option<f64>>,
    /// Place from which on something holds; marked with a ring.
    pub from: Option<usize>,
}

impl Series {
    /// Makes a series without the paper's values.
    pub fn new(name: impl Into<String>, values: Vec<f64>) -> Self {
        Series { name: name.into(), paper: vec![None; values.len()], values, from: None }
    }
}

/// One pair of axes.
pub struct Panel {
    /// Title above the panel.
    pub title: String,
    /// Name and unit.
    pub x_title: String,
    /// Name and unit.
    pub y_title: String,
    /// Places; `\n` breaks.
    pub places: Vec<String>,
    /// How.
    pub marks: Marks,
    /// Series: at most three.
    pub series: Vec<Series>,
}

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 62.0;
const BOTTOM: f64 = 62.0;
const HEAD: f64 = 34.0;
const FOOT: f64 = 26.0;

const STYLE: &str = "
svg{--bg:#fff;--fg:#1b1f24;--grid:#d5dae0;--s0:#1f5fc4;--s1:#b8520a;--s2:#0b7a5c;font:12px system-ui,sans-serif}
@media (prefers-color-scheme:dark){svg{--bg:#15181c;--fg:#e6e9ed;--grid:#3a4149;--s0:#7fb0ff;--s1:#ffab5e;--s2:#5fd3ae}}
.bg{fill:var(--bg)}text{fill:var(--fg)}.t{font-weight:600}.h{font-weight:600;font-size:14px}
.g{stroke:var(--grid);stroke-width:1}.z{stroke:var(--fg);stroke-width:1}
.s0{--c:var(--s0)}.s1{--c:var(--s1)}.s2{--c:var(--s2)}
.b{fill:var(--c);stroke:var(--bg);stroke-width:1}.l{fill:none;stroke:var(--c);stroke-width:2}
.s1 .l{stroke-dasharray:7 3}.s2 .l{stroke-dasharray:2 3}.d{fill:var(--c)}
.r{fill:none;stroke:var(--fg);stroke-width:1.5}.p{fill:var(--bg);stroke:var(--fg);stroke-width:1.5}
";

/// Least and most of an axis that has zero, and its ticks.
fn axis(values: impl Iterator<Item = f64>) -> (f64, f64, Vec<f64>) {
    let (low, high) = values.fold((0.0_f64, 0.0_f64), |(low, high), v| (low.min(v), high.max(v)));
    let ticks = round_ticks(low, high, 5.0);
    (ticks.first().copied().unwrap_or(low), ticks.last().copied().unwrap_or(high), ticks)
}

/// A number without needless digits.
fn short(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn at(value: f64) -> String {
    format!("{value:.1}")
}

struct Frame {
    x0: f64,
    low: f64,
    high: f64,
    slot: f64,
}

impl Frame {
    fn y(&self, value: f64) -> f64 {
        HEAD + TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - (value - self.low) / (self.high - self.low))
    }

    fn middle(&self, place: usize) -> f64 {
        self.x0 + LEFT + self.slot * (place as f64 + 0.5)
    }
}

/// A whole picture: panels side by side, a title above, a note below.
pub fn picture(title: &str, note: &str, panels: &[Panel]) -> String {
    let columns = panels.len().clamp(1, 2);
    let rows = panels.len().div_ceil(columns).max(1);
    let width = WIDTH * columns as f64;
    let height = HEAD + HEIGHT * rows as f64 + FOOT;
    let placed = panels.iter().enumerate().map(|(i, panel)| {
        let shift = HEIGHT * (i / columns) as f64;
        html! { g transform=(format!("translate(0 {shift})")) { (draw(panel, WIDTH * (i % columns) as f64)) } }
    });
    let svg = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {width} {height}")) width=(width) height=(height) role="img" aria-label=(title) {
            style { (PreEscaped(STYLE)) }
            rect.bg width="100%" height="100%" {}
            text.h x="12" y="22" { (title) }
            @for panel in placed { (panel) }
            text x="12" y=(at(height - 10.0)) { (note) }
        }
    };
    svg.into_string()
}

fn draw(panel: &Panel, x0: f64) -> Markup {
    let places = panel.places.len();
    let stacked = |place: usize| panel.series.iter().filter_map(|s| s.values.get(place)).sum::<f64>();
    let all: Vec<f64> = if panel.marks == Marks::Stack {
        (0..places).map(stacked).collect()
    } else {
        panel.series.iter().flat_map(|s| s.values.iter().copied().chain(s.paper.iter().flatten().copied())).collect()
    };
    let (low, high, ticks) = axis(all.into_iter());
    let frame = Frame { x0, low, high, slot: (WIDTH - LEFT - RIGHT) / places.max(1) as f64 };
    let (left, right, bottom) = (x0 + LEFT, x0 + WIDTH - RIGHT, HEAD + HEIGHT - BOTTOM);
    let middle = HEAD + TOP + (HEIGHT - TOP - BOTTOM) / 2.0;
    html! {
        text.t x=(at(left)) y=(at(HEAD + 18.0)) { (panel.title) }
        @for tick in &ticks {
            line.g.z[tick.abs() < 1e-9] x1=(at(left)) x2=(at(right)) y1=(at(frame.y(*tick))) y2=(at(frame.y(*tick))) {}
            text x=(at(left - 6.0)) y=(at(frame.y(*tick) + 4.0)) text-anchor="end" { (short(*tick)) }
        }
        text transform=(format!("translate({:.1} {:.1}) rotate(-90)", x0 + 14.0, middle)) text-anchor="middle" { (panel.y_title) }
        text x=(at((left + right) / 2.0)) y=(at(bottom + 50.0)) text-anchor="middle" { (panel.x_title) }
        @for (i, place) in panel.places.iter().enumerate() {
            @for (row, line) in place.split('\n').enumerate() {
                text x=(at(frame.middle(i))) y=(at(bottom + 16.0 + 14.0 * row as f64)) text-anchor="middle" { (line) }
            }
        }
        (legend(panel, left))
        @match panel.marks {
            Marks::Lines => (lines(panel, &frame)),
            Marks::Bars | Marks::Stack => (bars(panel, &frame)),
        }
    }
}

fn legend(panel: &Panel, left: f64) -> Markup {
    let mut x = left;
    let mut entries = Vec::new();
    for (i, series) in panel.series.iter().enumerate() {
        entries.push((i, x, &series.name));
        x += 30.0 + 6.6 * series.name.chars().count() as f64;
    }
    let y = HEAD + 40.0;
    html! {
        @for (i, x, name) in entries {
            g class=(format!("s{i}")) {
                @if panel.marks == Marks::Lines {
                    line.l x1=(at(x)) x2=(at(x + 18.0)) y1=(at(y - 4.0)) y2=(at(y - 4.0)) {}
                } @else {
                    rect.b x=(at(x + 4.0)) y=(at(y - 10.0)) width="11" height="11" {}
                }
                text x=(at(x + 22.0)) y=(at(y)) { (name) }
            }
        }
    }
}

fn label(panel: &Panel, series: &Series, place: usize, value: f64) -> String {
    format!("{}, {}: {:.2} ({})", series.name, panel.places[place].replace('\n', " "), value, panel.y_title)
}

fn diamond(x: f64, y: f64, text: &str) -> Markup {
    let points = format!("{x:.1},{:.1} {:.1},{y:.1} {x:.1},{:.1} {:.1},{y:.1}", y - 6.0, x + 6.0, y + 6.0, x - 6.0);
    html! { polygon.p points=(points) { title { "paper: " (text) } } }
}

fn lines(panel: &Panel, frame: &Frame) -> Markup {
    html! {
        @for (i, series) in panel.series.iter().enumerate() {
            @let dots: Vec<_> = series.values.iter().enumerate().map(|(p, v)| (p, frame.middle(p), frame.y(*v), *v)).collect();
            @let path = dots.iter().map(|(_, x, y, _)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ");
            g class=(format!("s{i}")) {
                polyline.l points=(path) {}
                @for (place, x, y, value) in &dots {
                    circle.d cx=(at(*x)) cy=(at(*y)) r="4" { title { (label(panel, series, *place, *value)) } }
                    @if series.from == Some(*place) { circle.r cx=(at(*x)) cy=(at(*y)) r="8" {} }
                }
            }
            @for (place, theirs) in series.paper.iter().enumerate() {
                @if let Some(value) = theirs { (diamond(frame.middle(place), frame.y(*value), &label(panel, series, place, *value))) }
            }
        }
    }
}

fn bars(panel: &Panel, frame: &Frame) -> Markup {
    let stacked = panel.marks == Marks::Stack;
    let side = if stacked { 1 } else { panel.series.len().max(1) };
    let width = frame.slot * 0.7 / side as f64;
    let mut marks = Vec::new();
    for place in 0..panel.places.len() {
        let mut base = 0.0;
        for (i, series) in panel.series.iter().enumerate() {
            let Some(&value) = series.values.get(place) else { continue };
            let x = frame.middle(place) + if stacked { -0.5 } else { i as f64 - side as f64 / 2.0 } * width;
            let (top, foot) = (frame.y((base + value).max(base)), frame.y((base + value).min(base)));
            let text = label(panel, series, place, value);
            marks.push(html! {
                g class=(format!("s{i}")) {
                    rect.b x=(at(x)) y=(at(top)) width=(at(width)) height=(at((foot - top).max(0.5))) { title { (text) } }
                }
            });
            if let Some(Some(theirs)) = series.paper.get(place) {
                marks.push(diamond(x + width / 2.0, frame.y(*theirs), &label(panel, series, place, *theirs)));
            }
            if stacked {
                base += value;
            }
        }
    }
    html! { @for mark in &marks { (mark) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!([2.0, 0.5, -20.0, 1.25].map(short), ["2", "0.5", "-20", "1.25"]);
    }
}
