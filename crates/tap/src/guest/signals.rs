//! Passes this process's signals on to the command in the guest.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::termios::tcgetwinsize;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};
use signal_hook::iterator::{Handle, Signals};

use super::error::{GuestError, Tried};
use super::{Guest, GuestRemote};

/// Signals sent to this process go to the command instead, until this is dropped. A second interrupt ends the guest; so
/// does one that ends programs, while the guest still boots. Signals that this process ignores stay ignored. The
/// terminal's size is passed on too.
pub struct ForwardSignals {
    interrupted: Arc<OnceLock<Instant>>,
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

/// Signals that wait for a guest to be sent to.
pub struct CaughtSignals {
    signals: Signals,
    interrupted: Arc<AtomicBool>,
}

impl CaughtSignals {
    /// Begins to keep this process's signals for a guest that is not there yet.
    pub fn new() -> Result<Self, GuestError> {
        let wanted = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH];
        let signals = Signals::new(wanted.into_iter().filter(|number| !is_ignored(*number)));
        let signals = signals.tried("taking signals over")?;
        let interrupted = Arc::new(AtomicBool::new(false));
        for number in [SIGHUP, SIGINT, SIGQUIT, SIGTERM].into_iter().filter(|number| !is_ignored(*number)) {
            signal_hook::flag::register(number, Arc::clone(&interrupted)).tried("taking signals over")?;
        }
        Ok(Self { signals, interrupted })
    }

    /// Set once one that ends programs has come.
    pub fn interrupted(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.interrupted)
    }

    /// Forwards them, and those to come, to this guest's command.
    pub fn forward_to(self, guest: &Guest) -> Result<ForwardSignals, GuestError> {
        let Self { mut signals, .. } = self;
        let remote = guest.remote()?;
        let handle = signals.handle();
        let interrupted = Arc::new(OnceLock::new());
        let first = Arc::clone(&interrupted);
        let thread = thread::spawn(move || {
            let mut interrupts = 0;
            for number in signals.forever() {
                if [SIGINT, SIGTERM].contains(&number) {
                    interrupts += 1;
                    first.get_or_init(Instant::now);
                }
                pass_on(&remote, number, interrupts);
            }
        });
        Ok(ForwardSignals { interrupted, handle, thread: Some(thread) })
    }
}

fn pass_on(remote: &GuestRemote, number: i32, interrupts: u32) {
    // A guest that is gone takes no orders, which is no loss.
    if number == SIGWINCH {
        if let Some(size) = terminal_size() {
            let _ = remote.resize(size.0, size.1);
        }
    } else if remote.has_begun() && interrupts < 2 {
        let _ = remote.signal(number);
    } else if [SIGHUP, SIGINT, SIGQUIT, SIGTERM].contains(&number) {
        remote.kill();
    }
}

fn terminal_size() -> Option<(u16, u16)> {
    let size = tcgetwinsize(std::io::stdin())
        .or_else(|_| tcgetwinsize(std::io::stdout()))
        .or_else(|_| tcgetwinsize(std::io::stderr()))
        .ok()?;
    Some((size.ws_row, size.ws_col))
}

fn is_ignored(number: i32) -> bool {
    // SAFETY: a zeroed sigaction is valid, and this call only fills it in.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(number, std::ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}

impl ForwardSignals {
    /// Time since the first signal that ends programs, if one came.
    pub fn interrupted_for(&self) -> Option<Duration> {
        self.interrupted.get().map(Instant::elapsed)
    }
}

impl Drop for ForwardSignals {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            // It ends once its handle is closed.
            let _ = thread.join();
        }
    }
}
