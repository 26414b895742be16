//! Why there is no snapshot.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why a process could not be taken a snapshot of, or not be restored.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// No such process.
    #[error("process {0}: there is no such process; `ps -e` lists them")]
    NoProcess(i32),
    /// CRIU is missing.
    #[error(
        "CRIU is missing, which takes snapshots of running processes: run scripts/setup-criu.sh, or name one by NEARMISS_CRIU"
    )]
    NoCriu,
    /// CRIU is there and prints no version.
    #[error("{0} does not start: {1}; run scripts/setup-criu.sh, or name another by NEARMISS_CRIU")]
    BadCriu(PathBuf, String),
    /// This CRIU fails on this kernel.
    #[error("CRIU {criu} fails on kernel {kernel}, {why}: run scripts/setup-criu.sh, which unpacks a later one")]
    TooOld {
        /// Version of CRIU.
        criu: String,
        /// Release of this machine's kernel.
        kernel: String,
        /// The part that fails.
        why: &'static str,
    },
    /// A snapshot needs root.
    #[error(
        "a snapshot of a running process needs root and all of its capabilities: run nearmiss with sudo and outside of containers, or trace the command itself with `-- CMD`"
    )]
    NoRights,
    /// Something in the process cannot be restored.
    #[error("process {pid} ({name}) {what}")]
    Obstacle {
        /// The process.
        pid: i32,
        /// Name of the process.
        name: String,
        /// The obstacle and the way out.
        what: String,
    },
    /// The processes only wait: nothing would be recorded.
    #[error("{0}: give it work with --load LOAD, or take the snapshot while it works")]
    Waits(String),
    /// The pause would be too long.
    #[error(
        "a snapshot would stop process {pid} for about {} (predicted: {mib} MiB of resident memory at the pace measured here); --pause-at-most allows {}",
        seconds(*.predicted), seconds(*.allowed)
    )]
    LongPause {
        /// The process.
        pid: i32,
        /// Resident memory of the processes, in MiB.
        mib: u64,
        /// Predicted pause, as measured here on a part of the process.
        predicted: Duration,
        /// Limit by the user.
        allowed: Duration,
    },
    /// The images would not fit.
    #[error(
        "process {pid} holds {needed_mib} MiB, and {free_mib} MiB are free here, of which its images and the guest need that twice: free some memory"
    )]
    NoRoom {
        /// The process.
        pid: i32,
        /// Resident memory of the processes, in MiB.
        needed_mib: u64,
        /// The memory that is available.
        free_mib: u64,
    },
    /// Somebody killed CRIU in the middle.
    #[error(
        "CRIU was killed while it took a snapshot of process {pid} ({name}): {ended} of {of} processes ended with it, and \
         {more} mappings of CRIU's stay in the others until they end"
    )]
    Killed {
        /// Number of the process.
        pid: i32,
        /// Name of the process.
        name: String,
        /// Number of processes: this one and all that descend from it.
        of: usize,
        /// Number of the processes that ended.
        ended: usize,
        /// Mappings that the processes did not have before.
        more: usize,
    },
    /// CRIU failed.
    #[error("CRIU cannot take a snapshot of process {pid} ({name}), which runs on: {why}")]
    Dump {
        /// The process.
        pid: i32,
        /// Name of the process.
        name: String,
        /// Reason from CRIU's log.
        why: String,
    },
    /// CRIU failed in the guest.
    #[error("CRIU cannot restore process {pid} in the guest: {why}")]
    Restore {
        /// The process.
        pid: i32,
        /// Reason from CRIU's log.
        why: String,
    },
    /// The system refused a step.
    #[error("cannot {0}: {1}")]
    System(&'static str, io::Error),
}

impl SnapshotError {
    pub(crate) fn system(what: &'static str) -> impl Fn(rustix::io::Errno) -> Self {
        move |error| SnapshotError::System(what, error.into())
    }

    pub(crate) fn io(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| SnapshotError::System(what, error)
    }
}

/// Such as `0.28 s`.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

/// The first of CRIU's complaints that is about its task; it has others that change nothing.
pub(crate) fn complaint(log: &str) -> String {
    const HARMLESS: [&str; 6] = [
        "rlimit: Can't setup",
        "Can't keep kdat",
        "Diag module missing",
        "Unable to create tun",
        "reported by netlink",
        "Unable to create a veth pair",
    ];
    let errors = log.lines().filter_map(|line| line.split_once("Error (").map(|(_, rest)| rest));
    let mut errors = errors.filter(|line| !HARMLESS.iter().any(|harmless| line.contains(harmless)));
    let first = errors.next().and_then(|line| line.split_once("): ")).map(|(_, first)| first.trim());
    first.map_or_else(|| "it left no reason in its log".to_owned(), explained)
}

/// CRIU's complaint, with a way out where there is one.
fn explained(complaint: &str) -> String {
    const TAKEN: &str = "its number is taken in the guest: start the program again, so that it gets another one";
    const KNOWN: [(&str, &str); 7] = [
        ("external socket", "it talks with another program over a Unix socket: end that connection first"),
        ("unix stream", "it talks with another program over a Unix socket: end that connection first"),
        (
            "half of stream unix connection",
            "it talks with another program over a Unix socket: end that connection first",
        ),
        ("Can't dump ghost file", "it holds a large file that was deleted"),
        (
            "session leader",
            "it was started into this container from outside it: start it with `setsid`, in a session of its own",
        ),
        ("Pid", TAKEN),
        ("Can't fork for", TAKEN),
    ];
    let way_out = KNOWN.iter().find(|(part, _)| complaint.contains(part));
    way_out.map_or_else(|| complaint.to_owned(), |(_, way_out)| format!("{complaint} ({way_out})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_complaint_that_matters_is_returned() {
        let log = "Error (criu/util.c:1534): rlimit: Can't setup RLIMIT_NOFILE for self: Operation not permitted\n\
                   (00.1)  7: Error (criu/files-reg.c:2175): File tmp/x has bad size 1 (expect 2)\n\
                   (00.2) Error (criu/cr-restore.c:2331): Restoring FAILED.\n";
        assert_eq!(complaint(log), "File tmp/x has bad size 1 (expect 2)");
        assert_eq!(complaint("fine"), "it left no reason in its log");
    }
}
