//! A verdict on recordings: figures are counted, so the ranges show what is known.

use super::{change, four_digits};
use crate::name::plain;
use nearmiss_record::verdict::{Comparison, Outcome, Summary, Verdict};

pub(super) fn how_many(verdict: &Verdict) -> String {
    format!("modelled in {} recordings a side", verdict.pairs)
}

/// The figures of both sides with their ranges, and by how much the medians differ.
pub(super) fn ranges(comparison: &Comparison, without: &str, with: &str) -> String {
    let side = |side: &Summary| {
        format!("{} [{}, {}]", four_digits(side.median), four_digits(side.least), four_digits(side.largest))
    };
    format!(
        "{}: {} {without}, {} {with}; {}",
        plain(&comparison.metric),
        side(&comparison.without),
        side(&comparison.with),
        change(comparison.ratio)
    )
}

pub(super) fn why(verdict: &Verdict) -> String {
    match verdict.outcome {
        Outcome::Gain | Outcome::Loss => {
            format!(
                "the ranges are apart, which chance makes them in {:.0}% of equal sides",
                verdict.error_rate * 100.0
            )
        }
        Outcome::NoDifference => format!("the ranges overlap, and are within {:.0}%", verdict.resolution * 100.0),
        _ => "the ranges overlap: equal recordings differ by more than the sides do".to_owned(),
    }
}
