//! A command that runs here to its end, diagnosed from its snapshots and its observation.

use super::moments::Taken;
use super::{Answer, Args, Subject, judged, moments, names, record, trace};
use crate::Remedies;
use crate::destination::runs_can_be_kept;
use crate::exit::{Interrupted, print_message};
use crate::phases::Phases;
use crate::progress::progress;
use crate::trace::Budget;
use anyhow::Context;
use nearmiss_analysis::{Moment, Needs, Options, Remedy, detect, judge, over_moments};
use nearmiss_record::finding::Findings;
use nearmiss_record::run::{self, RunDir};
use nearmiss_record::words::duration;
use nearmiss_snapshot::Snapshot;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Share of the time that is planned: the last rehearsals may take longer than their plan.
const PLANNED: f64 = 0.85;
/// Least time for the recording of a moment and its rehearsals.
const LEAST: Duration = Duration::from_secs(5);

/// Diagnoses a command that runs here, from snapshots of it; from a recording of its start where there are none.
pub(super) fn live(args: &Args, remedies: Remedies, phases: &mut Phases) -> anyhow::Result<Answer> {
    runs_can_be_kept(&args.runs)?;
    let names = names(remedies, Needs::Observation);
    print_message(&format!("running the command on this machine, observed for {}", names.join(", ")));
    let ran = moments::run(&args.runs, &args.command)?;
    phases.ended("observing", Instant::now());
    let observed = ran.observed.run.clone();
    let traced: Vec<&Remedy> = remedies.iter().filter(|remedy| remedy.needs != Needs::Observation).copied().collect();
    if ran.moments.is_empty() || traced.is_empty() {
        let subject = Subject { budget: Budget::of(args.within), snapshot: None };
        let suspected = record(args, &subject, Some(observed), remedies, phases)?;
        let (run, findings) = judged(args, suspected, remedies, phases)?;
        run.write_json(run::FINDINGS, &findings)?;
        return Ok((vec![run], findings));
    }
    let (recorded, each): (Vec<RunDir>, Vec<Moment>) =
        of_moments(args, ran.moments, &traced, phases)?.into_iter().unzip();
    let findings = with_observed(args, over_moments(each).context("no moment")?, &observed, remedies)?;
    observed.write_json(run::FINDINGS, &findings)?;
    Ok(([vec![observed], recorded].concat(), findings))
}

/// Records and judges each moment, in its share of the time.
fn of_moments(
    args: &Args,
    moments: Vec<Taken>,
    remedies: &[&Remedy],
    phases: &mut Phases,
) -> anyhow::Result<Vec<(RunDir, Moment)>> {
    let (end, of) = (Instant::now() + args.within.mul_f64(PLANNED), moments.len());
    let (mut each, mut failure) = (Vec::new(), None);
    for (number, Taken { at, share, snapshot }) in moments.into_iter().enumerate() {
        let time = duration(at.as_nanos() as u64);
        print_message(&format!("moment {} of {of}, at {time}", number + 1));
        let time_left = end.saturating_duration_since(Instant::now()) / (of - number) as u32;
        let within = if args.within.is_zero() { args.within } else { time_left.max(LEAST) };
        match of_moment(args, snapshot, within, remedies, phases) {
            Ok((run, findings)) => each.push((run, Moment { at, share, findings })),
            Err(error) if error.is::<Interrupted>() => return Err(error),
            // The other moments have an answer.
            Err(error) => {
                print_message(&format!("the moment at {time} is left out: {error}"));
                failure = Some(error);
            }
        }
    }
    failure.filter(|_| each.is_empty()).map_or(Ok(each), Err)
}

/// Records one moment within this time, judges it, and keeps the findings in its run.
fn of_moment(
    args: &Args,
    snapshot: Snapshot,
    within: Duration,
    remedies: &[&Remedy],
    phases: &mut Phases,
) -> anyhow::Result<(RunDir, Findings)> {
    snapshot.show_to_guests()?;
    let subject = Subject { budget: Budget::of(within), snapshot: Some(&Rc::new(snapshot)) };
    let suspected = trace(args, &subject, remedies, phases)?;
    let (run, findings) = judged(args, suspected, remedies, phases)?;
    run.write_json(run::FINDINGS, &findings)?;
    Ok((run, findings))
}

/// Adds to the findings of a command's moments those of its observation.
fn with_observed(
    args: &Args,
    mut findings: Findings,
    observed: &RunDir,
    remedies: Remedies,
) -> anyhow::Result<Findings> {
    let case = args.how.case(observed)?;
    let able: Vec<_> = remedies.iter().filter(|remedy| remedy.needs != Needs::Trace).copied().collect();
    let detected = detect(&case, &able)?;
    let of_waits = judge(&case, &detected, Options { all: args.how.shown.all, measured: None }, &progress)?;
    findings.command = of_waits.command;
    if !of_waits.findings.is_empty() {
        (findings.healthy, findings.unexplained) = (None, None);
    }
    findings.findings.extend(of_waits.findings);
    findings.notes.extend(of_waits.healthy.map(|why| format!("Observed: {why}")));
    findings.notes.extend(of_waits.notes);
    Ok(findings)
}
