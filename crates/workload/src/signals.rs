use crate::Running;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

/// Signals that a wrapper passes on: those that people and supervisors send to end or steer a command.
const FORWARDED: [i32; 7] =
    [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGUSR1, libc::SIGUSR2, libc::SIGCONT];

/// The target of `kill`; 0 when nothing is forwarded.
static TARGET: AtomicI32 = AtomicI32::new(0);

/// Signals sent to this process go to the command instead, until dropped.
///
/// A command in the launcher's process group gets the terminal's signals by itself, so only
/// those that a process sent are passed on; one in its own group gets all of them. Ignored
/// signals (`nohup`) stay ignored. One command at a time.
pub struct ForwardSignals {
    before: Vec<(i32, libc::sigaction)>,
}

impl ForwardSignals {
    /// Begins to forward to this command.
    pub fn to(running: &Running) -> Self {
        TARGET.store(running.kill_target(), Ordering::SeqCst);
        let mut before = Vec::new();
        for signal in FORWARDED {
            // SAFETY: a zeroed sigaction is valid; the handler only calls `kill` and reads
            // an atomic.
            unsafe {
                let mut old: libc::sigaction = std::mem::zeroed();
                if libc::sigaction(signal, ptr::null(), &mut old) != 0 || old.sa_sigaction == libc::SIG_IGN {
                    continue;
                }
                let mut new: libc::sigaction = std::mem::zeroed();
                new.sa_sigaction = forward as *const () as usize;
                new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
                if libc::sigaction(signal, &new, &mut old) == 0 {
                    before.push((signal, old));
                }
            }
        }
        ForwardSignals { before }
    }
}

impl Drop for ForwardSignals {
    fn drop(&mut self) {
        TARGET.store(0, Ordering::SeqCst);
        for (signal, old) in &self.before {
            // SAFETY: restores what `to` found.
            unsafe { libc::sigaction(*signal, old, ptr::null_mut()) };
        }
    }
}

extern "C" fn forward(signal: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    let target = TARGET.load(Ordering::SeqCst);
    // SAFETY: the kernel passes a valid siginfo; `kill` and errno are async-signal-safe.
    unsafe {
        let from_a_process = (*info).si_code <= 0;
        if target < 0 || (target > 0 && from_a_process) {
            let errno = *libc::__errno_location();
            libc::kill(target, signal);
            *libc::__errno_location() = errno;
        }
    }
}
