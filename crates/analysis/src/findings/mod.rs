//! From a run to findings: every remedy detects, suspicions that could matter are rehearsed, and the findings are
//! ranked by their gain.

mod accuracy;
mod advice;
mod calls;
mod calm;
mod moments;

use crate::{Case, CaseError, Remedy, Suspicions};
use accuracy::{beside_others, by_measured_cycles, by_modelled_cycles, for_the_whole_run, within_its_bound};
use calm::{Calm, Rehearsed};
pub use moments::{Moment, over_moments};
use nearmiss_record::finding::{EvidenceKind, Finding, Findings, LEAST_GAIN, Measured, SCHEMA};
use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::thread::ScopedJoinHandle;

/// Selection of the findings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Includes findings with a gain under [`LEAST_GAIN`].
    pub all: bool,
    /// Measured cost of the traced command on this machine: gains are then shares of that.
    pub measured: Option<Measured>,
}

/// Suspicions of the remedies in a run. None of them is rehearsed yet.
pub struct Detected<'r> {
    remedies: &'r [&'r Remedy],
    suspected: Vec<(&'r Remedy, Suspicions)>,
}

impl Detected<'_> {
    /// Names of the remedies with a suspicion that could matter.
    pub fn suspected(&self) -> BTreeSet<&'static str> {
        let matters = |suspicions: &Suspicions| suspicions.iter().any(|one| one.most_gain() >= LEAST_GAIN);
        self.suspected.iter().filter(|(_, suspicions)| matters(suspicions)).map(|(remedy, _)| remedy.name).collect()
    }

    /// Parts of a policy that the trace must carry for all that could matter to be rehearsed exactly, as `nearmiss trace
    /// --carry` takes them.
    pub fn missing_parts(&self, case: &Case) -> BTreeSet<&'static str> {
        let suspicions = self.suspected.iter().flat_map(|(_, suspicions)| suspicions);
        let matters = suspicions.filter(|suspicion| suspicion.most_gain() >= LEAST_GAIN);
        matters.filter_map(|suspicion| suspicion.lacks(case)).collect()
    }
}

/// Looks for suspicions with the remedies that the run has enough for, side by side.
pub fn detect<'r>(case: &Case, remedies: &'r [&'r Remedy]) -> Result<Detected<'r>, CaseError> {
    refuse_blind(case)?;
    let able: Vec<&'r Remedy> = remedies.iter().copied().filter(|remedy| remedy.needs.are_satisfied_by(case)).collect();
    let suspicions = side_by_side(&able, |remedy| (remedy.detect)(case))?;
    Ok(Detected { remedies, suspected: able.into_iter().zip(suspicions).collect() })
}

/// Rehearses the suspicions that could matter, and ranks the findings. `progress` is called with each rehearsal.
pub fn judge(
    case: &Case,
    detected: &Detected<'_>,
    options: Options,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<Findings, CaseError> {
    let remedies = detected.remedies;
    let consulted: Vec<&Remedy> = detected.suspected.iter().map(|(remedy, _)| *remedy).collect();
    let judged = side_by_side(&detected.suspected, |(remedy, suspicions)| {
        judge_one(case, remedy, suspicions, options, progress)
    })?;
    let most = judged.iter().map(|judged| judged.most).fold(0.0, f64::max);
    let bound = judged.iter().map(|judged| judged.bound).fold(0.0, f64::max);
    let suspected = judged.iter().map(|judged| judged.suspected).sum();
    let otherwise = judged.iter().flat_map(|judged| judged.otherwise.iter().cloned()).collect();
    let doubts: Vec<String> = judged.iter().flat_map(|judged| judged.doubts.iter().cloned()).collect();
    let mut findings: Vec<Finding> = judged.into_iter().flat_map(|judged| judged.findings).collect();
    findings.sort_by(|a, b| b.prediction.gain.total_cmp(&a.prediction.gain));
    let best = findings.first().map_or(0.0, |finding| finding.prediction.gain);
    if !options.all {
        findings.retain(|finding| finding.prediction.gain >= LEAST_GAIN);
    }
    let calm = (best < LEAST_GAIN).then(|| {
        Calm::of(case, &consulted, Rehearsed { suspected, most, bound, best, doubtful: !doubts.is_empty(), otherwise })
    });
    let (healthy, unexplained) = match calm {
        Some(Calm::Healthy(why)) => (Some(why), None),
        Some(Calm::Unexplained(waits)) => (None, Some(waits)),
        None => (None, None),
    };
    Ok(Findings {
        schema: SCHEMA.to_owned(),
        machine: case.machine_name().to_owned(),
        caution: case.caution().map(str::to_owned),
        command: case.manifest().map(|manifest| manifest.command.clone()).unwrap_or_default(),
        measured: options.measured,
        known: if case.traced.is_some() { EvidenceKind::Modelled } else { EvidenceKind::Measured },
        healthy,
        unexplained,
        advice: case.traced.as_ref().map(|traced| advice::advice(traced, &findings)).unwrap_or_default(),
        findings,
        notes: doubts.into_iter().chain(notes(case, remedies)).collect(),
    })
}

/// Results of one remedy.
#[derive(Default)]
struct RemedyResults {
    findings: Vec<Finding>,
    suspected: usize,
    /// The largest that a suspicion could save.
    most: f64,
    /// Largest possible saving in the least favourable order and at the dearest price.
    bound: f64,
    /// Gains beyond the limits that the remedy keeps to.
    otherwise: Vec<String>,
    /// Gains of the recorded parts that the whole run may not have.
    doubts: Vec<String>,
}

/// Runs the remedies beside each other: one that computes on one CPU takes no time from the replays of another.
fn side_by_side<'a, T: Sync, R: Send>(
    each: &'a [T],
    does: impl Fn(&'a T) -> Result<R, CaseError> + Sync,
) -> Result<Vec<R>, CaseError> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = each.iter().map(|one| scope.spawn(|| does(one))).collect();
        let ended = |thread: ScopedJoinHandle<'_, _>| thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        threads.into_iter().map(ended).collect()
    })
}

fn judge_one(
    case: &Case,
    remedy: &Remedy,
    suspicions: &Suspicions,
    options: Options,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<RemedyResults, CaseError> {
    let mut judged = RemedyResults::default();
    // With fewer measured than modelled cycles, the same saving is a larger share.
    let larger = options.measured.map_or(1.0, |measured| measured.ratio().max(1.0));
    for suspicion in suspicions {
        judged.suspected += 1;
        let most_gain = suspicion.most_gain();
        judged.most = judged.most.max(most_gain);
        judged.bound = judged.bound.max(suspicion.bound());
        // A suspicion with too little gain at best is left out without a rehearsal.
        if options.all || most_gain * larger >= LEAST_GAIN {
            progress(&format!("rehearsing {}", remedy.name));
            let mut finding = suspicion.finding(case)?;
            within_its_bound(&mut finding, most_gain);
            // The range is that of the placements until the recorded parts widen it.
            if let Some(traced) = &case.traced {
                beside_others(&mut finding.prediction, traced.machine());
            }
            if let Some(doubt) = for_the_whole_run(&mut finding).filter(|_| !options.all) {
                judged.doubts.push(doubt);
                continue;
            }
            let finding = with_its_denominator(finding, options.measured);
            if finding.prediction.gain < LEAST_GAIN {
                judged.otherwise.extend(suspicion.beyond_limit(case)?);
            }
            judged.findings.push(finding);
        }
    }
    Ok(judged)
}

/// An observation that saw nothing is no proof that there is nothing.
fn refuse_blind(case: &Case) -> Result<(), CaseError> {
    let Some(observation) = case.observation.as_ref().filter(|_| case.traced.is_none()) else { return Ok(()) };
    let observed = observation.observed();
    if observed.polls.is_empty() && observed.cpu_ns == 0 {
        return Err(CaseError::Unfit(format!(
            "{}: this observation saw no poll and no CPU time, so it shows nothing of its program; observe again with \
             --polls --log, while the program works",
            observation.run().path().display()
        )));
    }
    Ok(())
}

/// Adds the base of a modelled gain, and how good that base is.
fn with_its_denominator(mut finding: Finding, measured: Option<Measured>) -> Finding {
    match measured {
        _ if finding.known == EvidenceKind::Measured => {}
        Some(measured) => by_measured_cycles(&mut finding.prediction, &measured),
        None => by_modelled_cycles(&mut finding.prediction),
    }
    finding
}

/// Notes of the case, and the remedies that did not run.
fn notes(case: &Case, remedies: &[&Remedy]) -> Vec<String> {
    let idle = remedies.iter().filter(|remedy| !remedy.needs.are_satisfied_by(case));
    let idle = idle.map(|remedy| format!("{} did not run: it needs {}.", remedy.name, remedy.needs));
    case.notes().into_iter().chain(idle).collect()
}
