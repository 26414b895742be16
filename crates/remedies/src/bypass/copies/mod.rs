//! Copies that go past the CPU's caches.

mod advice;
mod apply;
mod blame;
mod costs;
mod detect;
mod every;
mod find;
mod finding;
mod group;
mod live;
mod locate;
mod reread;
mod sight;
mod site;
mod way;

pub use apply::{Copies, MOST_SITES, Options, Report, SiteReport, apply};
pub(super) use apply::{RECORD, RECORD_OF_EVERY_COPY, abilities, engage, engage_every_copy};
pub(super) use detect::detect;
pub use site::{CodeLocation, Site};

use nearmiss_analysis::CaseError;
use nearmiss_analysis::Traced;
use nearmiss_record::policy::Policy;

/// The policy under which the copies of these sites go past the caches; refuses a site where nothing in the run copies,
/// and a run with a trace that does not carry stores.
pub fn past_the_caches(case: &Traced, sites: &[Site]) -> Result<Policy, CaseError> {
    nearmiss_machine::describe::can_go_around(case.filter, case.machine()).map_err(CaseError::Unfit)?;
    Ok(costs::policy(&finding::named(case, sites)?))
}
