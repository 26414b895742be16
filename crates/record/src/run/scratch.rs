//! Directories that last as long as the work in them.

use super::whole::unfinished;
use std::io;
use std::path::Path;
use tempfile::TempDir;

/// A directory that is removed when this is dropped, and when [`remove_unfinished`](super::remove_unfinished) is called
/// before.
pub struct Scratch(TempDir);

impl Scratch {
    /// Makes a directory of a new name that begins with these letters.
    pub fn new(parent: &Path, begins: &str) -> io::Result<Self> {
        // Whoever ends this process waits meanwhile.
        let mut unfinished = unfinished();
        let directory = tempfile::Builder::new().prefix(begins).tempdir_in(parent)?;
        unfinished.push(directory.path().to_owned());
        Ok(Scratch(directory))
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        unfinished().retain(|other| other != self.0.path());
    }
}
