//! Whether page faults cost a command enough, and whether freed memory comes back by them.

use super::finding::Keep;
use super::seen::Seen;
use nearmiss_analysis::{Case, CaseError, PageFaults, Suspicions, Traced};
use nearmiss_record::finding::LEAST_GAIN;
use nearmiss_record::model::ModelRecord;

/// Functions of glibc that give all spare memory back: the call, and its work, where symbols have it.
const TRIMS: [&str; 4] = ["malloc_trim", "__malloc_trim", "mtrim", "mtrim.isra.0"];

/// Freed memory that comes back, as one suspicion. The run is replayed once if that could matter.
pub fn detect(case: &Case) -> Result<Suspicions, CaseError> {
    let case = case.traced()?;
    if !case.filter.heap || trims(&case.model) || (most_saved(case) < LEAST_GAIN && !case.thorough) {
        return Ok(Vec::new());
    }
    let seen = Seen::of(case)?;
    Ok(if seen.pages_again() == 0 { Vec::new() } else { vec![Box::new(Keep::new(seen))] })
}

/// Whether the program gives memory back by a call of its own, which no setting of the allocator keeps it from.
fn trims(model: &ModelRecord) -> bool {
    model.functions.iter().any(|row| gives_back(row.kernel, &row.name))
}

fn gives_back(kernel: bool, function: &str) -> bool {
    !kernel && TRIMS.contains(&function)
}

/// Share of the cycles that all page faults of new memory take.
fn most_saved(case: &Traced) -> f64 {
    let faults = PageFaults::of(&case.model);
    let beyond = faults.beyond_cycles();
    let all = faults.cycles.max(faults.each_cycles * faults.one_by_one) + beyond;
    all as f64 / (case.model.totals.cycles + beyond).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_trims_is_seen_by_its_call() {
        assert!(gives_back(false, "malloc_trim"));
        assert!(!gives_back(false, "malloc") && !gives_back(true, "malloc_trim"));
    }
}
