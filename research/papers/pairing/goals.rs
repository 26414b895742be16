//! Our goals, as the last lines of tables: of the seeds that parameters were tuned on, and of the held-out ones.

use super::study::{Mixed, Study, by_scheduler};
use super::summary::{change, changed, judged, losses, mean, most, seconds};
use crate::record::{Shape, Unit};
use crate::text::figure;

fn goal(claim: &str, holds: bool, ours: String) -> Shape {
    Shape { claim: format!("our goal: {claim}"), holds, ours }
}

/// Goal for run times.
pub fn near_the_optimum(study: &Study) -> Shape {
    let [_, _, ours, optimum] = by_scheduler(study);
    let above = change(mean(ours, &seconds), mean(optimum, &seconds));
    goal("the mean within 2% of the optimum's", above <= 2.0, figure(above, Unit::ChangePercent))
}

/// Goal for run times.
pub fn under_the_standards_longest(study: &Study) -> Shape {
    let [standard, _, ours, _] = by_scheduler(study);
    let longest = change(most(ours, &seconds), most(standard, &seconds));
    let claim = "the longest of all runs at least 12% under the standard's";
    goal(claim, longest <= -12.0, figure(longest, Unit::ChangePercent))
}

/// Goal for placements.
pub fn few_changes(study: &Study) -> Shape {
    let [_, _, ours, _] = by_scheduler(study);
    let changes = mean(ours, &changed);
    let figures = format!("{changes:.1}; the most of a run {:.0}", most(ours, &changed));
    goal("fewer than 5 changes a run", changes < 5.0, figures)
}

/// Goal for pairs.
pub fn few_misjudged(study: &Study) -> Shape {
    let [_, _, ours, _] = by_scheduler(study);
    let wrong = [judged(ours, 0, 0), judged(ours, 1, 1)];
    let figures = wrong.map(|share| figure(share, Unit::Percent)).join(" and ");
    goal("under 2% misjudged each way", wrong.iter().all(|share| *share < 2.0), figures)
}

/// Goal for a machine's mixes of all sizes, the worst of both ways to count a loss.
pub fn no_loss_without_sharing(mixed: &Mixed) -> Shape {
    let worst = |scheduler: usize| {
        let losses = mixed.runs.iter().flat_map(|runs| losses(&runs[scheduler], &runs[0]));
        losses.fold(0.0_f64, f64::max)
    };
    let [theirs, ours] = [1, 2].map(worst);
    let percent = |loss| figure(loss, Unit::ChangePercent);
    let figures = format!("at worst {}; the paper's method {}", percent(ours), percent(theirs));
    goal("ours loses no more than 1%", ours <= 1.0, figures)
}
