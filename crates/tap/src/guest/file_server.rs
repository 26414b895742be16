//! The server of the host's root: virtiofsd on a tree that the guardian has made read-only.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::error::{GuestError, Tried};
use super::guardian::Program;
use super::memory_file;
use super::qemu::QemuBinary;

/// Paths used by distributions; it is never in `PATH`.
const PLACES: [&str; 3] = ["/usr/lib/qemu/virtiofsd", "/usr/libexec/virtiofsd", "/usr/libexec/qemu/virtiofsd"];

/// See `native/agent/fileserver`.
static UNPRIVILEGED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/fileserver-unprivileged.so"));

/// The options of the two servers that distributions have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    /// QEMU's own, in C, until QEMU 7.2 (Debian 12).
    C,
    /// The one in Rust, a package of its own (`virtiofsd` in Debian 13).
    Rust,
}

impl Dialect {
    /// The guest changes no file, and nobody else's changes matter for so short a life: all that it has seen may be
    /// cached. A mount below the root that is announced to the guest makes its mount of `/proc` fail with `EREMOTE`.
    fn options(self) -> &'static [&'static str] {
        match self {
            Self::C => &["-o", "source=/run/root,sandbox=chroot,cache=always,no_posix_lock,no_flock,log_level=err"],
            Self::Rust => &[
                "--shared-dir=/run/root",
                "--sandbox=chroot",
                "--cache=always",
                "--log-level=error",
                "--no-announce-submounts",
            ],
        }
    }

    /// Finds the dialect from the output of `--version`: `virtiofsd 1.13.2`. The C server prints `virtiofsd version`,
    /// and nothing without root.
    fn of_version(text: &str) -> Self {
        let number = text.strip_prefix("virtiofsd ").and_then(|rest| rest.chars().next());
        if number.is_some_and(|first| first.is_ascii_digit()) { Self::Rust } else { Self::C }
    }
}

/// A file server about to be started.
pub(super) struct FileServer<'a> {
    path: PathBuf,
    dialect: Dialect,
    listener: &'a OwnedFd,
    preload: Option<OwnedFd>,
}

impl<'a> FileServer<'a> {
    /// The server beside an emulator that is unpacked and not installed, else the installed one.
    pub(super) fn new(qemu: &QemuBinary, listener: &'a OwnedFd) -> Result<Self, GuestError> {
        let path = std::iter::once(qemu.path.with_file_name("virtiofsd"))
            .chain(PLACES.map(PathBuf::from))
            .find(|path| path.exists())
            .ok_or_else(|| GuestError::NoProgram {
                program: "virtiofsd".into(),
                package: "virtiofsd (Debian 12: qemu-system-common)",
            })?;
        let preload = if rustix::process::geteuid().is_root() {
            None
        } else {
            Some(memory_file::holding("nearmiss-unprivileged", UNPRIVILEGED)?)
        };
        Ok(Self { dialect: dialect(&path)?, path, listener, preload })
    }

    pub(super) fn program(&self) -> Program {
        let mut arguments = vec![self.path.display().to_string(), format!("--fd={}", self.listener.as_raw_fd())];
        arguments.extend(self.dialect.options().iter().map(ToString::to_string));
        let mut descriptors = vec![self.listener.as_raw_fd()];
        if let Some(library) = &self.preload {
            arguments.insert(0, format!("LD_PRELOAD={}", memory_file::inherited_path(library)));
            descriptors.push(library.as_raw_fd());
        }
        Program { path: "/usr/bin/env".into(), arguments, descriptors }
    }
}

fn dialect(path: &Path) -> Result<Dialect, GuestError> {
    let output = Command::new(path).arg("--version").output().tried(format!("{} --version", path.display()))?;
    Ok(Dialect::of_version(&String::from_utf8_lossy(&output.stdout)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_servers_differ_in_what_they_print_as_their_version() {
        let c = "virtiofsd version 7.2.22 (Debian 1:7.2+dfsg-7)\nusing FUSE kernel interface version 7.36\n";
        assert_eq!(Dialect::of_version(c), Dialect::C);
        assert_eq!(Dialect::of_version(""), Dialect::C);
        assert_eq!(Dialect::of_version("virtiofsd 1.13.2\n"), Dialect::Rust);
    }
}
