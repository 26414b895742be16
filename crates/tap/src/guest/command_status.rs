//! The end of the command, as its wait status has it.

use std::fmt;

/// How the command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandStatus {
    /// Exited by itself, with this code.
    Exited(i32),
    /// Ended by this signal.
    Signaled(i32),
}

impl fmt::Display for CommandStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exited with status {code}"),
            Self::Signaled(signal) => write!(f, "was killed by signal {signal}"),
        }
    }
}

impl CommandStatus {
    pub(super) fn from_wait_status(status: i32) -> Self {
        if libc::WIFSIGNALED(status) {
            Self::Signaled(libc::WTERMSIG(status))
        } else {
            Self::Exited(libc::WEXITSTATUS(status))
        }
    }
}
