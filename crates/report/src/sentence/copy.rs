//! The sign of cache-polluting copies: a function with far more misses than references (P1).

use super::{Candidate, Cause, function_phrase, outermost, top_function};
use crate::levels::{level, misses, references};
use crate::load::Report;
use crate::number::{percentage, spoken_percent};
use nearmiss_record::model::{MissClass, Tally};

/// Least share of the misses.
const LEAST_MISS_PERCENT: f64 = 25.0;
/// Least multiple of the share of the references.
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
    // The outermost level's own pollution: blame of inner levels would count one loss several times.
    let own_victims =
        model.blame.iter().filter(|b| b.cache == at.name && b.evictor == row.name && b.victim != row.name);
    let blamed: u64 = own_victims.map(|b| b.misses).sum();
    let text = format!(
        "what {} pushed out of {} with lines that it never used again: it has {} of the misses there but {} of the references",
        function_phrase(row),
        at.name,
        spoken_percent(count, all_misses),
        spoken_percent(references(&row.tally), references(&model.totals)),
    );
    let cycles = (blamed as f64 * at.penalty_cycles as f64 * model.machine.shown_share()).round() as u64;
    Some(Candidate { cause: Cause::Copy, text, cycles, worth: cycles as f64 })
}
