//! Why a log cannot be read or written.

use crate::words;
use std::io;
use std::path::{Path, PathBuf};

/// A log that cannot be read or written. Each message is one line: what, where, why, what to do.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Reading or writing failed.
    #[error("{path}: {}", words::io_error(source))]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is no log, or only a part of one, or its bytes contradict one another.
    #[error("{path}: {why}; the file is damaged: observe again")]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Error in the file.
        why: String,
    },
    /// Another version wrote the file.
    #[error("{path}: schema `{found}`, this nearmiss reads `{expected}`: observe again")]
    Schema {
        /// Path of the file.
        path: PathBuf,
        /// Schema that the file names.
        found: String,
        /// Schema that this version reads.
        expected: &'static str,
    },
    /// A version that did not name its schema wrote the file, with other columns.
    #[error(
        "{path}: names no schema and {why}, so an earlier nearmiss wrote it; this one reads `{expected}`: observe again"
    )]
    Unversioned {
        /// Path of the file.
        path: PathBuf,
        /// Column that differs, and the difference.
        why: String,
        /// Schema that this version reads.
        expected: &'static str,
    },
    /// A value that its field cannot have.
    #[error("{path}: row {row}, column `{column}`: {why}; the file is damaged: observe again")]
    Value {
        /// Path of the file.
        path: PathBuf,
        /// Number of the row, the first being 1.
        row: u64,
        /// Name of the column.
        column: &'static str,
        /// Error in the value.
        why: String,
    },
    /// A row with fields that contradict one another.
    #[error("{path}: row {row}: {why}; the file is damaged: observe again")]
    Row {
        /// Path of the file.
        path: PathBuf,
        /// Number of the row, the first being 1.
        row: u64,
        /// Error in the row.
        why: &'static str,
    },
}

impl LogError {
    pub(super) fn io(path: &Path, source: io::Error) -> Self {
        LogError::Io { path: path.to_owned(), source }
    }

    pub(super) fn damaged(path: &Path, why: impl std::fmt::Display) -> Self {
        LogError::Damaged { path: path.to_owned(), why: line(&why.to_string()) }
    }
}

/// Returns the text of a damaged file or a library, as part of one line.
pub(super) fn line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect()
}
