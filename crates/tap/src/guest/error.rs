//! Errors that keep a guest from running.

use std::io;
use std::path::PathBuf;

/// Errors that keep a guest from starting. Each states the remedy.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// No unpacked kernel was found.
    #[error("no guest kernel in {}: run `nearmiss kernel --unpack`, or name one with --kernel", .0.display())]
    NoKernel(PathBuf),
    /// A part of the kernel package is unusable.
    #[error("guest kernel: {}: {what}", .path.display())]
    Kernel {
        /// The file.
        path: PathBuf,
        /// Defect found.
        what: String,
    },
    /// A program that the guest needs is not installed.
    #[error("{program} was not found: install {package}")]
    NoProgram {
        /// The program.
        program: String,
        /// Debian's package of the program.
        package: &'static str,
    },
    /// QEMU runs, but not one that is known to work.
    #[error("{}: {what}", .path.display())]
    Qemu {
        /// The binary.
        path: PathBuf,
        /// Defect found.
        what: String,
    },
    /// The guest would not have enough memory to work.
    #[error(
        "the guest would have {have_mib} MiB of memory and needs {need_mib}: give more with --memory, or free some of the host's"
    )]
    TooLittleMemory {
        /// Memory that it would have.
        have_mib: u64,
        /// Memory that it needs.
        need_mib: u64,
    },
    /// The configuration contradicts itself.
    #[error("{0}")]
    Config(String),
    /// A system call failed.
    #[error("{what}: {source}")]
    Io {
        /// Operation tried.
        what: String,
        /// How it failed.
        source: io::Error,
    },
}

/// Adds what was tried to a system call's error.
pub(super) trait Tried<T> {
    fn tried(self, what: impl Into<String>) -> Result<T, GuestError>;
}

impl<T, E: Into<io::Error>> Tried<T> for Result<T, E> {
    fn tried(self, what: impl Into<String>) -> Result<T, GuestError> {
        self.map_err(|source| GuestError::Io { what: what.into(), source: source.into() })
    }
}
