//! A thread without signals: handlers of the launcher must not run in a child that was just forked.

/// All signals of this thread blocked until dropped.
pub(crate) struct BlockedSignals {
    /// The signals that were blocked before.
    pub(crate) before: libc::sigset_t,
}

impl BlockedSignals {
    pub(crate) fn new() -> Self {
        // SAFETY: both sets are locals that the calls fill.
        unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
            BlockedSignals { before }
        }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: restores the mask that `new` found.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut()) };
    }
}
