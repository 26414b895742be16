//! A run of `nearmiss observe`, opened: the evidence for a remedy.

use crate::logs::{LogError, Reader, Row};
use crate::observed::{self, Observed};
use crate::run::{self, Manifest, RunDir, RunError};
use std::path::Path;

/// The run directory of an observation. The manifest and the record are read when it is opened, logs on request.
#[derive(Clone, Debug)]
pub struct Observation {
    run: RunDir,
    manifest: Manifest,
    observed: Observed,
}

impl Observation {
    /// Opens the run directory of an observation.
    ///
    /// Errors: a directory that is no run, a run of another recorder, a record that cannot be read.
    pub fn open(path: &Path) -> Result<Self, RunError> {
        let run = RunDir::open(path)?;
        if !run.file(observed::FILE).is_file() {
            return Err(RunError::NotObserved(path.to_owned()));
        }
        let manifest = run.read_json(run::MANIFEST)?;
        let observed = run.read_json(observed::FILE)?;
        Ok(Observation { run, manifest, observed })
    }

    /// The directory.
    pub fn run(&self) -> &RunDir {
        &self.run
    }

    /// Returns the command, the place and the options of the run.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the findings, *measured*.
    pub fn observed(&self) -> &Observed {
        &self.observed
    }

    /// A log, as in `observation.log::<PollCall>()`; `None` where the observation did not write it.
    pub fn log<R: Row>(&self) -> Result<Option<Reader<R>>, LogError> {
        let path = self.run.file(R::FILE);
        path.exists().then(|| Reader::open(&path)).transpose()
    }
}
