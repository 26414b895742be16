//! Whether programs can be traced on this machine, and how many at a time.

use std::sync::{Condvar, Mutex, PoisonError};

/// Guests at a time: each takes about a GiB of memory and keeps a CPU busy but for its start.
const MOST: usize = 3;

static TAKEN: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());

/// One of the guests that may run now; dropping it lets the next test have its own.
pub struct GuestSlot(());

/// Waits for a place. `None`, and one line with the reason, where nothing can be traced.
pub fn for_a_guest() -> Option<GuestSlot> {
    let missing =
        nearmiss_tap::guest::KernelImage::newest().err().or(nearmiss_tap::guest::QemuBinary::installed().err());
    if let Some(why) = missing {
        eprintln!("skipped: {why}");
        return None;
    }
    let (taken, given_back) = &TAKEN;
    let taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
    *given_back.wait_while(taken, |taken| *taken == MOST).unwrap_or_else(PoisonError::into_inner) += 1;
    Some(GuestSlot(()))
}

impl Drop for GuestSlot {
    fn drop(&mut self) {
        let (taken, given_back) = &TAKEN;
        *taken.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        given_back.notify_one();
    }
}
