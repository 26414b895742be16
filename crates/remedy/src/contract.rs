//! What every remedy can be asked, besides being applied.

use crate::case::Case;
use crate::replay::CaseError;
use nearmiss_record::finding::Finding;
use nearmiss_record::rehearsal::Rehearsal;

/// Something in a run that a remedy may help with; not yet rehearsed.
pub trait Suspicion: Sync {
    /// Share of the command's modelled cycles that could be saved at the very most.
    fn most_gain(&self) -> f64;

    /// Rehearses the remedy on the run, under several page placements, and says all there is to say.
    fn finding(&self, case: &Case) -> Result<Finding, CaseError>;

    /// The table of the remedy's parameters; those it thinks worth trying, unless they are given.
    fn rehearse(&self, case: &Case, parameters: &[u64]) -> Result<Rehearsal, CaseError>;
}

/// Looks for what a remedy may help with.
pub type Detect = fn(&Case) -> Result<Vec<Box<dyn Suspicion>>, CaseError>;
