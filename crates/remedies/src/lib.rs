//! Remedies. Each is one folder with the same four verbs: *detect* evidence in a run,
//! *rehearse* the run under a changed policy, *apply* the policy to a live command from
//! outside, and *undo* it.
//!
//! A [`Remedy`](nearmiss_analysis::Remedy) is one definition in its folder and one line in the registry; everything
//! else loops over the registry.

pub mod apart;
pub mod bypass;
pub mod color;
mod command_line;
mod exactness;
mod follow;
mod host_line;
pub mod huge;
pub mod keep;
pub mod layout;
pub mod local;
pub mod pace;
pub mod pair;
pub mod preload;
mod registry;
mod size;

pub use registry::REMEDIES;
