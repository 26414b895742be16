//! Lock waits: every wait by itself, and their totals by lock and calling point.

use super::cell::Address;
use super::row::{Sound, rows};
use crate::observed::Lock;

rows! {
    /// One wait for a lock.
    LockWait in "locks-log.parquet" as "nearmiss/locks-log/1" {
        /// Symbol of the lock, or for a futex what it is to the program; empty where neither is known.
        name: String,
        /// End of the wait.
        end_ns: u64,
        /// Length of the wait.
        wait_ns: u64,
        /// Address, in the kernel or in the process.
        address: Address,
        /// `spinlock`, `mutex`, `rwsem:R`, `futex`, …
        kind: String,
        /// Process that waited.
        process: u32,
        /// Thread that waited.
        thread: u32,
        /// CPU on which the wait ended.
        cpu: u32,
    }
}

impl Sound for LockWait {}

rows! {
    /// The waits for one lock at one calling point, summed.
    LockTotals in "locks.parquet" as "nearmiss/locks/1" {
        /// Address, in the kernel or in the process.
        address: Address,
        /// `spinlock`, `mutex`, `rwsem:R`, `futex`, …
        kind: String,
        /// Symbol of the lock, or for a futex what it is to the program; empty where neither is known.
        name: String,
        /// Process, for futexes; else 0.
        process: u32,
        /// Function of the calling point.
        caller: String,
        /// `file:line` of the calling point, or empty.
        line: String,
        /// Waits.
        waits: u64,
        /// Times the lock was taken, where that was counted; else 0.
        acquisitions: u64,
        /// Sum of the waits.
        total_ns: u64,
        /// Shortest wait.
        min_ns: u64,
        /// Longest wait.
        max_ns: u64,
    }
}

impl Sound for LockTotals {}

impl From<&Lock> for LockTotals {
    fn from(lock: &Lock) -> Self {
        let caller = lock.stack.first();
        LockTotals {
            address: Address(lock.address),
            kind: lock.kind.clone(),
            name: lock.name.clone(),
            process: lock.process.unwrap_or(0).max(0).cast_unsigned(),
            caller: caller.map(|frame| frame.function.clone()).unwrap_or_default(),
            line: caller.map(|frame| frame.line.clone()).unwrap_or_default(),
            waits: lock.count,
            acquisitions: lock.acquisitions,
            total_ns: lock.total_ns,
            min_ns: lock.min_ns,
            max_ns: lock.max_ns,
        }
    }
}
