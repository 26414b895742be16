//! A server, observed while a load runs.

use super::ObserveError;
use super::instruments::{Instruments, Roots, STEP};
use super::options::{Options, Target};
use super::outcome::{Outcome, concluded};
use super::timeline::Timeline;
use nearmiss_workload::{Cut, Load, Loaded, Serving, Stdio, Workload};
use std::ffi::OsString;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Time that a server may take to end after the request.
const STOPS_WITHIN: Duration = Duration::from_secs(10);
/// Time to end where there is no observation, or while the user waits for our end.
const AFTER_FAILURE: Duration = Duration::from_millis(500);
/// A load's end is noticed within this time, which is then part of the window.
const LOOK: Duration = Duration::from_millis(5);
/// A server that still starts processes after it answers is looked at so often.
const TRIES: usize = 20;

/// Starts the server, waits until it answers, and observes it from the load's start to the load's end.
pub(super) fn observe(
    argv: &[OsString],
    load: &Load,
    options: &Options,
    stop: &AtomicBool,
) -> Result<Outcome, ObserveError> {
    let [out, err] = options.output.clone().unwrap_or_default();
    let connected = |workload: Workload| workload.stdin(Stdio::Null).stdout(out.clone()).stderr(err.clone());
    let server = connected(Workload::new(argv.iter().cloned())).whole_tree();
    let load = Load { workload: connected(load.workload.clone()), limit: options.limit.or(load.limit), ..load.clone() };
    let mut serving = Serving::start(server.launch_suspended()?, &load)?;
    let target = Target::Command(argv.to_vec());
    let observed = during(&mut serving, &load, &target, options, stop);
    serving.stop(if observed.is_ok() { STOPS_WITHIN } else { AFTER_FAILURE })?;
    let (mut outcome, loaded) = observed?;
    outcome.finished = Some(loaded.load).filter(|_| loaded.cut.is_none());
    outcome.observed.target = target.describe();
    outcome.observed.notes.push(window(&load, &loaded));
    concluded(&mut outcome, false);
    Ok(outcome)
}

/// Instruments on every process of the server. A process that was forked while they started would be missed, so they
/// start again until there is none.
fn of_all_processes(serving: &Serving, target: &Target, options: &Options) -> Result<Instruments, ObserveError> {
    let mut processes = serving.processes();
    for _ in 0..TRIES {
        let instruments = Instruments::start(target, &Roots::Running(processes.clone()), options)?;
        let now = serving.processes();
        if now == processes {
            return Ok(instruments);
        }
        processes = now;
    }
    Instruments::start(target, &Roots::Running(processes), options)
}

fn during(
    serving: &mut Serving,
    load: &Load,
    target: &Target,
    options: &Options,
    stop: &AtomicBool,
) -> Result<(Outcome, Loaded), ObserveError> {
    serving.wait_until_ready(load, stop)?;
    let mut instruments = of_all_processes(serving, target, options)?;
    let started_ns = instruments.begin(false)?;
    let mut timeline = Timeline::new(started_ns, instruments.figures(started_ns));
    let loaded = serving.under(load, stop, || {
        let waited = instruments.wait_for_samples(LOOK.min(STEP));
        instruments.step(&mut timeline);
        if waited { Duration::ZERO } else { LOOK }
    })?;
    let ended_ns = instruments.end()?;
    timeline.tick(ended_ns, instruments.figures(ended_ns));
    let outcome = instruments.finish(timeline, started_ns, ended_ns, false, Some(loaded.server_cpu_ns))?;
    Ok((outcome, loaded))
}

/// Describes the window.
fn window(load: &Load, loaded: &Loaded) -> String {
    let words: Vec<_> = load.workload.argv().iter().map(|word| word.to_string_lossy()).collect();
    let how = match loaded.cut {
        None if loaded.load.status.success() => String::new(),
        None => format!(", which {}", loaded.load.status.in_words()),
        Some(Cut::Interrupted) => ", which was interrupted".to_owned(),
        Some(Cut::TookTooLong(_)) => ", which was stopped when the time was up".to_owned(),
    };
    format!(
        "The window is that of the load `{}`{how}: the server's start and end are outside, and the load is not observed.",
        words.join(" ")
    )
}
