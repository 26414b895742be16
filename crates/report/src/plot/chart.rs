//! Charts of a page: marks in percent of the plot's area, so that they stretch while text keeps its size.

use super::axis::round_ticks;
use crate::number::scaled;
use maud::{Markup, html};

/// A labelled place on an axis.
pub(crate) struct Tick {
    /// Place, in percent of the axis.
    pub at: f64,
    /// Text of the label.
    pub label: String,
}

/// A picture.
pub(crate) struct Plot<'a> {
    /// Text in place of the picture.
    pub alt: &'a str,
    /// Name and unit of the horizontal axis.
    pub x_title: &'a str,
    /// Name and unit of the vertical axis.
    pub y_title: &'a str,
    /// Labels below.
    pub x_ticks: Vec<Tick>,
    /// Labels on the left.
    pub y_ticks: Vec<Tick>,
    /// Height of the area in pixels.
    pub height: u32,
    /// SVG content; elements with `data-v` are marks that hover and arrow keys read out.
    pub marks: Markup,
    /// Text before anything is pointed at.
    pub hint: &'a str,
}

impl Plot<'_> {
    /// The picture with its axes and the line that reads marks out.
    pub(crate) fn draw(self) -> Markup {
        html! {
            div.plot {
                div.ytitle { (self.y_title) }
                div.ylabels style={ "height:" (self.height) "px" } aria-hidden="true" {
                    @for tick in &self.y_ticks { span style={ "bottom:" (pct(tick.at)) } { (tick.label) } }
                }
                div.area data-chart tabindex="0" role="group" aria-label={ (self.alt) " Arrow keys read the values; a table follows." } {
                    svg width="100%" height=(self.height) aria-hidden="true" {
                        @for tick in &self.y_ticks {
                            line.grid x1="0" x2="100%" y1=(pct(100.0 - tick.at)) y2=(pct(100.0 - tick.at)) {}
                        }
                        (self.marks)
                    }
                }
                div.xlabels aria-hidden="true" {
                    @for tick in &self.x_ticks { span.first[tick.at < 4.0].last[tick.at > 96.0] style={ "left:" (pct(tick.at)) } { (tick.label) } }
                }
                div.xtitle { (self.x_title) }
            }
            output.readout aria-live="polite" { (self.hint) }
        }
    }
}

/// Returns a percentage in the syntax of CSS and SVG.
pub(crate) fn pct(value: f64) -> String {
    format!("{value:.3}%")
}

/// Four or five round ticks from 0 to at least `max`, and the end of the axis.
pub(crate) fn ticks_to(max: f64, label: impl Fn(f64) -> String) -> (Vec<Tick>, f64) {
    let values = round_ticks(0.0, max, 4.0);
    let end = values.last().copied().unwrap_or(max);
    (values.into_iter().map(|value| Tick { at: value * 100.0 / end, label: label(value) }).collect(), end)
}

/// Round ticks for a count.
pub(crate) fn count_ticks(max: u64) -> (Vec<Tick>, f64) {
    // Steps below one would repeat labels.
    ticks_to((max as f64).max(4.0), |v| scaled(v.round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_reach_the_largest_value() {
        let (ticks, end) = count_ticks(467_000);
        assert_eq!(ticks.iter().map(|t| t.label.as_str()).collect::<Vec<_>>(), ["0", "200 k", "400 k", "600 k"]);
        assert_eq!(end, 600_000.0);
        assert_eq!(count_ticks(0).0.len(), 5);
        assert_eq!(count_ticks(u64::MAX).0.last().map(|t| t.at), Some(100.0));
    }
}
