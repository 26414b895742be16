//! How long the rest of a lab takes, from what its cells have taken so far.

use crate::Ended;
use crate::case::MatrixCase;
use crate::rounds::EndedCells;
use nearmiss_verify::summary;
use std::time::Duration;

/// The median of what the cells took, in seconds: of the case, or where it had none yet of its workload, or of all.
/// None: nothing has ended yet.
pub(crate) fn expected_s(case: &MatrixCase, workload: &str, ended: &EndedCells) -> Option<f64> {
    let median = |of: &dyn Fn(&&Ended) -> bool| {
        summary(ended.values().filter(of).map(|cell| cell.took_s).collect()).map(|summary| summary.median)
    };
    median(&|cell| cell.case == case.name)
        .or_else(|| median(&|cell| cell.workload == workload))
        .or_else(|| median(&|_| true))
}

/// Seconds of the lab for a second of its cells, so far: more than one where the lab waits for others between cells, less
/// where several cells run at a time. One before anything has ended.
pub(crate) fn pace(spent: Duration, took_s: f64) -> f64 {
    if took_s > 0.0 { spent.as_secs_f64() / took_s } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_the_pace_so_far() {
        let near = |pace: f64, expected: f64| assert!((pace - expected).abs() < 1e-9);
        near(pace(Duration::ZERO, 0.0), 1.0);
        near(pace(Duration::from_secs(5), 20.0), 0.25);
        near(pace(Duration::from_secs(30), 20.0), 1.5);
    }
}
