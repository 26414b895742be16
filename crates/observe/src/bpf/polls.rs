//! Poll calls by thread.

use super::layout::{POLL_CALLS, PollStat, name, trimmed};
use super::sets::Sets;
use super::window::Window;
use super::{BpfError, poll_rows};
use aya::Ebpf;
use nearmiss_record::observed::Poll;

/// `ended_ns`: when a thread ended, if it did.
pub fn rows(
    ebpf: &Ebpf,
    sets: &Sets,
    window: Window,
    ended_ns: impl Fn(u32) -> Option<u64>,
) -> Result<Vec<Poll>, BpfError> {
    let mut rows: Vec<Poll> = poll_rows::in_use(ebpf)?
        .iter()
        .map(|stat| cut(row(stat, sets), stat, window, ended_ns(stat.tid)))
        .filter(|poll| poll.calls > 0 || poll.blocked_ns > 0)
        .collect();
    rows.sort_by(|a, b| b.calls.cmp(&a.calls).then(a.thread.cmp(&b.thread)).then(a.call.cmp(&b.call)));
    Ok(rows)
}

/// Adds the call under way, up to the end of the window or of the thread.
fn cut(mut poll: Poll, stat: &PollStat, window: Window, ended_ns: Option<u64>) -> Poll {
    if stat.enter_ns > 0 && window.end_ns > 0 {
        poll.open = ended_ns.is_none();
        poll.blocked_ns += window.within(stat.enter_ns, ended_ns.unwrap_or(window.end_ns));
    }
    poll
}

fn row(stat: &PollStat, sets: &Sets) -> Poll {
    Poll {
        call: POLL_CALLS.get(stat.kind as usize).copied().unwrap_or("?").to_owned(),
        process: stat.tgid as i32,
        thread: stat.tid as i32,
        name: name(&stat.comm),
        calls: stat.calls,
        open: false,
        descriptors: stat.requested_total,
        watched: sets.of(stat),
        events: stat.events,
        again: stat.again,
        not_compared: stat.not_compared,
        with_events: stat.with_events,
        empty: stat.empty,
        failed: stat.failed,
        zero_timeout: stat.zero_timeout,
        blocked_ns: stat.blocked_ns,
        on_cpu_ns: stat.on_cpu_ns,
        interval_ns: stat.interval_ns,
        intervals: stat.intervals,
        span_ns: stat.last_exit_ns.saturating_sub(stat.first_ns),
        last_cpu: stat.last_cpu,
        cpu_changes: stat.cpu_changes,
        log2_interval_ns: trimmed(&stat.log2_interval_ns),
        log2_events: trimmed(&stat.log2_events),
    }
}
