//! The manifest of a recording.

use super::TraceOptions;
use nearmiss_record::run::{self, Coverage, Manifest, Warm, WarmRun};
use nearmiss_record::trace::{TraceHeader, TraceSummary};
use nearmiss_tap::guest::{CommandStatus, WarmEnd};
use nearmiss_tap::session::Recorded;
use std::time::Duration;

/// Returns the manifest; `summary` is that of the kept trace.
pub(super) fn of(
    options: &TraceOptions<'_>,
    recorded: &Recorded,
    header: &TraceHeader,
    summary: Option<TraceSummary>,
    notes: Vec<String>,
    started: jiff::Timestamp,
) -> Manifest {
    let (exit_status, signal) = ends(status(recorded));
    let records = summary.map_or(recorded.records, |summary| summary.records);
    Manifest {
        schema: run::SCHEMA.to_owned(),
        nearmiss: env!("CARGO_PKG_VERSION").into(),
        command: options.command.iter().map(|a| a.to_string_lossy().into_owned()).collect(),
        cwd: std::env::current_dir().map(|d| d.display().to_string()).unwrap_or_default(),
        started: started.to_string(),
        recorder: "tap".into(),
        machine: options.machine.name.clone(),
        cpus: options.machine.topology.cpus(),
        kernel: recorded.kernel.clone(),
        emulator: recorded.emulator.clone(),
        exit_status,
        signal,
        cut: recorded.cut.clone(),
        out_of_memory: recorded.exit.out_of_memory,
        only_user: header.only_user,
        filter: header.filter,
        clock: options.clock.into(),
        records,
        records_left_out: recorded.records.saturating_sub(records),
        node_bytes: header.node_bytes.clone(),
        ahead_ns: ahead_ns(recorded),
        window_ns: recorded.window.as_nanos() as u64,
        boot_ns: recorded.boot.as_nanos() as u64,
        restored: recorded.restored,
        warm: Some(warm(recorded)),
        covered: coverage(recorded),
        notes,
    }
}

/// Time before the window, where another event than the command's start opened it.
fn ahead_ns(recorded: &Recorded) -> u64 {
    const AT_ONCE: Duration = Duration::from_millis(100);
    if recorded.ahead < AT_ONCE { 0 } else { recorded.ahead.as_nanos() as u64 }
}

/// The command's end, unless nearmiss brought it about.
pub(super) fn status(recorded: &Recorded) -> Option<CommandStatus> {
    recorded.exit.status.filter(|_| !recorded.covered.ended && !recorded.interrupted)
}

/// Returns the command's exit status, or the signal that ended it.
pub fn ends(status: Option<CommandStatus>) -> (Option<i32>, Option<i32>) {
    match status {
        Some(CommandStatus::Exited(code)) => (Some(code), None),
        Some(CommandStatus::Signaled(number)) => (None, Some(number)),
        None => (None, None),
    }
}

/// How much was recorded, where that may not be all.
fn coverage(recorded: &Recorded) -> Option<Coverage> {
    let covered = &recorded.covered;
    (covered.paused || covered.ended).then_some(Coverage {
        parts: covered.parts,
        recorded_ns: covered.recorded.as_nanos() as u64,
        reached_ns: covered.reached.as_nanos() as u64,
        ended: covered.ended,
        ahead_ns: ahead_ns(recorded),
        paused_ns_a_second: covered.paused_ns_a_second,
        recorded_guest_ns: covered.guest_ns.0,
        reached_guest_ns: covered.guest_ns.1,
        recorded_cleared_pages: covered.cleared_pages.0,
        reached_cleared_pages: covered.cleared_pages.1,
    })
}

/// The warm-up ahead of the window.
fn warm(recorded: &Recorded) -> Warm {
    let warmth = &recorded.warmth;
    Warm {
        time_ns: recorded.warm.as_nanos() as u64,
        files: warmth.files.files,
        bytes: warmth.files.bytes,
        cut: !warmth.files.whole,
        run: warmth.run.as_ref().map(|end| {
            let status = if let WarmEnd::Ended(status) = end { Some(*status) } else { None };
            let (exit_status, signal) = ends(status);
            let time_ns = warmth.run_time.as_nanos() as u64;
            WarmRun { time_ns, exit_status, signal, cut: *end == WarmEnd::CutShort }
        }),
    }
}
