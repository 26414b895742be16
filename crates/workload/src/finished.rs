use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The command exited with this status.
    Exited(u8),
    /// The command was killed by this signal.
    Signaled(i32),
}

impl Status {
    pub(crate) fn from_wait(raw: i32) -> Self {
        let status = ExitStatus::from_raw(raw);
        match status.code() {
            Some(code) => Status::Exited((code & 0xff) as u8),
            None => Status::Signaled(status.signal().unwrap_or(0)),
        }
    }

    /// Whether the command exited with status 0.
    pub fn success(self) -> bool {
        self == Status::Exited(0)
    }

    /// `exited with status 1`, `was killed by signal 9`.
    pub fn in_words(self) -> String {
        match self {
            Status::Exited(code) => format!("exited with status {code}"),
            Status::Signaled(signal) => format!("was killed by signal {signal}"),
        }
    }

    /// The exit status of a wrapper around the command: its own, or 128 + the signal.
    pub fn wrapper_code(self) -> u8 {
        match self {
            Status::Exited(code) => code,
            Status::Signaled(signal) => (128 + signal).clamp(0, 255) as u8,
        }
    }
}

/// A command that has ended, with what it used.
///
/// Times and counts are of the command and of all descendants that were waited for, as the
/// kernel accounts them (`wait4`).
#[derive(Clone, Copy, Debug)]
pub struct Finished {
    /// How it ended.
    pub status: Status,
    /// Wall time from its release (just before `exec`) until it was reaped, in nanoseconds.
    pub wall_ns: u64,
    /// Time on a CPU in user mode, in nanoseconds.
    pub user_ns: u64,
    /// Time on a CPU in the kernel, in nanoseconds.
    pub system_ns: u64,
    /// Largest resident set of any one process, in bytes. The kernel counts the launcher's
    /// own size at the fork as well, so small commands show the launcher's.
    pub max_rss_bytes: u64,
    /// Page faults that needed no input or output.
    pub minor_faults: u64,
    /// Page faults that did.
    pub major_faults: u64,
    /// Context switches because it waited.
    pub voluntary_switches: u64,
    /// Context switches because its time was up or another came first.
    pub involuntary_switches: u64,
}

impl Finished {
    pub(crate) fn from_usage(raw_status: i32, wall_ns: u64, usage: &libc::rusage) -> Self {
        let count = |n: libc::c_long| u64::try_from(n).unwrap_or(0);
        let nanos = |t: libc::timeval| {
            count(t.tv_sec).saturating_mul(1_000_000_000).saturating_add(count(t.tv_usec).saturating_mul(1_000))
        };
        Finished {
            status: Status::from_wait(raw_status),
            wall_ns,
            user_ns: nanos(usage.ru_utime),
            system_ns: nanos(usage.ru_stime),
            max_rss_bytes: count(usage.ru_maxrss).saturating_mul(1024),
            minor_faults: count(usage.ru_minflt),
            major_faults: count(usage.ru_majflt),
            voluntary_switches: count(usage.ru_nvcsw),
            involuntary_switches: count(usage.ru_nivcsw),
        }
    }
}
