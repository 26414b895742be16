//! Runs on seeds that were not looked at before all parameters were as they are: other placements of pages, other
//! daemons, and other orders in which threads start.

use super::figures;
use super::goals;
use super::study::{Mixed, SCHEDULERS, Scheduler, Study, by_scheduler};
use super::summary::{changed, judged, mean, most_of_ten, seconds};
use super::tables::{changes_rows, table};
use crate::record::{Row, Table, Theirs, Unit};

/// Target of the fit of the standard's longest of ten runs, in seconds: the saving is this part of it.
const LONGEST_SECONDS: f64 = -100.0 * figures::LONGEST_TIME_SAVED_SECONDS / figures::LONGEST_TIME_CHANGE_PERCENT;

/// Table e.
pub fn held_out(study: &Study, mixes: &[Mixed]) -> Vec<Table> {
    vec![product(study), shared_nothing(mixes)]
}

fn product(study: &Study) -> Table {
    let mut table = table("e1", "The product on seeds that nobody tried", "sections 4.2 and 4.3");
    let [standard, ..] = by_scheduler(study);
    let longest = most_of_ten(standard, &seconds);
    table.rows = changes_rows(study);
    table.rows.push(Row::new("standard", "longest of 10, s", Unit::Count, Theirs::Figure(LONGEST_SECONDS), longest));
    table.rows.extend(SCHEDULERS.iter().zip(&study.runs).enumerate().map(|(at, (scheduler, runs))| {
        let paper = figures::CHANGES.get(at).map_or(Theirs::None, |figure| Theirs::Figure(*figure));
        Row::new(scheduler.name(), "changes of placement a run", Unit::Count, paper, mean(runs, &changed))
    }));
    table.rows.extend(misjudged(study));
    table.shapes = vec![
        goals::near_the_optimum(study),
        goals::under_the_standards_longest(study),
        goals::few_changes(study),
        goals::few_misjudged(study),
    ];
    table.notes.push(
        "All parameters were fixed on the seeds of tables b to d; what they were fitted to is a prediction here."
            .to_owned(),
    );
    table
}

fn misjudged(study: &Study) -> Vec<Row> {
    let papers = [figures::LOW_JUDGED_HIGH_PERCENT, figures::HIGH_JUDGED_LOW_PERCENT];
    let ways = [("do not share, judged high", 0, 0), ("share, judged low", 1, 1)];
    let [_, theirs, ours, _] = by_scheduler(study);
    let of = [(Scheduler::Theirs, theirs), (Scheduler::Ours, ours)];
    let row = |(scheduler, runs): (Scheduler, _), ((what, shares, wrong), paper)| {
        let paper = if scheduler == Scheduler::Theirs { Theirs::Figure(paper) } else { Theirs::None };
        Row::new(scheduler.name(), what, Unit::Percent, paper, judged(runs, shares, wrong))
    };
    of.into_iter().flat_map(|of| ways.into_iter().zip(papers).map(move |way| row(of, way))).collect()
}

fn shared_nothing(mixes: &[Mixed]) -> Table {
    let mut table = table("e2", "Tasks that share nothing, on seeds that nobody tried", "figure 18 (a picture)");
    table.shapes = mixes
        .iter()
        .map(|mixed| {
            let mut goal = goals::no_loss_without_sharing(mixed);
            goal.claim = format!("{}, {}", goal.claim, mixed.machine);
            goal
        })
        .collect();
    table
}
