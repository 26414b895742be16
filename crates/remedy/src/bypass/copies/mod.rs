//! Copies that go past the CPU's caches.

mod apply;
mod site;

pub use apply::{Copies, MOST_SITES, Options, Report, SiteReport, apply};
pub(super) use apply::{abilities, engage};
pub use site::{Place, Site};
