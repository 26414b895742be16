//! One observation: start the instruments, let the target run, stop, name what was found, classify the run.

mod cached;
mod capabilities;
mod classify;
mod clock;
mod instruments;
mod live;
mod log;
mod observation;
mod options;
mod outcome;
mod phases;
mod served;
mod tables;
mod timeline;
mod wait_costs;

pub use capabilities::{Capability, capabilities};
pub use classify::classify;
pub use live::{Live, Snapshot};
pub use observation::observe;
pub use options::{DEFAULT_FREQUENCY_HZ, InstrumentSet, Options, Target};
pub use outcome::Outcome;
pub use tables::write_tables;

/// Why there is no observation.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// The command could not be started or waited for.
    #[error("{0}")]
    Workload(#[from] nearmiss_workload::Error),
    /// A server could not be put under its load.
    #[error(transparent)]
    Serving(#[from] nearmiss_workload::ServingError),
    /// None of the requested instruments works here.
    #[error("none of the requested instruments works here: {0}; `nearmiss doctor` lists what would help")]
    NothingWorks(String),
    /// An event name or target that makes no sense.
    #[error(transparent)]
    Perf(#[from] crate::perf::PerfError),
    /// Reading the kernel's counts failed.
    #[error(transparent)]
    Bpf(#[from] crate::bpf::BpfError),
    /// A log or table could not be written.
    #[error(transparent)]
    Log(#[from] nearmiss_record::logs::LogError),
}
