//! Remedies. Each is one folder with the same four verbs: *detect* evidence in a run,
//! *rehearse* the run under a changed policy, *apply* the policy to a live command from
//! outside, and *undo* it.
//!
//! Detection looks at a [`Case`], a run modelled on a machine, and gives [`Suspicion`]s; each
//! rehearses itself by replaying the run, and becomes a finding or a table. Applying takes a
//! described command and gives back the command under the remedy together with an
//! [`Engagement`], which afterwards says whether the remedy was in place and what it did.

mod case;
pub mod color;
mod contract;
mod engagement;
mod registry;
mod rehearsal;
mod replay;
mod translation;
mod wrap;

pub use case::Case;
pub use contract::{Detect, Suspicion};
pub use engagement::{CannotEngage, Engaged, Engagement, NotEngaged};
pub use registry::{REMEDIES, Remedy, Undo, by_name};
pub use rehearsal::{Cost, PLACEMENTS, rehearse, seeds, spread};
pub use replay::{CaseError, Replayed, header, replay};
pub use wrap::{Wrapped, wrap};
