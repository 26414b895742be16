//! Polls: every call by itself, and their totals by thread and call.

use super::row::{Sound, rows};
use crate::observed::Poll;

rows! {
    /// One call of the poll family: the input of a replay of another polling policy.
    PollCall in "polls-log.parquet" as "nearmiss/polls-log/1" {
        /// Instant at which the thread entered the call; 0 if that was before the observation began.
        enter_ns: u64,
        /// Instant at which the call returned.
        exit_ns: u64,
        /// From the return of the thread's last call of this kind to the entry; 0 for its first.
        since_last_ns: u64,
        /// Time in the call off the CPU.
        blocked_ns: u64,
        /// CPU time of the call.
        on_cpu_ns: u64,
        /// `poll`, `epoll_wait`, …
        call: String,
        /// Descriptors given; 0 for epoll: its calls do not give them.
        asked: u32,
        /// Timeout requested: none waits without limit, and stands also for calls without one (`io_uring_enter` with
        /// something to wait for). In the column -1.
        timeout_ns: Option<u64>,
        /// Events returned.
        events: u32,
        /// The call failed (`EINTR` included).
        failed: bool,
        /// Events left over: of descriptors that the thread's last call of this kind returned too, and that the thread
        /// did not have to block for. They are left in the thread's descriptors, or come in before it polls again. For
        /// epoll, the data registered for a descriptor stands for the descriptor. None if unknown: for the first call
        /// seen of a thread and for `io_uring_enter`, after and at calls with more than 64 events or with events beyond
        /// the 8,192 first descriptors of a poll or the 256 first of a select, and in logs of before it was kept. In
        /// the column -1.
        again: Option<u32> = -1,
        /// Process.
        process: u32,
        /// Thread.
        thread: u32,
        /// CPU on which the call returned.
        cpu: u32,
    }
}

impl Sound for PollCall {
    fn sound(&self) -> Result<(), &'static str> {
        if self.exit_ns < self.enter_ns {
            return Err("the call returns before it is entered");
        }
        if self.failed && self.events > 0 {
            return Err("the call fails and returns events");
        }
        if self.again.is_some_and(|again| again > self.events) {
            return Err("more events are left over than the call returns");
        }
        Ok(())
    }
}

rows! {
    /// The calls of one kind by one thread, summed.
    PollTotals in "polls.parquet" as "nearmiss/polls/1" {
        /// `poll`, `epoll_wait`, …
        call: String,
        /// Process.
        process: u32,
        /// Thread.
        thread: u32,
        /// Name of the thread.
        name: String,
        /// Calls that ended.
        calls: u64,
        /// Descriptors given, summed over calls; 0 for epoll.
        asked: u64,
        /// Descriptors in the epoll set when it was last looked at; 0 where it was not.
        watched: u64,
        /// Events returned.
        events: u64,
        /// Events left over, as in the log of every call; 0 without that log.
        again: u64 = 0,
        /// Events of which that is not known; 0 without that log.
        not_compared: u64 = 0,
        /// Calls that returned events.
        with_events: u64,
        /// Calls that returned none.
        empty: u64,
        /// Calls that failed.
        failed: u64,
        /// Calls with timeout zero.
        zero_timeout: u64,
        /// Time in the calls off the CPU.
        blocked_ns: u64,
        /// Time in the calls on the CPU.
        on_cpu_ns: u64,
        /// Time between the end of a call and the next one.
        interval_ns: u64,
        /// From the first call to the end of the last.
        span_ns: u64,
        /// CPU of the last call.
        last_cpu: u32,
        /// Calls that ended on another CPU than the one before.
        cpu_changes: u64,
    }
}

impl Sound for PollTotals {}

impl From<&Poll> for PollTotals {
    fn from(poll: &Poll) -> Self {
        PollTotals {
            call: poll.call.clone(),
            process: poll.process.max(0).cast_unsigned(),
            thread: poll.thread.max(0).cast_unsigned(),
            name: poll.name.clone(),
            calls: poll.calls,
            asked: poll.descriptors,
            watched: poll.watched,
            events: poll.events,
            again: poll.again,
            not_compared: poll.not_compared,
            with_events: poll.with_events,
            empty: poll.empty,
            failed: poll.failed,
            zero_timeout: poll.zero_timeout,
            blocked_ns: poll.blocked_ns,
            on_cpu_ns: poll.on_cpu_ns,
            interval_ns: poll.interval_ns,
            span_ns: poll.span_ns,
            last_cpu: poll.last_cpu,
            cpu_changes: poll.cpu_changes,
        }
    }
}
