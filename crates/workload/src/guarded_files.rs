//! Files of which nothing is left, however the launcher ends.

use crate::Error;
use crate::blocked_signals::BlockedSignals;
use crate::guardian::Guardian;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Files in a directory of their own. Dropping it removes them; so does a guardian, should this process be killed.
///
/// The guardian is there before the directory is, and has every name beforehand: there is no instant at which a kill
/// leaves anything.
#[derive(Debug)]
pub struct GuardedFiles {
    directory: PathBuf,
    files: Vec<PathBuf>,
    _guardian: Guardian,
}

impl GuardedFiles {
    /// Writes files, each a name and what it holds, for all to read. The directory gets a name of its own in `parent`,
    /// after a prefix. Errors: what the system refused; nothing is left then.
    pub fn write(parent: &Path, prefix: &str, files: &[(&str, &[u8])]) -> Result<Self, Error> {
        let directory = parent.join(format!("{prefix}{:016x}", random()?));
        let paths: Vec<PathBuf> = files.iter().map(|(name, _)| directory.join(name)).collect();
        let remove: Vec<&Path> = paths.iter().map(PathBuf::as_path).chain([directory.as_path()]).collect();
        let blocked = BlockedSignals::new();
        let guardian = Guardian::of_files(&remove)?;
        drop(blocked);
        let failed = |source| Error::System { what: "write files for the command", source };
        fs::create_dir(&directory).map_err(failed)?;
        let written = GuardedFiles { directory, files: paths, _guardian: guardian };
        for (path, (_, bytes)) in written.files.iter().zip(files) {
            fs::write(path, bytes).map_err(failed)?;
            fs::set_permissions(path, Permissions::from_mode(0o444)).map_err(failed)?;
        }
        // Readable by all: a server gives up its privileges before it starts others.
        fs::set_permissions(&written.directory, Permissions::from_mode(0o755)).map_err(failed)?;
        Ok(written)
    }

    /// The files, in the order given.
    pub fn paths(&self) -> &[PathBuf] {
        &self.files
    }
}

impl Drop for GuardedFiles {
    fn drop(&mut self) {
        // A file that somebody else removed already needs no removal.
        for file in &self.files {
            let _ = fs::remove_file(file);
        }
        let _ = fs::remove_dir(&self.directory);
    }
}

fn random() -> Result<u64, Error> {
    let mut bytes = [0u8; 8];
    // SAFETY: fills the eight bytes given; so few are never given in part.
    if unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) } != 8 {
        return Err(Error::last_os("draw a random number"));
    }
    Ok(u64::from_ne_bytes(bytes))
}
