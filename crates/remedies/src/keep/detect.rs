//! Whether page faults cost a command enough, and whether freed memory comes back by them.

use super::finding::Keep;
use super::price::Price;
use super::reusable_pages::ReusablePages;
use nearmiss_analysis::{Case, CaseError, PageFaults, Suspicions, Traced};
use nearmiss_record::finding::LEAST_GAIN;

/// Freed memory that comes back, as one suspicion. The run is replayed once if that could matter.
pub fn detect(case: &Case) -> Result<Suspicions, CaseError> {
    let case = case.traced()?;
    if !case.filter.heap || (most_saved(case) < LEAST_GAIN && !case.thorough) {
        return Ok(Vec::new());
    }
    let reusable = ReusablePages::of(case)?;
    Ok(if reusable.pages_again() == 0 { Vec::new() } else { vec![Box::new(Keep::new(reusable))] })
}

/// Share of the cycles that all page faults of new memory take.
fn most_saved(case: &Traced) -> f64 {
    let (faults, price) = (PageFaults::of(&case.model), Price::of(case));
    let all = faults.cycles.max(faults.each_cycles * faults.one_by_one) + faults.beyond_cycles();
    price.share(1, all as f64)
}
