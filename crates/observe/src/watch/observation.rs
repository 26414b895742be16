//! The observation itself.

use super::instruments::{Instruments, Roots, STEP};
use super::options::{Options, Target};
use super::outcome::{Outcome, concluded};
use super::timeline::Timeline;
use super::{ObserveError, served};
use nearmiss_workload::{Finished, ForwardSignals, ProcessGroup, Suspended, Workload};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Observes the target until it ends, the limit is reached or `stop` is set. Instruments that this machine refuses are
/// left out, and the record gives the reason.
pub fn observe(target: &Target, options: &Options, stop: &AtomicBool) -> Result<Outcome, ObserveError> {
    if let (Target::Command(argv), Some(load)) = (target, &options.load) {
        return served::observe(argv, load, options, stop);
    }
    let suspended = match target {
        Target::Command(argv) => {
            let [out, err] = options.output.clone().unwrap_or_default();
            let workload = Workload::new(argv.iter().cloned()).stdout(out).stderr(err);
            Some(workload.group(group(options)).launch_suspended()?)
        }
        _ => None,
    };
    let roots = Roots::of(target, suspended.as_ref());
    let mut instruments = Instruments::start(target, &roots, options)?;
    let started_ns = instruments.begin(suspended.is_some())?;
    let mut timeline = Timeline::new(started_ns, instruments.figures(started_ns));
    let finished = match suspended {
        Some(suspended) => Some(follow_command(suspended, &mut instruments, &mut timeline, options, stop)?),
        None => {
            follow(target, &mut instruments, &mut timeline, options, stop);
            None
        }
    };
    let ended_ns = instruments.end()?;
    timeline.tick(ended_ns, instruments.figures(ended_ns));
    let machine = matches!(target, Target::Machine);
    let reported = finished.map(|finished| finished.user_ns + finished.system_ns);
    let mut outcome = instruments.finish(timeline, started_ns, ended_ns, machine, reported)?;
    outcome.finished = finished;
    outcome.observed.target = target.describe();
    concluded(&mut outcome, machine);
    Ok(outcome)
}

/// The process group of a command, of which snapshots may be taken once it has started.
fn group(options: &Options) -> ProcessGroup {
    match options.started {
        Some(_) => ProcessGroup::for_snapshots(),
        None => ProcessGroup::Launcher,
    }
}

/// Follows a command until it ends; requests its end when time is up or the user stops it.
fn follow_command(
    suspended: Suspended,
    instruments: &mut Instruments,
    timeline: &mut Timeline,
    options: &Options,
    stop: &AtomicBool,
) -> Result<Finished, ObserveError> {
    let started = std::time::Instant::now();
    let mut running = suspended.resume()?;
    if let Some(started) = &options.started {
        // Nobody may wait for it any more.
        let _ = started.send(running.pid());
    }
    let forwarding = ForwardSignals::to(&running);
    loop {
        // The sampler's buffers report their filling and the end of the command; a step is at most STEP long.
        let waited = instruments.wait_for_samples(STEP);
        match running.wait_for(if waited { Duration::ZERO } else { STEP })? {
            Ok(finished) => {
                drop(forwarding);
                return Ok(finished);
            }
            Err(still) => running = still,
        }
        instruments.step(timeline);
        if options.limit.is_some_and(|limit| started.elapsed() >= limit) || stop.load(Ordering::Relaxed) {
            return Ok(running.terminate(Duration::from_secs(2))?);
        }
    }
}

/// Follows a running target until the time is up, it has ended, or the user stops it.
fn follow(
    target: &Target,
    instruments: &mut Instruments,
    timeline: &mut Timeline,
    options: &Options,
    stop: &AtomicBool,
) {
    let started = std::time::Instant::now();
    loop {
        let left = options.limit.map_or(STEP, |limit| limit.saturating_sub(started.elapsed()).min(STEP));
        if left.is_zero() || stop.load(Ordering::Relaxed) || gone(target) {
            return;
        }
        if !instruments.wait_for_samples(left) {
            std::thread::sleep(left);
        }
        instruments.step(timeline);
    }
}

pub(crate) fn gone(target: &Target) -> bool {
    matches!(target, Target::Process(pid) if !std::path::Path::new(&format!("/proc/{pid}")).exists())
}
