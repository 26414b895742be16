//! The work of replays: medians that are found once, and in tests the number of looks at events.

/// The median, the lower one of two.
pub fn median(mut times: Vec<u64>) -> Option<u64> {
    looked_at(times.len());
    times.sort_unstable();
    times.get(times.len().saturating_sub(1) / 2).copied()
}

/// Counts looks at so many events, or times of calls.
#[cfg(not(test))]
pub fn looked_at(_events: usize) {}

#[cfg(test)]
pub use counted::{looked_at, taken};

#[cfg(test)]
mod counted {
    use std::cell::Cell;

    thread_local! {
        static LOOKED_AT: Cell<usize> = const { Cell::new(0) };
    }

    /// Counted for the thread of a test.
    pub fn looked_at(events: usize) {
        LOOKED_AT.set(LOOKED_AT.get() + events);
    }

    /// Returns the number since the last call.
    pub fn taken() -> usize {
        LOOKED_AT.take()
    }
}
