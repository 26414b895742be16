//! The server of the host's root: virtiofsd on a tree that the guardian has made read-only.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use super::error::GuestError;
use super::guardian::Program;
use super::memory_file;

/// Where distributions put it; it is never in `PATH`.
const PLACES: [&str; 3] = ["/usr/lib/qemu/virtiofsd", "/usr/libexec/virtiofsd", "/usr/libexec/qemu/virtiofsd"];

/// See `native/agent/fileserver`.
static UNPRIVILEGED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/fileserver-unprivileged.so"));

/// A file server about to be started.
pub(super) struct FileServer<'a> {
    path: &'static str,
    listener: &'a OwnedFd,
    preload: Option<OwnedFd>,
}

impl<'a> FileServer<'a> {
    pub(super) fn new(listener: &'a OwnedFd) -> Result<Self, GuestError> {
        let path = PLACES.into_iter().find(|path| Path::new(path).exists()).ok_or_else(|| GuestError::NoProgram {
            program: "virtiofsd".into(),
            package: "qemu-system-common (Debian 12) or virtiofsd",
        })?;
        let preload = if rustix::process::geteuid().is_root() {
            None
        } else {
            Some(memory_file::holding("nearmiss-unprivileged", UNPRIVILEGED)?)
        };
        Ok(Self { path, listener, preload })
    }

    pub(super) fn program(&self) -> Program {
        let mut arguments = vec![
            self.path.into(),
            format!("--fd={}", self.listener.as_raw_fd()),
            "-o".into(),
            // The guest changes no file, and nobody else's changes matter for so short a life: all
            // that it has seen may be cached.
            "source=/run/root,sandbox=chroot,cache=always,no_posix_lock,no_flock,log_level=err".into(),
        ];
        let mut descriptors = vec![self.listener.as_raw_fd()];
        if let Some(library) = &self.preload {
            arguments.insert(0, format!("LD_PRELOAD={}", memory_file::inherited_path(library)));
            descriptors.push(library.as_raw_fd());
        }
        Program { path: "/usr/bin/env".into(), arguments, descriptors }
    }
}
