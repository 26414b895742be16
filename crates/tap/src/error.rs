//! Why a recording fails.

use super::facts::FactsError;
use super::guest::GuestError;
use std::io;

/// A recording that failed.
#[derive(Debug, thiserror::Error)]
pub enum TapError {
    /// The guest.
    #[error(transparent)]
    Guest(#[from] GuestError),
    /// The kernel's symbols.
    #[error(transparent)]
    Facts(#[from] FactsError),
    /// The guest ended before the command began.
    #[error("the guest ended before the command began: {0}")]
    NotBegun(String),
    /// An interrupt ended the guest before the window opened.
    #[error("interrupted before anything was recorded")]
    Interrupted,
    /// The event that opens the window did not happen.
    #[error("the window never opened: {0}")]
    NeverOpened(String),
    /// The plugin gave up.
    #[error("the tap gave up: {0}")]
    Plugin(String),
    /// The plugin sent what cannot be: a defect of nearmiss.
    #[error("the tap sent a bad record (a defect of nearmiss; please report it): {0}")]
    BadRecord(String),
    /// The sink failed.
    #[error("{0}")]
    Sink(String),
    /// Shared memory.
    #[error("shared memory for the tap: {0}")]
    Memory(#[from] io::Error),
    /// Built without the plugin.
    #[error("this nearmiss was built without the tap plugin: install gcc and build again")]
    NoPlugin,
}
