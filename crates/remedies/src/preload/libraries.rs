//! Files of the preloaded libraries.

use super::Library;
use nearmiss_analysis::CannotEngage;
use nearmiss_workload::GuardedFiles;
use rustix::fs::{StatVfsMountFlags, statvfs};
use std::path::PathBuf;

/// Writes each library as a file: one that is not there costs nothing.
///
/// Files, not sealed memory: the loader of every program that the command starts opens them by name, also after the
/// program closed all descriptors, gave up its privileges, or cannot see this process in /proc.
pub(super) fn write(libraries: &[&Library]) -> Result<GuardedFiles, CannotEngage> {
    let files: Vec<(&str, &[u8])> = libraries.iter().map(|library| (library.file, library.bytes)).collect();
    Ok(GuardedFiles::write(&place()?, "nearmiss-", &files)?)
}

/// A directory from which libraries can be mapped, with a name that LD_PRELOAD can carry.
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
