//! Time as the event loops use it: nanoseconds of the monotonic clock.

use rustix::time::{ClockId, Timespec, clock_gettime};
use std::num::NonZeroU64;

/// Nanoseconds in a second.
pub const SECOND: u64 = 1_000_000_000;
/// Nanoseconds in a millisecond.
pub const MILLISECOND: u64 = 1_000_000;

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * SECOND + time.tv_nsec as u64
}

/// Nanoseconds of the monotonic clock.
pub fn now() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// Nanoseconds of CPU time that this process has used.
pub fn cpu() -> u64 {
    nanoseconds(ClockId::ProcessCPUTime)
}

/// Seconds since the epoch.
pub fn seconds() -> u64 {
    nanoseconds(ClockId::Realtime) / SECOND
}

/// Lets this thread's timers fire when they are due instead of up to 50 µs later.
pub fn be_precise() {
    // A kernel that refuses leaves the wake-ups 50 µs late, which the histogram of late requests then shows.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// Converts nanoseconds to the kernel's form.
pub const fn timespec(nanoseconds: u64) -> Timespec {
    Timespec { tv_sec: (nanoseconds / SECOND) as i64, tv_nsec: (nanoseconds % SECOND) as i64 }
}
