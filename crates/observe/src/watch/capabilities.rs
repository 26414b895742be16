//! Instruments that work on this machine, for `nearmiss doctor`.

use crate::bpf::{BpfError, BpfSession, Wants, Who};
use crate::perf::{PerfError, Rate, Role, event, has_pmu, pmu, try_open};

/// One row of the doctor's table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capability {
    /// Name: `clock profile (--clock)`, ….
    pub what: &'static str,
    /// The instrument works, as far as `why_not` does not limit it.
    pub works: bool,
    /// Why the instrument does not work, or works only in part; empty when it works whole.
    pub why_not: String,
    /// Command that gets (all of) the instrument; empty when there is none.
    pub what_to_type: String,
}

/// Tries each instrument, briefly, on this process alone.
pub fn capabilities() -> Vec<Capability> {
    let mut rows = vec![clock(), misses()];
    rows.extend(kernel_instruments());
    rows
}

fn row(what: &'static str, works: bool, why_not: impl Into<String>, what_to_type: impl Into<String>) -> Capability {
    Capability { what, works, why_not: why_not.into(), what_to_type: what_to_type.into() }
}

fn clock() -> Capability {
    const NAME: &str = "clock profile (--clock)";
    let name = if has_pmu() { "cycles" } else { "cpu-clock" };
    let spec = match event(name, Role::Clock, Rate::Frequency(99)) {
        Ok(spec) => spec,
        Err(e) => return row(NAME, false, e.to_string(), e.to_enable()),
    };
    let Err(machine_wide) = try_open(&spec, true, true) else {
        let why = if spec.needs_pmu() { "" } else { "by the CPU clock: there is no performance-monitoring unit" };
        return row(NAME, true, why, "");
    };
    match (try_open(&spec, true, false), try_open(&spec, false, false)) {
        (Ok(()), _) => row(NAME, true, "own processes only, kernel included", machine_wide.to_enable()),
        (Err(e), Ok(())) => row(NAME, true, "own processes only, without kernel code", e.to_enable()),
        (_, Err(e)) => row(NAME, false, e.to_string(), e.to_enable()),
    }
}

fn misses() -> Capability {
    const NAME: &str = "miss profile (--misses)";
    match pmu() {
        Ok(()) => row(NAME, true, "", ""),
        Err(e @ PerfError::Refused { .. }) => row(NAME, false, e.to_string(), e.to_enable()),
        Err(e) => row(NAME, false, e.to_string(), "model misses: nearmiss trace -- CMD"),
    }
}

fn kernel_instruments() -> Vec<Capability> {
    let instruments = [
        ("lock waits (--locks)", Wants { locks: true, ..Wants::default() }),
        ("polls (--polls)", Wants { polls: true, ..Wants::default() }),
        ("block I/O (--io)", Wants { io: true, ..Wants::default() }),
        ("scheduler (--sched)", Wants { sched: true, ..Wants::default() }),
    ];
    instruments.into_iter().map(|(what, wants)| kernel_instrument(what, wants)).collect()
}

fn kernel_instrument(what: &'static str, wants: Wants) -> Capability {
    match BpfSession::start(wants, &Who::Tasks(Vec::new())) {
        Ok(session) => row(what, true, session.calls().cost(), ""),
        Err(e @ (BpfError::NotAllowed(_) | BpfError::NotBuilt | BpfError::NoBtf)) => {
            row(what, false, e.to_string(), e.to_enable())
        }
        Err(e) => row(what, false, e.to_string(), "a kernel of 6.5 or later has all that it needs"),
    }
}
