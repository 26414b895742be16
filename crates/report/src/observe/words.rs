//! Figures in words.

use crate::number::grouped;
use nearmiss_record::observed::{Lock, Observed, Task};

/// `1.25 s`, `340 ms`, `17.0 µs`, `250 ns`: three digits.
pub fn time(ns: u64) -> String {
    let (value, unit) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (ns as f64 / 1e3, "µs"),
        1_000_000..1_000_000_000 => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    let decimals = if value < 9.995 {
        2
    } else if value < 99.95 {
        1
    } else {
        0
    };
    format!("{value:.decimals$} {unit}")
}

/// The value below which this share of a log₂ histogram lies: the upper end of its slot.
pub fn quantile(slots: &[u32], share: f64) -> u64 {
    let total: u64 = slots.iter().map(|n| u64::from(*n)).sum();
    let mut seen = 0;
    for (i, n) in slots.iter().enumerate() {
        seen += u64::from(*n);
        if seen as f64 >= share * total as f64 {
            return 1u64 << (i + 1).min(63);
        }
    }
    0
}

/// Names a lock for a reader: by its symbol, a futex with a name by the variable's, else by an address. `processes`:
/// futexes of several are shown, and must be distinguished.
pub fn lock_name(lock: &Lock, processes: bool) -> String {
    let Some(pid) = lock.process else {
        return match lock.name.as_str() {
            "" => format!("{} {:#x}", lock.kind, lock.address),
            name => format!("{} {name}", lock.kind),
        };
    };
    let what = match (lock.kind.as_str(), lock.name.as_str()) {
        ("futex", "") | (_, "") => lock.kind.clone(),
        ("futex", name) => name.to_owned(),
        (kind, name) => format!("{name}, {kind}"),
    };
    let which = match (lock.variable.as_str(), lock.alike) {
        ("", 2..) => format!("{what}, {} of them", grouped(lock.alike)),
        ("", _) => format!("{what} at {:#x}", lock.address),
        (variable, _) => format!("{what} `{variable}`"),
    };
    if processes { format!("{which} of process {pid}") } else { which }
}

/// Whether futexes of more than one process are among the locks.
pub fn of_processes(locks: &[Lock]) -> bool {
    let mut processes = locks.iter().filter_map(|lock| lock.process);
    processes.next().is_some_and(|first| processes.any(|other| other != first))
}

/// Returns the count of what found no room, where that makes a sum too small: `; 12 found no room`, else nothing.
pub fn lacks(observed: &Observed, what: &str) -> String {
    let lost: u64 = observed.lost.iter().filter(|(name, _)| name.starts_with(what)).map(|(_, n)| n).sum();
    if lost == 0 { String::new() } else { format!("; without {} that found no room", grouped(lost)) }
}

/// Calls a second of the observation.
pub fn rate(calls: u64, observed: &Observed) -> f64 {
    calls as f64 * 1e9 / observed.duration_ns.max(1) as f64
}

/// Time a task waited, for any reason.
pub fn waited(task: &Task) -> u64 {
    task.off.iter().map(|(_, ns, _)| ns).sum()
}

/// The last part of a path.
pub fn short(module: &str) -> &str {
    module.rsplit('/').next().unwrap_or(module)
}

/// Cut to so many characters, an ellipsis at the end.
pub fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut out: String = text.chars().take(width.saturating_sub(1)).collect();
    out.push('…');
    out
}

/// A place in the source, the end of its path kept.
pub fn place(line: &str, width: usize) -> String {
    let count = line.chars().count();
    if count <= width {
        return line.to_owned();
    }
    let mut out = "…".to_owned();
    out.extend(line.chars().skip(count - width.saturating_sub(1)));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_named_by_its_variable_or_its_address() {
        let lock = |name: &str, variable: &str, alike| Lock {
            kind: "futex".into(),
            name: name.into(),
            variable: variable.into(),
            process: Some(7),
            address: 0xf00,
            alike,
            ..Lock::default()
        };
        assert_eq!(lock_name(&lock("mutex", "big", 0), false), "mutex `big`");
        assert_eq!(lock_name(&lock("mutex", "", 0), false), "mutex at 0xf00");
        assert_eq!(lock_name(&lock("", "", 1), true), "futex at 0xf00 of process 7");
        assert_eq!(lock_name(&lock("thread join", "", 3), false), "thread join, 3 of them");
        let inheriting = Lock { kind: "futex (priority inheriting)".into(), ..lock("mutex", "big", 0) };
        assert_eq!(lock_name(&inheriting, false), "mutex, futex (priority inheriting) `big`");
        let kernel = Lock { kind: "rwsem:R".into(), address: 0xf00, ..Lock::default() };
        assert_eq!(lock_name(&kernel, true), "rwsem:R 0xf00");
        assert!(of_processes(&[lock("", "", 0), Lock { process: Some(8), ..kernel }]));
        assert!(!of_processes(&[lock("", "", 0), lock("", "", 0)]));
    }

    #[test]
    fn three_digits_and_a_unit() {
        assert_eq!(time(999), "999 ns");
        assert_eq!(time(2_000_000), "2.00 ms");
        assert_eq!(time(12_345_678), "12.3 ms");
        assert_eq!(quantile(&[0, 0, 0, 5, 5], 0.5), 16);
        assert_eq!(quantile(&[0, 0, 0, 5, 5], 0.9), 32);
        assert_eq!(place("/a/b/c.c:12", 6), "….c:12");
    }
}
