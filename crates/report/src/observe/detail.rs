//! One function looked at closely, and the log line by line.

use super::hot::{Hot, call_sites, hottest, instructions, lines_of, total};
use super::words::{cut, place, short, time};
use crate::name::plain;
use crate::number::{grouped, percent_of};
use nearmiss_record::logs::{LockWait, PollCall};
use nearmiss_record::observed::{Observed, Profile};
use std::fmt::Write;

/// One function by source line, by instruction and by call site, for every event that was sampled; `None` where no
/// sample fell on it. `top`: rows of each table.
pub fn function(observed: &Observed, name: &str, width: usize, top: usize) -> Option<String> {
    let profile = observed.profile.as_ref()?;
    let mut out = String::new();
    for (index, event) in profile.events.iter().enumerate() {
        let (all, _) = total(profile, index as u32);
        let Some(row) = hottest(profile, index as u32).into_iter().find(|h| h.name == name && h.samples > 0) else {
            continue;
        };
        let _ = writeln!(
            out,
            "{} in {}: {} of {} samples of {} ({}), measured",
            plain(name),
            plain(short(&row.module)),
            grouped(row.samples),
            grouped(all),
            event.name,
            percent_of(row.samples, all)
        );
        one_event(&mut out, profile, index as u32, &row, width, top);
    }
    (!out.is_empty()).then_some(out)
}

fn one_event(out: &mut String, profile: &Profile, event: u32, row: &Hot, width: usize, top: usize) {
    let mut table = |title: &str, rows: Vec<(u64, String)>| {
        if !rows.is_empty() {
            let _ = writeln!(out, "  {title}");
        }
        let left = rows.len().saturating_sub(top);
        for (samples, name) in rows.iter().take(top) {
            let _ = writeln!(out, "    {:>6}  {name}", percent_of(*samples, row.samples));
        }
        if left > 0 {
            let rest: u64 = rows.iter().skip(top).map(|r| r.0).sum();
            let _ = writeln!(out, "    {:>6}  {left} more", percent_of(rest, row.samples));
        }
    };
    let room = width.saturating_sub(12);
    let sites = call_sites(profile, event, &row.name).into_iter().map(|s| {
        let at = if s.frame.line.is_empty() { String::new() } else { format!(" at {}", s.frame.line) };
        (s.samples, cut(&plain(&format!("{}{at}", s.frame.function)), room))
    });
    table("called from", sites.collect());
    let named = |h: Hot| (h.samples, place(&plain(&h.name), room));
    table("by line", lines_of(profile, event, &row.name).into_iter().map(named).collect());
    let named = |h: Hot| (h.samples, place(&plain(h.name.trim_end()), room));
    table(
        "by instruction (address in the module)",
        instructions(profile, event, &row.name).into_iter().map(named).collect(),
    );
}

/// The log, a line an entry, in the order in which waits and polls ended.
///
/// Errors: those of the rows.
pub fn log<E>(
    waits: impl Iterator<Item = Result<LockWait, E>>,
    polls: impl Iterator<Item = Result<PollCall, E>>,
) -> Result<String, E> {
    let mut lines = waits.map(|wait| wait.map(lock_line)).collect::<Result<Vec<_>, E>>()?;
    for poll in polls {
        lines.push(poll_line(&poll?));
    }
    lines.sort_by_key(|(end_ns, _)| *end_ns);
    let mut out = format!("{:>12} {:>9} {:>8} {:>4}  {}\n", "ended at s", "took", "thread", "CPU", "what, measured");
    lines.iter().for_each(|(_, line)| out.push_str(line));
    Ok(out)
}

/// When it ended, and the line.
fn log_line(end_ns: u64, length_ns: u64, thread: u32, cpu: u32, what: &str) -> (u64, String) {
    let seconds = end_ns as f64 / 1e9;
    // A name has as many characters as it likes, a line of the log a few hundred.
    let what = cut(&plain(what), 300);
    (end_ns, format!("{seconds:>12.6} {:>9} {thread:>8} {cpu:>4}  {what}\n", time(length_ns)))
}

fn lock_line(wait: LockWait) -> (u64, String) {
    let name = if wait.name.is_empty() { format!("{:#x}", wait.address.0) } else { wait.name };
    log_line(wait.end_ns, wait.wait_ns, wait.thread, wait.cpu, &format!("{} {name}", wait.kind))
}

fn poll_line(poll: &PollCall) -> (u64, String) {
    let returned = if poll.failed { "failed".to_owned() } else { format!("{} events", poll.events) };
    let left = match poll.again {
        Some(again) if poll.events > 0 => format!(", {again} left over"),
        _ => String::new(),
    };
    let what = format!("{}: {} polled, {returned}{left}", poll.call, poll.asked);
    log_line(poll.exit_ns, poll.exit_ns.saturating_sub(poll.enter_ns), poll.thread, poll.cpu, &what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearmiss_record::observed::{Event, Frame, Sample};

    #[test]
    fn a_function_is_taken_apart() {
        let frame = |function: &str, line: &str, address| Frame {
            function: function.into(),
            module: "/bin/m".into(),
            line: line.into(),
            address,
            ..Frame::default()
        };
        let sample = |stack| Sample { stack, weight: 1, ..Sample::default() };
        let profile = Profile {
            events: vec![Event { name: "cpu-clock".into(), role: "clock".into(), ..Event::default() }],
            frames: vec![frame("f", "a.c:1", 16), frame("f", "a.c:2", 32), frame("g", "a.c:9", 64)],
            stacks: vec![vec![0, 2], vec![1, 2], vec![2]],
            threads: vec![(1, 1, "t".into())],
            samples: vec![sample(0), sample(0), sample(0), sample(1), sample(2)],
        };
        let observed = Observed { profile: Some(profile), ..Observed::default() };
        let page = function(&observed, "f", 80, 1).unwrap();
        assert_eq!(
            page,
            "f in m: 4 of 5 samples of cpu-clock (80.0%), measured\n  called from\n    100.0%  g at a.c:9\n  by line\n     \
             75.0%  a.c:1\n     25.0%  1 more\n  by instruction (address in the module)\n     75.0%  0x10 a.c:1\n     \
             25.0%  1 more\n"
        );
        assert_eq!(function(&observed, "h", 80, 1), None);
    }

    #[test]
    fn the_log_is_in_the_order_of_the_ends() {
        use nearmiss_record::logs::Address;
        let wait = |name: &str, end_ns| LockWait {
            name: name.into(),
            end_ns,
            wait_ns: 1_500,
            address: Address(0xf00),
            kind: "futex".into(),
            thread: 8,
            cpu: 1,
            ..LockWait::default()
        };
        let poll = |exit_ns, failed: bool| PollCall {
            enter_ns: exit_ns - 2_000,
            exit_ns,
            call: "poll".into(),
            asked: 3,
            again: (exit_ns > 2_000_000).then_some(1),
            events: u32::from(!failed),
            failed,
            thread: 9,
            ..PollCall::default()
        };
        let waits = [Ok(wait("mutex", 5_000_000)), Ok(wait("", 1_000_000))];
        let polls = [Ok::<_, ()>(poll(2_000_000, false)), Ok(poll(3_000_000, true)), Ok(poll(4_000_000, false))];
        let lines = [
            "  ended at s      took   thread  CPU  what, measured",
            "    0.001000   1.50 µs        8    1  futex 0xf00",
            "    0.002000   2.00 µs        9    0  poll: 3 polled, 1 events",
            "    0.003000   2.00 µs        9    0  poll: 3 polled, failed",
            "    0.004000   2.00 µs        9    0  poll: 3 polled, 1 events, 1 left over",
            "    0.005000   1.50 µs        8    1  futex mutex",
        ];
        assert_eq!(log(waits.into_iter(), polls.into_iter()).unwrap(), lines.map(|l| format!("{l}\n")).concat());
        assert_eq!(log([Err(7)].into_iter(), std::iter::empty()), Err(7));
    }
}
