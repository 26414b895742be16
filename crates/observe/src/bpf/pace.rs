//! When to look again at what the kernel does not send.

use std::time::{Duration, Instant};

/// The longest time from one look to the next; the first looks follow faster, since short-lived tasks are gone soon.
const REST: Duration = Duration::from_secs(1);

/// The pace of the looks.
pub struct Pace {
    next: Instant,
    rest: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Pace { next: Instant::now(), rest: Duration::from_millis(50) }
    }
}

impl Pace {
    /// Whether it is time for a look; the next one is then later.
    pub fn is_due(&mut self) -> bool {
        let due = Instant::now() >= self.next;
        if due {
            self.rest = (self.rest * 2).min(REST);
            self.next = Instant::now() + self.rest;
        }
        due
    }
}
