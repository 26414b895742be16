//! Failures of a recording.

use crate::replay::CaseError;
use nearmiss_machine::model::ModelError;
use nearmiss_record::run::RunError;
use nearmiss_record::trace::TraceError;
use nearmiss_tap::session::TapError;

/// Why a command was not recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The guest failed, or the tap in the guest.
    #[error(transparent)]
    Tap(#[from] TapError),
    /// The trace cannot be written.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A file of the run cannot be written.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The model refuses the stream.
    #[error(transparent)]
    Model(#[from] CaseError),
    /// The caller refuses what was recorded.
    #[error("{0}")]
    Refused(String),
    /// The disk has no room for what a run writes last.
    #[error("{0}")]
    NoRoom(String),
}

impl From<ModelError> for RecordError {
    fn from(error: ModelError) -> Self {
        RecordError::Model(error.into())
    }
}
