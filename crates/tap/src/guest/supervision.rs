//! A guest under way, as others see it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::exit::ExitReason;
use super::guardian::Guardian;

/// What others may do to a guest: end it, for a reason.
pub(super) struct Supervision {
    guardian: Mutex<Guardian>,
    reason: Mutex<Option<ExitReason>>,
    ready: AtomicBool,
    begun: AtomicBool,
}

impl Supervision {
    pub(super) fn new(guardian: Guardian) -> Self {
        Self {
            guardian: Mutex::new(guardian),
            reason: Mutex::new(None),
            ready: AtomicBool::new(false),
            begun: AtomicBool::new(false),
        }
    }

    /// Ends the guest at once. The first reason counts.
    pub(super) fn end(&self, reason: ExitReason) {
        if let Ok(mut held) = self.reason.lock() {
            held.get_or_insert(reason);
        }
        self.kill();
    }

    /// Ends the guest's programs at once.
    pub(super) fn kill(&self) {
        if let Ok(mut guardian) = self.guardian.lock() {
            guardian.kill();
        }
    }

    /// Lets the guest's programs end by themselves.
    pub(super) fn ask_to_end(&self) {
        if let Ok(mut guardian) = self.guardian.lock() {
            guardian.ask_to_end();
        }
    }

    /// The guest has booted.
    pub(super) fn now_ready(&self) {
        self.ready.store(true, Ordering::Release);
    }

    /// The command has been started.
    pub(super) fn now_begun(&self) {
        self.begun.store(true, Ordering::Release);
    }

    /// Whether the guest has booted.
    pub(super) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// Whether the command has been started.
    pub(super) fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Acquire)
    }

    /// Why it was ended, if it was.
    pub(super) fn reason(&self) -> Option<ExitReason> {
        self.reason.lock().ok().and_then(|reason| reason.clone())
    }
}
