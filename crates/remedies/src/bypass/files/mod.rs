//! Files that leave nothing in the page cache.

mod after_kill;
mod apply;
mod detect;
mod finding;
mod report;

pub use apply::{Eyes, Files, Options, apply};
pub(super) use apply::{abilities, engage};
pub(super) use detect::detect;
pub(super) use report::RECORD;
pub use report::{LeftAlone, Report};
