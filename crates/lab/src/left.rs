//! How long the rest of a lab takes, from what its cells have taken so far.

use crate::Ended;
use crate::case::Case;
use crate::rounds::EndedCells;
use nearmiss_verify::summary;

/// The median of what the cells took, in seconds: of the case, or where it had none yet of its workload, or of all.
/// None: nothing has ended yet.
pub(crate) fn expected_s(case: &Case, workload: &str, ended: &EndedCells) -> Option<f64> {
    let median = |of: &dyn Fn(&&Ended) -> bool| {
        summary(ended.values().filter(of).map(|cell| cell.took_s).collect()).map(|summary| summary.median)
    };
    median(&|cell| cell.case == case.name)
        .or_else(|| median(&|cell| cell.workload == workload))
        .or_else(|| median(&|_| true))
}
