//! Snapshots of running processes with CRIU, and their restoration in the guest.
//!
//! [`Snapshot::take`] stops a process for the moment that a copy of its memory takes, and lets it run on.
//! [`Restoration::restore`] resumes the copy in the guest. CRIU is a program that is started, never a library.
//!
//! Nothing is left behind, whoever is killed. The images lie in a file system of their own that has no name on the host
//! ([`images`]), and CRIU outlives this process, so that a dump under way comes to its end.

mod criu;
mod dump;
mod error;
mod files_in_memory;
mod functions;
mod images;
mod memory;
mod narrow;
mod numbers;
mod obstacles;
mod process;
mod restore;
mod sizes;
mod stand_ins;
mod stats;
mod terminal;
mod waiting;
mod wire;

pub use criu::{Criu, Fit};
pub use dump::{Snapshot, SnapshotRequest, has_rights};
pub use error::SnapshotError;
pub use obstacles::{Obstacle, obstacles};
pub use process::Process;
pub use restore::Restoration;
pub use waiting::waits_only;
