//! The log of an observation: events in order, and the names that make rows of them.

use crate::bpf::{EventLog, LockEvent, PollEvent, lock_kind, poll_call};
use nearmiss_record::logs::{Address, LockWait, LogError, PollCall, write};
use nearmiss_record::observed::Lock;
use std::collections::HashMap;
use std::path::Path;

/// Every lock wait and poll, as the kernel sent them, with what it takes to make rows of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    events: EventLog,
    /// Names of locks by address and, for futexes, process.
    names: HashMap<(u64, u32), String>,
    started_ns: u64,
}

impl Log {
    /// `locks`: the rows that give the logged locks their names.
    pub(crate) fn of(events: EventLog, locks: &[Lock], started_ns: u64) -> Log {
        let process = |lock: &Lock| lock.process.unwrap_or(0).max(0).cast_unsigned();
        let names = locks.iter().map(|lock| ((lock.address, process(lock)), lock.name.clone())).collect();
        Log { events, names, started_ns }
    }

    /// Writes the waits and the polls, as far as they were logged.
    pub(super) fn write(&self, directory: &Path) -> Result<(), LogError> {
        if let Some(locks) = &self.events.locks {
            write(directory, locks.iter().map(|event| self.lock(event)))?;
        }
        if let Some(polls) = &self.events.polls {
            write(directory, polls.iter().map(|event| self.poll(event)))?;
        }
        Ok(())
    }

    fn since_start(&self, ns: u64) -> u64 {
        ns.saturating_sub(self.started_ns)
    }

    fn lock(&self, event: &LockEvent) -> LockWait {
        let kind = lock_kind(event.flags);
        let process = if kind.starts_with("futex") { event.tgid } else { 0 };
        LockWait {
            name: self.names.get(&(event.address, process)).cloned().unwrap_or_default(),
            end_ns: self.since_start(event.end_ns),
            wait_ns: event.wait_ns,
            address: Address(event.address),
            kind,
            process: event.tgid,
            thread: event.tid,
            cpu: event.cpu,
        }
    }

    fn poll(&self, event: &PollEvent) -> PollCall {
        PollCall {
            enter_ns: self.since_start(event.enter_ns),
            exit_ns: self.since_start(event.exit_ns),
            since_last_ns: event.interval_ns,
            blocked_ns: event.blocked_ns,
            on_cpu_ns: event.on_cpu_ns,
            call: poll_call(event.kind).to_owned(),
            asked: event.requested,
            timeout_ns: u64::try_from(event.timeout_ns).ok(),
            events: u32::try_from(event.returned).unwrap_or(0),
            again: u32::try_from(event.again).ok(),
            failed: event.returned < 0,
            process: event.tgid,
            thread: event.tid,
            cpu: event.cpu,
        }
    }
}
