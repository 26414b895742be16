//! The least interval between a thread's waits.

use crate::config::Pace;
use std::time::Duration;

/// A thread's pacing.
#[derive(Debug)]
pub struct Pacing {
    busy: bool,
}

impl Pacing {
    /// As configured.
    pub fn new(pace: Pace, _budget: Duration) -> Self {
        Pacing { busy: pace == Pace::Busy }
    }

    /// Sleeps if that pays. Returns what is left of the timeout.
    pub fn before_wait(&mut self, timeout: Duration, _most_events: usize) -> Duration {
        if self.busy {
            rustix::thread::sched_yield();
            return Duration::ZERO;
        }
        timeout
    }

    /// The wait returned so many events.
    pub fn after_wait(&mut self, _events: usize) {}
}
