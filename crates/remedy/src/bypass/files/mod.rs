//! Files that leave nothing in the page cache.

mod apply;
mod report;

pub use apply::{Eyes, Files, Options, apply};
pub(super) use apply::{abilities, engage};
pub use report::{LeftAlone, Report};
