//! Copies that go past the CPU's caches.

mod advice;
mod apply;
mod detect;
mod finding;
mod group;
mod locate;
mod replays;
mod sight;
mod site;
mod way;

pub use apply::{Copies, MOST_SITES, Options, Report, SiteReport, apply};
pub(super) use apply::{abilities, engage};
pub(super) use detect::detect;
pub use site::{Place, Site};
