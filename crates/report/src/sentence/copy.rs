//! The tell-tale of cache-polluting copies: a function with far more misses than references (P1).

use super::{Candidate, Cause, function_phrase, outermost, top_function, weigh};
use crate::levels::{level, misses, references};
use crate::load::Report;
use crate::number::{percentage, spoken_percent};
use nearmiss_record::model::{MissClass, Tally};

/// From this share of the misses on.
const LEAST_MISS_PERCENT: f64 = 25.0;
/// And this many times the share of the references.
const LEAST_RATIO: f64 = 4.0;

pub(super) fn candidate(report: &Report) -> Option<Candidate> {
    let model = &report.model;
    let at = outermost(report)?;
    let (row, count) = top_function(model, |t: &Tally| misses(t, at.index))?;
    let all_misses = misses(&model.totals, at.index);
    let share = percentage(count, all_misses);
    let reference_share = percentage(references(&row.tally), references(&model.totals));
    if share < LEAST_MISS_PERCENT || share < LEAST_RATIO * reference_share {
        return None;
    }
    // Lines that crowd on sets or move between CPUs have causes of their own.
    let own = level(&row.tally, at.index);
    let streaming = [MissClass::Compulsory, MissClass::Capacity].map(|c| own.class(c)).iter().sum::<u64>();
    if streaming.saturating_mul(2) < count {
        return None;
    }
    let mut phrase = function_phrase(row);
    if let Some(lower) = phrase.strip_prefix("the ") {
        phrase = format!("The {lower}");
    }
    // The outermost level's own pollution: blame of inner levels would count one loss several times.
    let blamed: u64 = model
        .blame
        .iter()
        .filter(|b| b.cache == at.name && b.evictor == row.name && b.victim != row.name)
        .map(|b| b.misses)
        .sum();
    let pollution = if blamed.saturating_mul(20) >= all_misses {
        format!(
            "; lines it brought in and never used again pushed out what makes another {}",
            spoken_percent(blamed, all_misses)
        )
    } else {
        String::new()
    };
    let first = own.class(MissClass::Compulsory);
    let first = if first.saturating_mul(10) >= count.saturating_mul(9) { ", nearly all first touches" } else { "" };
    let text = format!(
        "{phrase} has {} of {} misses but {} of the references{first}{pollution}.",
        spoken_percent(count, all_misses),
        at.name,
        spoken_percent(references(&row.tally), references(&model.totals)),
    );
    Some(Candidate { cause: Cause::Copy, text, weight: weigh(count, at.penalty_cycles) * 0.8 })
}
