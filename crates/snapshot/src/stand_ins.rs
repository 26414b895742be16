//! Files of the host's kernel that a process holds open and the guest has not: settings of a control group, which Go's
//! runtime reads again and again.

use crate::SnapshotError;
use crate::process::Process;
use rustix::mount::{MountFlags, mount};
use std::fs;
use std::path::{Path, PathBuf};

/// The directory of control groups.
const GROUPS: &str = "/sys/fs/cgroup";

/// Returns the files that processes hold, with their contents now.
pub(crate) fn held(processes: &[&Process]) -> Vec<(PathBuf, String)> {
    let open = processes.iter().flat_map(|process| process.descriptors()).map(|(_, target)| target);
    let mut paths: Vec<PathBuf> = open.filter(|target| target.starts_with(GROUPS)).collect();
    paths.sort_unstable();
    paths.dedup();
    let content = |path: PathBuf| fs::read_to_string(&path).ok().map(|content| (path, content));
    paths.into_iter().filter_map(content).collect()
}

/// Gives the guest files of these names and contents.
pub(crate) fn make(files: &[(PathBuf, String)]) -> Result<(), SnapshotError> {
    if files.is_empty() {
        return Ok(());
    }
    let failed = SnapshotError::system("stand in for the files of a control group");
    mount("none", GROUPS, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, None).map_err(failed)?;
    let write = |(path, content): &(PathBuf, String)| {
        fs::create_dir_all(path.parent().unwrap_or(Path::new(GROUPS)))?;
        fs::write(path, content)
    };
    files.iter().try_for_each(write).map_err(SnapshotError::io("stand in for the files of a control group"))
}
