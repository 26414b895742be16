//! Machine files and presets, and the consequences of a description for a trace.
//!
//! A description is data ([`nearmiss_record::machine::Machine`]). It is read, checked and cut down to a guest's size
//! here, and it determines the filter of a trace.

mod cachegrind;
mod carry;
mod check;
mod core;
mod cut;
mod domains;
mod figures;
mod file;
mod filter;
mod presets;
mod problem;

pub use cachegrind::{Geometry, cachegrind_like};
pub use carry::{
    Approximation, approximate_policy, can_go_around, can_move_addresses, can_place_fields, can_place_tasks, can_pool,
};
pub use check::{check, cpus_per_instance, sets};
pub use cut::{DEFAULT_CPUS, cut};
pub use domains::{Domains, domains, node_of};
pub use figures::{figures, is_assumed, source_of};
pub use file::{parse, render};
pub use filter::{
    Inexact, approximate_misses, approximations, can_replay, every_load_counts, filter_for, filter_for_counts,
    first_level_for,
};
pub use presets::{PRESETS, Preset, preset};
pub use problem::Problem;

use nearmiss_record::machine::Machine;
use std::path::{Path, PathBuf};

/// Why there is no such machine. Each message is one line: where, what, what was expected.
#[derive(Debug, thiserror::Error)]
pub enum DescribeError {
    /// The file cannot be read.
    #[error("{path}: {why}; name a preset (`nearmiss machine list`), `host`, or a machine file")]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Why.
        why: std::io::Error,
    },
    /// The file is not a machine.
    #[error("{file}:{line}: {message}")]
    Invalid {
        /// Path of the file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Error, and the expected content.
        message: String,
    },
    /// No preset has this name, and it is no path.
    #[error("{name}: no such machine; presets: {known}; or give `host` or the path of a machine file")]
    Unknown {
        /// Name requested.
        name: String,
        /// Names that exist.
        known: String,
    },
    /// A machine put together by a program, not by a file, is wrong.
    #[error("machine {name}: {problem}")]
    Wrong {
        /// Name of the machine.
        name: String,
        /// Error in the machine.
        problem: Problem,
    },
}

/// The preset of this name, or the machine file at this path (anything with `/` or `.toml`).
pub fn preset_or_file(name: &str) -> Result<Machine, DescribeError> {
    if name.contains('/') || name.ends_with(".toml") {
        return read_file(Path::new(name));
    }
    match preset(name) {
        Some(preset) => preset.machine(),
        None => Err(DescribeError::Unknown {
            name: name.to_owned(),
            known: PRESETS.iter().map(|p| p.name).collect::<Vec<_>>().join(", "),
        }),
    }
}

/// Reads a machine file.
pub fn read_file(path: &Path) -> Result<Machine, DescribeError> {
    let unreadable = |why| DescribeError::Unreadable { path: path.to_owned(), why };
    // A machine file is a page of text; a larger file is something else.
    let size = std::fs::metadata(path).map_err(unreadable)?.len();
    if size > MAX_FILE_BYTES {
        return Err(unreadable(std::io::Error::other(format!("{size} bytes is too large for a machine file"))));
    }
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    parse(&path.display().to_string(), &text)
}

const MAX_FILE_BYTES: u64 = 1 << 20;
