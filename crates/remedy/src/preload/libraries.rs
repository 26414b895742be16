//! The preloaded libraries as files.

use super::Library;
use crate::CannotEngage;
use rustix::fs::{StatVfsMountFlags, statvfs};
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The libraries as files, gone when dropped.
#[derive(Debug)]
pub(super) struct Files {
    directory: TempDir,
    files: Vec<PathBuf>,
}

impl Files {
    /// Writes each: a library that is not there costs nothing.
    pub(super) fn write(libraries: &[&Library]) -> Result<Self, CannotEngage> {
        let failed = |e| CannotEngage::system("write the preloaded libraries", e);
        let directory = tempfile::Builder::new().prefix("nearmiss-").tempdir_in(place()?).map_err(failed)?;
        let mut files = Vec::new();
        for library in libraries {
            let path = directory.path().join(library.file);
            fs::write(&path, library.bytes).map_err(failed)?;
            fs::set_permissions(&path, Permissions::from_mode(0o444)).map_err(failed)?;
            files.push(path);
        }
        // Readable by all: a server gives up its privileges before it starts others.
        fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).map_err(failed)?;
        Ok(Files { directory, files })
    }

    pub(super) fn paths(&self) -> Vec<&OsStr> {
        self.files.iter().map(|file| file.as_os_str()).collect()
    }

    /// Everything to remove, the directory last.
    pub(super) fn removal_order(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(PathBuf::as_path).chain([self.directory.path()])
    }
}

/// A directory from which libraries can be mapped, and whose name LD_PRELOAD can carry.
fn place() -> Result<PathBuf, CannotEngage> {
    let candidates = [std::env::temp_dir(), "/tmp".into(), "/dev/shm".into(), "/var/tmp".into()];
    candidates
        .into_iter()
        .find(|place| {
            let separators = place.to_string_lossy().contains([':', ' ', '$']);
            !separators
                && place.is_absolute()
                && rustix::fs::access(place, rustix::fs::Access::WRITE_OK).is_ok()
                && statvfs(place).is_ok_and(|s| !s.f_flag.contains(StatVfsMountFlags::NOEXEC))
        })
        .ok_or_else(|| {
            CannotEngage::Parameters(
                "no directory for the preloaded library: /tmp and others are not writable or mounted noexec; set TMPDIR"
                    .to_owned(),
            )
        })
}
