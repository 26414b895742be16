//! The place of a snapshot's images: a tmpfs that is mounted nowhere on the host.
//!
//! The file system has no name but the descriptors that are open on it. So nobody else can open what was in the process's
//! memory, and the images are gone with the last of nearmiss, CRIU and the guests, whoever is killed. A guest sees them
//! because this thread moves to a mount namespace of its own, where the file system has a place: the file servers of the
//! guests that it starts from then on see that place too.

use crate::SnapshotError;
use crate::criu::own_cache;
use rustix::fs::CWD;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, mount_change, move_mount,
};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// The file system.
#[derive(Debug)]
pub(crate) struct Images {
    root: OwnedFd,
}

impl Images {
    /// Makes an empty file system, which only root may enter.
    pub(crate) fn new() -> Result<Images, SnapshotError> {
        let failed = SnapshotError::system("make a file system in memory for the snapshot");
        let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC).map_err(&failed)?;
        fsconfig_set_string(&context, "mode", "0700").map_err(&failed)?;
        // A bound of the usual half of all memory would be reached in the middle of a pause.
        fsconfig_set_string(&context, "size", "100%").map_err(&failed)?;
        fsconfig_create(&context).map_err(&failed)?;
        let flags =
            MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let root = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, flags).map_err(&failed)?;
        Ok(Images { root })
    }

    /// Returns the file system's root as a path that every process can open while this process lives.
    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.root.as_raw_fd()))
    }

    /// The place at which guests see the images.
    pub(crate) fn place() -> PathBuf {
        own_cache().join("images")
    }

    /// Shows the file system at its [`place`](Images::place) to this thread and to all that the thread starts from now
    /// on.
    pub(crate) fn show_to_guests(&self) -> Result<(), SnapshotError> {
        let place = Self::place();
        fs::create_dir_all(&place).map_err(SnapshotError::io("make the place for a snapshot's images"))?;
        enter_own_namespace()?;
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        move_mount(&self.root, "", CWD, &place, flags).map_err(SnapshotError::system("show the snapshot to the guest"))
    }
}

/// A mount namespace of this thread's own, which follows the host's.
fn enter_own_namespace() -> Result<(), SnapshotError> {
    let failed = SnapshotError::system("make a mount namespace");
    // SAFETY: only mounts, root and working directory are no longer shared with the other threads; nobody here changes
    // either directory.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.map_err(&failed)?;
    let slave = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change(Path::new("/"), slave).map_err(&failed)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn images_have_a_place_for_one_thread_alone() {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: needs root");
            return;
        }
        let images = Images::new().unwrap();
        fs::write(images.path().join("pages"), "secret").unwrap();
        let seen = |place: &Path| fs::read_to_string(place.join("pages")).ok();
        std::thread::scope(|scope| {
            let shown = scope.spawn(|| {
                images.show_to_guests().unwrap();
                assert_eq!(seen(&Images::place()).as_deref(), Some("secret"));
            });
            shown.join().unwrap();
        });
        assert_eq!(seen(&Images::place()), None, "another thread");
        let mode =
            std::os::unix::fs::PermissionsExt::mode(&fs::metadata(images.path().join(".")).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o700);
    }
}
