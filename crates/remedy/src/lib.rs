//! Remedies. Each is one folder with the same four verbs: *detect* evidence in a run,
//! *rehearse* the run under a changed policy, *apply* the policy to a live command from
//! outside, and *undo* it.
//!
//! What is here applies a remedy: it takes a described command and gives back the command
//! under the remedy together with an [`Engagement`], which afterwards says whether the
//! remedy was in place and what it did.

pub mod color;
mod engagement;
mod registry;
mod wrap;

pub use engagement::{CannotEngage, Engagement, NotEngaged};
pub use registry::{REMEDIES, Remedy, Undo, by_name};
pub use wrap::{Wrapped, wrap};
