//! Whether a process does anything.

use crate::process::{Process, inode_of};
use std::fs;
use std::time::Duration;

/// How long a process is looked at.
const LOOK: Duration = Duration::from_millis(300);
/// A process that takes a smaller share of one CPU only waits: a server without requests has timers.
const LEAST_SHARE: f64 = 0.02;
/// Numbers of system calls, and what waiting in them is (x86_64).
const CALLS: [(u64, &str); 13] = [
    (0, "for something to read"),
    (7, "for events (poll)"),
    (23, "for events (select)"),
    (35, "for a time to pass"),
    (43, "for a connection"),
    (45, "for something to receive"),
    (61, "for a child process"),
    (202, "for a lock or another thread"),
    (230, "for a time to pass"),
    (232, "for events (epoll)"),
    (270, "for events (select)"),
    (271, "for events (poll)"),
    (281, "for events (epoll)"),
];

/// A sentence on what processes wait for, if they hardly take any CPU time for a while.
pub fn waits_only(processes: &[Process]) -> Option<String> {
    let before = ran(processes);
    std::thread::sleep(LOOK);
    let share = ran(processes).saturating_sub(before) as f64 / LOOK.as_nanos() as f64;
    if share >= LEAST_SHARE {
        return None;
    }
    let first = processes.first()?;
    let call = fs::read_to_string(first.file("syscall")).unwrap_or_default();
    let number = call.split(' ').next().and_then(|number| number.parse::<u64>().ok());
    let on = CALLS.iter().find(|(call, _)| Some(*call) == number).map_or("in the kernel", |(_, on)| on);
    let places: Vec<String> = processes.iter().flat_map(listening).collect();
    let places = if places.is_empty() { String::new() } else { format!(", and listens at {}", places.join(", ")) };
    let busy = format!("{:.1}% of a CPU, measured", share * 100.0);
    Some(format!("process {} ({}) only waits ({busy}) {on}{places}", first.pid, first.name))
}

/// Time on CPUs of all threads, in nanoseconds.
fn ran(processes: &[Process]) -> u64 {
    let threads =
        processes.iter().flat_map(|process| fs::read_dir(process.file("task")).into_iter().flatten().flatten());
    let times = threads.filter_map(|thread| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    times.sum()
}

/// Addresses where it listens over TCP.
fn listening(process: &Process) -> Vec<String> {
    const LISTEN: &str = "0A";
    let open: Vec<u64> = process.descriptors().iter().filter_map(|(_, to)| inode_of(to, "socket")).collect();
    let tables = ["net/tcp", "net/tcp6"].map(|table| fs::read_to_string(process.file(table)).unwrap_or_default());
    let of_line = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let inode: u64 = fields.get(9)?.parse().ok()?;
        let port = u16::from_str_radix(fields.get(1)?.rsplit_once(':')?.1, 16).ok()?;
        (*fields.get(3)? == LISTEN && open.contains(&inode)).then(|| format!("port {port}"))
    };
    let mut places: Vec<String> = tables.iter().flat_map(|table| table.lines().filter_map(of_line)).collect();
    places.sort_unstable();
    places.dedup();
    places
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn who_sleeps_waits_and_who_computes_does_not() {
        let of = |script: &str| {
            let mut child = Command::new("sh").args(["-c", script]).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(200));
            let waits = waits_only(&Process::of(child.id() as i32).unwrap().with_descendants());
            child.kill().unwrap();
            child.wait().unwrap();
            waits
        };
        assert!(
            of("exec sleep 9").is_some_and(
                |reason| reason.ends_with("(sleep) only waits (0.0% of a CPU, measured) for a time to pass")
            )
        );
        assert_eq!(of("while :; do :; done"), None);
    }
}
