//! Remedies. Each is one folder with the same four verbs: *detect* evidence in a run,
//! *rehearse* the run under a changed policy, *apply* the policy to a live command from
//! outside, and *undo* it.
//!
//! A [`Remedy`] is one definition in its folder and one line in the registry; everything else loops over the registry.
//! Detection looks at a [`Case`], a traced run, an observed one or both, and gives [`Suspicion`]s; each rehearses
//! itself by replaying the run, and becomes a finding or a table. Applying takes a described command and gives back the
//! command under the remedy together with an [`Engagement`], which afterwards reports whether the remedy was in place
//! and what it did.

pub mod apart;
pub mod bypass;
mod case;
pub mod color;
mod contract;
mod engagement;
mod follow;
mod large_pages;
pub mod local;
pub mod pace;
pub mod pair;
mod parts;
pub mod preload;
mod registry;
mod rehearsal;
mod replay;
mod size;
mod traced;
mod translation;
mod unrehearsed;
mod wrap;

pub use case::{Case, Needs};
pub use contract::{Ability, Applied, Asked, Help, Inability, Parameter, Remedy, Suspicion, Suspicions, Value};
pub use engagement::{Acts, CannotEngage, Engaged, Engagement, NotEngaged};
pub use large_pages::{lacks_look_ups, large_pages};
pub use registry::REMEDIES;
pub use rehearsal::{Cost, PLACEMENTS, rehearse, rehearse_each, rehearse_in, seeds, spread};
pub use replay::{CaseError, Replayed, header, replay};
pub use traced::{Evidence, Recorded, Traced, names};
pub use wrap::{Wrapped, wrap};
