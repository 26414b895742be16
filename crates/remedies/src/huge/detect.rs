//! Whether walks to small pages and first touches could cost a command enough.

use super::finding::Huge;
use super::price::Price;
use super::walks_and_touches::WalksAndTouches;
use nearmiss_analysis::{Case, CaseError, PageFaults, Suspicions, Traced};
use nearmiss_record::finding::LEAST_GAIN;

/// All memory that could lie in large pages, as one suspicion. The run is replayed once if that could matter.
pub fn detect(case: &Case) -> Result<Suspicions, CaseError> {
    let case = case.traced()?;
    if most_saved(case) < LEAST_GAIN && !case.thorough {
        return Ok(Vec::new());
    }
    let Some(seen) = WalksAndTouches::of(case)?.filter(|seen| seen.walks.all.blocks > 0) else { return Ok(Vec::new()) };
    Ok(vec![Box::new(Huge::new(seen))])
}

/// Share of the cycles that all look-ups take which miss the first level, as if nothing hid them, and all page faults.
fn most_saved(case: &Traced) -> f64 {
    let look_ups = || Some((case.model.translation?, case.machine().tlb?, case.machine().tlb?.second?));
    let Some((counts, tlb, second)) = look_ups() else { return 0.0 };
    let walks = counts.walks.saturating_mul(second.walk_cycles.into());
    let look_ups = counts.first_misses.saturating_mul(tlb.miss_cycles.into()).saturating_add(walks);
    let price = Price::of(PageFaults::of(&case.model), &case.machine().memory);
    let cycles = case.model.totals.cycles.saturating_add(price.beyond_model()).max(1);
    (look_ups as f64 + price.all()) / cycles as f64
}
