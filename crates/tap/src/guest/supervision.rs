//! A guest under way, as others see it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use super::exit::ExitReason;
use super::guardian::Guardian;

/// Actions that others may take on a guest: end it, for a reason.
pub(super) struct Supervision {
    guardian: Mutex<Guardian>,
    reason: Mutex<Option<ExitReason>>,
    ended: Condvar,
    ready: AtomicBool,
    begun: AtomicBool,
    waits_requested: AtomicBool,
}

impl Supervision {
    pub(super) fn new(guardian: Guardian) -> Self {
        Self {
            guardian: Mutex::new(guardian),
            reason: Mutex::new(None),
            ended: Condvar::new(),
            ready: AtomicBool::new(false),
            begun: AtomicBool::new(false),
            waits_requested: AtomicBool::new(false),
        }
    }

    /// Ends the guest at once. The first reason counts.
    pub(super) fn end(&self, reason: ExitReason) {
        if let Ok(mut held) = self.reason.lock() {
            held.get_or_insert(reason);
        }
        self.ended.notify_all();
        self.kill();
    }

    /// Waits until the guest has been ended, for this time at most.
    pub(super) fn wait_for_end(&self, limit: Duration) {
        if let Ok(held) = self.reason.lock() {
            // Whichever of the two it was, the guest ends now.
            drop(self.ended.wait_timeout_while(held, limit, |reason| reason.is_none()));
        }
    }

    /// Accepts the agent's reports of waits from here on.
    pub(super) fn request_waits(&self) {
        self.waits_requested.store(true, Ordering::Release);
    }

    /// Returns whether the command's waits were requested.
    pub(super) fn waits_requested(&self) -> bool {
        self.waits_requested.load(Ordering::Acquire)
    }

    /// Ends the guest's programs at once.
    pub(super) fn kill(&self) {
        if let Ok(mut guardian) = self.guardian.lock() {
            guardian.kill();
        }
    }

    /// Lets the guest's programs end by themselves.
    pub(super) fn request_end(&self) {
        if let Ok(mut guardian) = self.guardian.lock() {
            guardian.request_end();
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

    /// Returns whether the guest has booted.
    pub(super) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// Returns whether the command has been started.
    pub(super) fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Acquire)
    }

    /// Returns why it was ended, if it was.
    pub(super) fn reason(&self) -> Option<ExitReason> {
        self.reason.lock().ok().and_then(|reason| reason.clone())
    }
}
