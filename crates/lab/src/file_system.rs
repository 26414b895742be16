//! Fresh file systems for a cell, on loop devices.
//!
//! Nothing of them outlives the lab, however it ends, and nobody else sees them: the lab mounts in a mount namespace of
//! its own, which the kernel takes away with the lab's last process, and with the mounts go the devices.

use crate::Error;
use crate::loop_device::LoopDevice;
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};
use rustix::thread::UnshareFlags;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Makes the mounts of this thread and of what it starts private from now on; they end with them.
pub(crate) fn keep_mounts_private() -> Result<(), Error> {
    // SAFETY: descriptors stay shared; only the mounts get a copy.
    let apart = unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) };
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    let done = apart.and_then(|()| rustix::mount::mount_change("/", private));
    done.map_err(|error| Error::CannotHere(format!("mounts cannot be kept apart from the machine's: {error}")))
}

/// The file of a device, of this size and without content.
pub(crate) fn make_image(image: &Path, bytes: u64) -> Result<(), Error> {
    File::create(image).and_then(|file| file.set_len(bytes)).map_err(Error::io(image))
}

/// A file system in place. Dropping it unmounts it; the kernel then takes the device away.
pub(crate) struct Mounted(PathBuf);

impl Mounted {
    /// Mounts an image at a directory. Errors: the system's.
    pub(crate) fn at(directory: &Path, image: &Path, kind: &str, options: &str) -> io::Result<Self> {
        let device = LoopDevice::of(image)?;
        let options = CString::new(options)?;
        let options = (!options.is_empty()).then_some(options.as_c_str());
        rustix::mount::mount(&device.path, directory, kind, MountFlags::empty(), options)?;
        Ok(Mounted(directory.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // A mount that somebody still uses goes with its last user.
        if rustix::mount::unmount(&self.0, UnmountFlags::empty()).is_err() {
            let _ = rustix::mount::unmount(&self.0, UnmountFlags::DETACH);
        }
    }
}
