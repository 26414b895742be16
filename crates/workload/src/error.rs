use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// Why a command could not be launched, waited for or stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No command was given.
    #[error("no command given; name one after `--`")]
    Empty,
    /// No file of that name, or none in `PATH`.
    #[error("{}: command not found; give its path, or check PATH", .0.display())]
    NotFound(OsString),
    /// The file is there but cannot be executed.
    #[error("{}: cannot be executed: {source}", .path.display())]
    NotExecutable {
        /// The file that was found.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// An argument, variable or path holds a NUL byte, which no Linux program can receive.
    #[error("{what} contains a NUL byte, which cannot be passed to a program")]
    Nul {
        /// The part of the command that holds the NUL byte.
        what: &'static str,
    },
    /// A list of CPUs that cannot be read, such as `3-1`.
    #[error("CPU list {text:?}: {why}; write it as 0-3,6")]
    CpuList {
        /// The text as given.
        text: String,
        /// The fault.
        why: String,
    },
    /// A node that no kernel has.
    #[error("memory node {node}: Linux numbers its nodes below 1024; `numactl --hardware` lists this machine's")]
    Node {
        /// The node as given.
        node: u32,
    },
    /// A memory policy without nodes.
    #[error("a memory policy names one node at least; `numactl --hardware` lists this machine's")]
    NoNode,
    /// A step of the launch that the system refused.
    #[error("cannot {what}: {source}")]
    System {
        /// The step, as a verb and its object.
        what: &'static str,
        /// Error of the system.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn last_os(what: &'static str) -> Self {
        Error::System { what, source: io::Error::last_os_error() }
    }

    pub(crate) fn system(what: &'static str, source: impl Into<io::Error>) -> Self {
        Error::System { what, source: source.into() }
    }

    /// The exit status with which a wrapper reports this failure, as `env` and `timeout` do:
    /// 127 when the command was not found, 126 when it cannot be executed, else 125.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::NotFound(_) => 127,
            Error::NotExecutable { .. } => 126,
            _ => 125,
        }
    }
}
