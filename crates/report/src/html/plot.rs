//! Pictures with axes: marks in percent of the plot's area, so that they stretch while text keeps its size.

use crate::number::scaled;
use maud::{Markup, html};

/// A labelled place on an axis.
pub(super) struct Tick {
    /// Where, in percent of the axis.
    pub at: f64,
    /// What it says.
    pub label: String,
}

/// A picture.
pub(super) struct Plot<'a> {
    /// Said instead of the picture.
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
    /// Said before anything is pointed at.
    pub hint: &'a str,
}

impl Plot<'_> {
    /// The picture with its axes and the line that reads marks out.
    pub(super) fn draw(self) -> Markup {
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

/// A percentage as CSS and SVG write it.
pub(super) fn pct(value: f64) -> String {
    format!("{value:.3}%")
}

/// Four or five round ticks from 0 to at least `max`, and the end of the axis.
pub(super) fn round_ticks(max: f64, label: impl Fn(f64) -> String) -> (Vec<Tick>, f64) {
    let rough = max.max(f64::MIN_POSITIVE) / 4.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|m| m * power).find(|s| *s >= rough * 0.999).unwrap_or(rough);
    let steps = (max / step).ceil().clamp(1.0, 8.0);
    let end = steps * step;
    let ticks = (0..=steps as u32)
        .map(|i| Tick { at: f64::from(i) * 100.0 / steps, label: label(f64::from(i) * step) })
        .collect();
    (ticks, end)
}

/// Round ticks for a count.
pub(super) fn count_ticks(max: u64) -> (Vec<Tick>, f64) {
    // Steps below one would repeat labels.
    round_ticks((max as f64).max(4.0), |v| scaled(v.round() as u64))
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
