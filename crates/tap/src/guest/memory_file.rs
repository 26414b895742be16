//! Shared memory without a name, handed to children by descriptor.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{MemfdFlags, memfd_create};

use super::error::{GuestError, Tried};

/// An empty file of `bytes` bytes, sparse until used.
pub(super) fn sized(name: &str, bytes: u64) -> Result<OwnedFd, GuestError> {
    let file = memfd_create(name, MemfdFlags::CLOEXEC).tried("memfd_create")?;
    rustix::fs::ftruncate(&file, bytes).tried(format!("{bytes} bytes of shared memory"))?;
    Ok(file)
}

/// A file with this content.
pub(super) fn holding(name: &str, content: &[u8]) -> Result<OwnedFd, GuestError> {
    // Executable memory files must be requested if the system forbids them by default; kernels before 6.3 do not have
    // the flag.
    let executable = MemfdFlags::from_bits_retain(0x10);
    let file = memfd_create(name, MemfdFlags::CLOEXEC | executable)
        .or_else(|_| memfd_create(name, MemfdFlags::CLOEXEC))
        .tried("memfd_create")?;
    let mut file = File::from(file);
    file.write_all(content).tried(format!("writing {name} to memory"))?;
    Ok(file.into())
}

/// The path by which a process that inherited the descriptor opens the file anew.
pub(super) fn inherited_path(file: &impl AsRawFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}
