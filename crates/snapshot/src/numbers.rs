//! The numbers of processes and threads: a restored one keeps its own, which the guest may have given away.
//!
//! The guest's kernel threads and first programs have the small numbers. Processes of containers have small numbers too,
//! so that these are restored in a PID namespace, in which all are free.

use crate::SnapshotError;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// From here on no number is taken in a guest that has just booted: it has some ten kernel threads for each CPU.
const FREE: u32 = 1000;
/// The numbers of what restores a process in its namespace begin here, far from those of the process.
const OF_OTHERS: &str = "4000000";

/// Whether one of these images holds a number that the guest may have given away.
pub(crate) fn may_be_taken(images: &[PathBuf]) -> bool {
    let entries = images.iter().filter_map(|images| fs::read_dir(images).ok()).flatten().flatten();
    let mut ids = entries.filter_map(|entry| {
        entry.file_name().to_str()?.strip_prefix("core-")?.strip_suffix(".img")?.parse::<u32>().ok()
    });
    ids.any(|id| id < FREE)
}

/// Runs a program as the first process of a PID namespace, which ends with it. Returns its status as shells do.
pub(crate) fn run_first(mut program: Command) -> Result<u8, SnapshotError> {
    // SAFETY: only the numbers of later children change.
    unsafe { unshare_unsafe(UnshareFlags::NEWPID) }.map_err(SnapshotError::system("make a PID namespace"))?;
    let status = program.status().map_err(SnapshotError::io("start the namespace's first process"))?;
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    Ok(u8::try_from(code).unwrap_or(u8::MAX))
}

/// Makes `/proc` that of this process's PID namespace, for it alone, and keeps the small numbers free.
pub(crate) fn enter() -> Result<(), SnapshotError> {
    let failed = SnapshotError::system("show the PID namespace's processes");
    // SAFETY: only mounts are no longer shared; this process has one thread.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.map_err(&failed)?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change(Path::new("/"), private).map_err(&failed)?;
    mount("proc", "/proc", "proc", MountFlags::empty(), None).map_err(&failed)?;
    fs::write("/proc/sys/kernel/ns_last_pid", OF_OTHERS).map_err(SnapshotError::io("set the namespace's next number"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_may_be_taken() {
        let place = tempfile::tempdir().unwrap();
        let images = [place.path().to_owned()];
        fs::write(place.path().join("core-4711.img"), "").unwrap();
        fs::write(place.path().join("pages-7.img"), "").unwrap();
        assert!(!may_be_taken(&images));
        fs::write(place.path().join("core-52.img"), "").unwrap();
        assert!(may_be_taken(&images));
    }
}
