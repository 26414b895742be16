//! Process group of a command.

/// Process group that the command joins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProcessGroup {
    /// One of its own, so that the whole group can be stopped at once. Keys at the terminal
    /// (Ctrl-C, Ctrl-Z) do not reach it: right for commands that a stage runs for itself.
    #[default]
    Own,
    /// The launcher's, as if the shell had started the command: right for wrappers, where the command owns the
    /// terminal.
    Launcher,
    /// One of its own in a session of its own.
    Session,
}

impl ProcessGroup {
    /// Returns the launcher's; [`ProcessGroup::Session`] where the launcher's session has its leader outside this PID
    /// namespace, as a container's `exec` leaves it. CRIU takes no snapshot of a process of such a session.
    pub fn for_snapshots() -> Self {
        // SAFETY: no memory is passed. The number of a process outside the namespace is 0.
        match unsafe { libc::getsid(0) } {
            0 => ProcessGroup::Session,
            _ => ProcessGroup::Launcher,
        }
    }
}
