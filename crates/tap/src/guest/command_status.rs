//! The end of the command, as its wait status has it.

/// How the command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandStatus {
    /// Exited by itself, with this code.
    Exited(i32),
    /// Ended by this signal.
    Signaled(i32),
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
