//! What this machine lets nearmiss observe, for `nearmiss doctor`.

use crate::bpf::{BpfError, BpfSession, CallTracing, Wants, Who};
use crate::perf::{Rate, Role, event, has_pmu, try_open};

/// One row of the doctor's table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capability {
    /// What: `clock profile`, ….
    pub what: String,
    /// It works, as far as `why_not` does not limit it.
    pub works: bool,
    /// Why it does not, or does only in part; empty when there is nothing to say.
    pub why_not: String,
    /// What to type to get (all of) it; empty when there is nothing to type.
    pub what_to_type: String,
}

/// Tries each instrument, briefly, on this process alone.
pub fn capabilities() -> Vec<Capability> {
    let mut rows = vec![clock(), misses()];
    rows.extend(kernel_instruments());
    rows
}

fn row(what: &str, works: bool, why_not: impl Into<String>, what_to_type: impl Into<String>) -> Capability {
    Capability { what: what.to_owned(), works, why_not: why_not.into(), what_to_type: what_to_type.into() }
}

fn clock() -> Capability {
    let name = if has_pmu() { "cycles" } else { "cpu-clock" };
    let Ok(spec) = event(name, Role::Clock, Rate::Frequency(99)) else {
        return row("clock profile (--clock)", false, "no clock event", "");
    };
    if try_open(&spec, true, true).is_ok() {
        let why = if spec.needs_pmu() { "" } else { "by the CPU clock: there is no performance-monitoring unit" };
        return row("clock profile (--clock)", true, why, "");
    }
    match (try_open(&spec, true, false), try_open(&spec, false, false)) {
        (Ok(()), _) => row(
            "clock profile (--clock)",
            true,
            "own processes only, kernel included",
            "sysctl kernel.perf_event_paranoid=-1",
        ),
        (Err(_), Ok(())) => row(
            "clock profile (--clock)",
            true,
            "own processes only, without kernel code",
            "sysctl kernel.perf_event_paranoid=-1",
        ),
        (_, Err(e)) => row("clock profile (--clock)", false, e.to_string(), "sysctl kernel.perf_event_paranoid=1"),
    }
}

fn misses() -> Capability {
    if has_pmu() {
        row("miss profile (--misses)", true, "", "")
    } else {
        row(
            "miss profile (--misses)",
            false,
            "no performance-monitoring unit that this process may use",
            "ask the host for a virtual PMU; or model misses: nearmiss trace -- CMD",
        )
    }
}

fn kernel_instruments() -> Vec<Capability> {
    let instruments = [
        ("lock waits (--locks)", Wants { locks: true, ..Wants::default() }),
        ("polls (--polls)", Wants { polls: true, ..Wants::default() }),
        ("block I/O (--io)", Wants { io: true, ..Wants::default() }),
        ("scheduler (--sched)", Wants { sched: true, ..Wants::default() }),
    ];
    instruments
        .into_iter()
        .map(|(what, wants)| match BpfSession::start(wants, &Who::Tasks(Vec::new())) {
            Ok(session) if session.calls() == CallTracing::EveryCall => row(
                what,
                true,
                "the kernel refuses BPF on functions: while it runs, every system call of the machine is slower",
                "",
            ),
            Ok(_) => row(what, true, "", ""),
            Err(e) => {
                let type_this = match &e {
                    BpfError::NotAllowed => {
                        "run as root, or: sudo setcap cap_bpf,cap_perfmon+ep $(command -v nearmiss)"
                    }
                    BpfError::NotBuilt => "apt-get install clang libbpf-dev, then build nearmiss again",
                    BpfError::NoBtf => "boot a kernel with CONFIG_DEBUG_INFO_BTF=y (Debian's have it)",
                    BpfError::Refused { .. } => "",
                };
                row(what, false, e.to_string(), type_this)
            }
        })
        .collect()
}
