//! A calibration kept in the user's cache directory, so that it is measured once a machine.

use super::{Calibration, Found};
use nearmiss_record::run::{RunError, write_whole};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

const SCHEMA: &str = "nearmiss/calibration/19";

#[derive(Serialize, Deserialize)]
struct Stored {
    schema: String,
    /// Identity of the machine that the calibration was measured on.
    machine: String,
    calibration: Calibration,
}

/// The file of a calibration; none, if the user has no cache directory.
pub struct Store(pub Option<PathBuf>);

impl Store {
    /// `$XDG_CACHE_HOME/nearmiss/calibration.json`, or `nearmiss/calibration.json` below `~/.cache`.
    pub fn of_the_user() -> Store {
        let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
        let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
        Store(cache.map(|cache| cache.join("nearmiss").join("calibration.json")))
    }

    /// The stored calibration, if it is of this machine.
    pub fn load(&self, found: &Found) -> Option<Calibration> {
        let stored: Stored = serde_json::from_slice(&std::fs::read(self.0.as_ref()?).ok()?).ok()?;
        (stored.schema == SCHEMA && stored.machine == identity(found)).then_some(stored.calibration)
    }

    /// Stores the calibration of the machine `found`, if the user has a cache directory.
    pub fn save(&self, found: &Found, calibration: &Calibration) -> Result<(), RunError> {
        let Some(path) = &self.0 else { return Ok(()) };
        let failed = |source: std::io::Error| RunError::Io { path: path.clone(), source };
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory).map_err(failed)?;
        }
        let stored = Stored { schema: SCHEMA.into(), machine: identity(found), calibration: calibration.clone() };
        let bytes = serde_json::to_vec_pretty(&stored).map_err(|e| failed(e.into()))?;
        write_whole(path, &bytes)
    }
}

/// Returns the properties that must be equal for a calibration to hold.
pub fn identity(found: &Found) -> String {
    format!("{} {:?} {:?}", found.model, found.caches, found.nodes)
}
