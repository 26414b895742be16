//! The machine this program runs on: geometry and topology from sysfs, latencies measured by a pointer chase.
//!
//! A description is data, and its meaning is in [`nearmiss_machine::describe`]; this crate measures this host.

mod additions;
mod aliasing;
mod around;
mod assembled;
mod atomics;
mod banks;
mod bounds;
mod calibrate;
mod chains;
mod chase;
mod choice;
mod contended;
mod core;
mod crowded;
mod describe;
mod fetch;
mod latencies;
mod left;
mod measured;
mod offsets;
mod pages;
mod plausible;
mod quiet;
mod settle;
mod share;
mod store;
mod streams;
mod sysfs;
mod touches;
mod turns;

pub use self::core::CoreFigures;
pub use calibrate::{Calibration, calibrate};
pub use describe::describe;
pub use pages::TranslationFigures;
pub use quiet::taken_cpus;
pub use settle::Settled;
pub use streams::StreamFigures;
pub use sysfs::{Found, FoundCache, discover};
pub use touches::TouchFigures;

use nearmiss_machine::describe::{DescribeError, Problem, preset_or_file};
use nearmiss_record::machine::Machine;
use std::path::{Path, PathBuf};

/// Source of the latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latencies {
    /// Measured, once; then from the user's cache directory.
    Calibrated,
    /// Measured now, even with a cached calibration; a quiet one from the cache still counts more than a noisy new one.
    Recalibrated,
    /// Typical figures, marked assumed: nothing is measured.
    Assumed,
}

/// Why this host could not be described.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// A file of sysfs cannot be read.
    #[error("{path}: {why}; name a machine with -m instead (`nearmiss machine list`)")]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        why: std::io::Error,
    },
    /// A file of sysfs does not have the expected content.
    #[error("{path}: {found:?} is not {expected}; name a machine with -m instead (`nearmiss machine list`)")]
    Unexpected {
        /// Which.
        path: PathBuf,
        /// Content found.
        found: String,
        /// Content expected.
        expected: &'static str,
    },
    /// The kernel lists no caches.
    #[error(
        "{0}: no caches listed, as on some virtual machines; name a machine with -m instead (`nearmiss machine list`)"
    )]
    NoCaches(PathBuf),
    /// The figures found make no machine.
    #[error("the figures in sysfs make no machine: {0}; name a machine with -m instead (`nearmiss machine list`)")]
    Nonsense(Problem),
}

/// Why there is no machine of a name.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The name means this host, which could not be described.
    #[error("host: {0}")]
    Host(HostError),
    /// No preset and no machine file.
    #[error(transparent)]
    Described(#[from] DescribeError),
}

/// The names of this machine: with its cores as measured, and with one share of each miss hidden in their place.
pub const NAMES: [&str; 2] = ["host", "host-overlap"];

/// The machine that `-m NAME` means: one of [`NAMES`], a preset, or the path of a machine file (anything with `/` or
/// `.toml`).
pub fn load(name: &str) -> Result<Machine, LoadError> {
    match name {
        // Not `#[from]`: the message has the cause already, and a source would be printed a second time.
        "host" => host(Latencies::Calibrated).map_err(LoadError::Host),
        "host-overlap" => host(Latencies::Calibrated).map(share::with_share).map_err(LoadError::Host),
        _ => Ok(preset_or_file(name)?),
    }
}

/// Describes this host. Figures that its calibration lacks are assumed: only sysfs can make this fail.
pub fn host(latencies: Latencies) -> Result<Machine, HostError> {
    let found = discover(Path::new("/"))?;
    if latencies == Latencies::Assumed {
        return describe(&found, None);
    }
    let again = latencies == Latencies::Recalibrated;
    let store = store::Store::of_the_user();
    let calibration = choice::chosen(&found, &store, again, |found| choice::measured_here(found, again));
    let calibration = choice::with_touches(&found, &store, calibration, || choice::touches_here(&found));
    describe(&found, Some(&calibration)).or_else(|_| describe(&found, None))
}
