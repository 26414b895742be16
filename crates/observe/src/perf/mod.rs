//! Sampling with `perf_event`: no driver, no BPF, and within its limits usable by an ordinary user.

mod count;
mod cpus;
mod event;
mod maps;
mod open;
mod ring;
mod session;
mod symbols;
mod tracefs;
mod unwind;
mod variables;

use crate::rights::Rights;

pub use count::Counters;
pub use event::{EventSpec, Rate, Role, event};
pub use open::{Reach, has_pmu, pmu, try_open};
pub use session::{PerfSession, StackMode};
pub(crate) use symbols::MADE_AT_RUN_TIME;
pub use symbols::Symbolizer;

pub(crate) use maps::AddressSpaces;
pub(crate) use tracefs::attach_to_point;
pub(crate) use unwind::Unwinder;
pub(crate) use variables::Variables;

/// Why sampling cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum PerfError {
    /// An unknown event.
    #[error("event `{0}`: no such event on this machine; `perf list` shows those there are")]
    UnknownEvent(String),
    /// The kernel refused.
    #[error("event `{event}`: {why}")]
    Refused {
        /// Name of the event.
        event: String,
        /// Error of the kernel, and its meaning here.
        why: String,
        /// Error number of the kernel.
        errno: i32,
    },
    /// The target went away or cannot be read.
    #[error("{0}")]
    Target(String),
    /// A system call failed that normally does not.
    #[error("{step}: {source}")]
    System {
        /// Step that failed.
        step: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
}

impl PerfError {
    /// Returns the command that gets past it; empty when there is none.
    pub fn to_enable(&self) -> &'static str {
        match self {
            PerfError::Refused { errno: libc::EACCES | libc::EPERM, .. } => match Rights::now() {
                Rights::UserNamespace => "on the host: sysctl kernel.perf_event_paranoid=1",
                _ => "sysctl kernel.perf_event_paranoid=1, or run as root",
            },
            PerfError::Refused { errno: libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV, .. } => {
                "use a machine with a PMU; or model misses: nearmiss trace -- CMD"
            }
            _ => "",
        }
    }
}
