//! How a guest came to its end, in words that state the remedy.

use std::path::PathBuf;

use super::channel::printable;
use super::command_status::CommandStatus;
use super::keep::CodeNames;
use super::messages::Totals;

/// Why the guest has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ExitReason {
    /// The command has ended.
    #[default]
    Ended,
    /// The command could not be started.
    Refused(String),
    /// The time given was over.
    TimedOut,
    /// [`Guest::kill`](super::Guest::kill) was called, or it was interrupted a second time.
    Killed,
    /// The guest was powered off or rebooted from inside.
    PoweredOff,
    /// The guest was halted from inside.
    Halted,
    /// The guest's kernel gave up; its last words.
    Panicked(String),
    /// QEMU, the file server or the agent failed.
    Failed(String),
}

/// A guest's end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuestExit {
    /// How the command ended, where it did.
    pub status: Option<CommandStatus>,
    /// Why the guest ended.
    pub reason: ExitReason,
    /// Remarks for the user, a sentence each.
    pub notes: Vec<String>,
    /// The guest's kernel killed a process for memory.
    pub out_of_memory: bool,
    /// With `keep`: files of the host's that the command deleted (for itself only); a note counts those beyond a
    /// thousand.
    pub deleted: Vec<PathBuf>,
    /// Names of the code that the command's processes made at run time, where their languages wrote them down.
    pub code_names: CodeNames,
    /// If its time was over: the command's waits, as far as sockets show, a sentence each.
    pub waits: Vec<String>,
}

impl GuestExit {
    /// An end without the command's own.
    pub(super) fn of(reason: ExitReason) -> Self {
        Self { reason, ..Self::default() }
    }
}

/// Returns the notes that follow from the end of the command.
pub(super) fn notes(totals: &Totals, kernel: Option<&str>) -> Vec<String> {
    let mut notes = Vec::new();
    if totals.oom_kills > 0 {
        let victim = kernel.map_or(String::new(), |line| format!(" ({line})"));
        notes.push(format!(
            "the guest ran out of memory and killed a process{victim}: give it more with --memory; \
             files that the command writes are kept in that memory too"
        ));
    }
    if totals.overlay_full {
        notes.push(
            "the command's files filled the part of the guest's memory that holds them (writes failed with \
             \"No space left on device\"): give it more with --memory"
                .into(),
        );
    }
    if CommandStatus::from_wait_status(totals.status) == CommandStatus::Signaled(libc::SIGILL) {
        let at = kernel.map_or(String::new(), |line| format!(" ({line})"));
        notes.push(format!(
            "the command executed an instruction that QEMU does not emulate{at}: AVX-512 is the usual one; \
             build without it, or choose another code path (glibc's own choice already follows the guest's CPU)"
        ));
    }
    notes
}

/// Returns why the command could not be started.
pub(super) fn refusal(stage: &str, errno: i32, program: &str, directory: &str) -> String {
    let error = std::io::Error::from_raw_os_error(errno);
    match (stage, errno) {
        ("directory", _) => format!(
            "the working directory {directory} cannot be entered in the guest ({error}): \
             /proc, /sys, /dev and /run are the guest's own"
        ),
        ("user", _) => format!("the user and groups cannot be taken on in the guest: {error}"),
        (_, libc::ENOENT) => format!("{program}: no such program"),
        (_, libc::EACCES) => format!("{program}: not executable"),
        (_, libc::ENOEXEC) => format!("{program}: not a program for x86-64 Linux"),
        _ => format!("{program}: {error}"),
    }
}

/// A line of the guardian in words.
pub(super) fn program_end(line: &str) -> String {
    let mut words = line.split(' ');
    let program = match words.next() {
        Some("qemu") => "QEMU",
        Some("fileserver") => "the guest's file server",
        _ => return line.into(),
    };
    match (words.next(), words.next()) {
        (Some("signal"), Some(number)) => format!("{program} was ended by signal {number}"),
        (_, code) => format!("{program} ended with code {}", code.unwrap_or("unknown")),
    }
}

/// The kernel's last word when it halts. The machine goes on, with nothing to do.
pub(super) const HALTED: &str = "reboot: System halted";

/// Returns why a guest ended without the agent's word, from the kernel's console.
pub(super) fn from_console(console: &str) -> Option<ExitReason> {
    if let Some(at) = console.find("Kernel panic") {
        let line = console[at..].lines().next().unwrap_or_default();
        return Some(ExitReason::Panicked(printable(line.trim())));
    }
    if console.contains(HALTED) {
        return Some(ExitReason::Halted);
    }
    ["reboot: Power down", "reboot: Restarting", "sysrq: Resetting"]
        .iter()
        .any(|line| console.contains(line))
        .then_some(ExitReason::PoweredOff)
}
