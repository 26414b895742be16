//! An ordinary user of this machine, for tests that run as root.
#![allow(clippy::unwrap_used)]

use nearmiss_tap::guest::KernelImage;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Makes in `place` what the user needs, since root's cache and target directory are not the user's to read: the kernel,
/// and the program.
pub fn prepare(place: &Path) {
    let kernel = KernelImage::newest().unwrap();
    let cache = place.join("nearmiss/kernel").join(kernel.release());
    fs::create_dir_all(&cache).unwrap();
    for file in ["vmlinuz", "vmlinux", "overlay.ko"].map(|name| kernel.directory().join(name)) {
        if file.exists() {
            fs::copy(&file, cache.join(file.file_name().unwrap())).unwrap();
        }
    }
    fs::create_dir(place.join("work")).unwrap();
    // The guest's report on its kernel is stored in the cache, and runs where the user works.
    for own in [&cache, &place.join("work")] {
        std::os::unix::fs::chown(own, Some(65534), Some(65534)).unwrap();
    }
    fs::set_permissions(place, PermissionsExt::from_mode(0o755)).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_nearmiss"), place.join("nearmiss-for-all")).unwrap();
}

/// nearmiss as that user, with these options of `setpriv`.
pub fn nearmiss(place: &Path, options: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534"]).args(options).arg(place.join("nearmiss-for-all"));
    command.env("XDG_CACHE_HOME", place).current_dir(place.join("work"));
    command
}
