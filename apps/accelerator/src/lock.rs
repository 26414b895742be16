//! How the threads take their locks.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes a lock; no holder panics half way through a change.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
