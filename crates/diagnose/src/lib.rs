//! From a run to findings: every remedy is asked what it sees, what could matter is rehearsed, and the findings are
//! ranked by what they would gain.

use nearmiss_record::finding::{Finding, Findings, LEAST_GAIN, SCHEMA};
use nearmiss_record::model::MissClass;
use nearmiss_record::words::percent;
use nearmiss_remedy::{Case, CaseError, REMEDIES};

/// Which findings are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Also those whose gain is under [`LEAST_GAIN`].
    pub all: bool,
}

/// Diagnoses a run. `progress` hears what is being rehearsed.
pub fn diagnose(case: &Case, options: Options, progress: &mut dyn FnMut(&str)) -> Result<Findings, CaseError> {
    let mut findings: Vec<Finding> = Vec::new();
    let mut most = 0.0f64;
    let mut suspected = 0;
    for remedy in REMEDIES {
        for suspicion in (remedy.detect)(case)? {
            suspected += 1;
            most = most.max(suspicion.most_gain());
            // What could gain too little at best need not be rehearsed to be left out.
            if options.all || suspicion.most_gain() >= LEAST_GAIN {
                progress(&format!("rehearsing {}", remedy.name));
                findings.push(suspicion.finding(case)?);
            }
        }
    }
    findings.sort_by(|a, b| b.prediction.gain.total_cmp(&a.prediction.gain));
    let best = findings.first().map_or(0.0, |finding| finding.prediction.gain);
    if !options.all {
        findings.retain(|finding| finding.prediction.gain >= LEAST_GAIN);
    }
    let healthy = (best < LEAST_GAIN).then(|| why_healthy(case, suspected, most, best));
    Ok(Findings {
        schema: SCHEMA.to_owned(),
        machine: case.machine().name.clone(),
        command: case.manifest.command.clone(),
        findings,
        healthy,
        notes: case.model.notes.clone(),
    })
}

fn why_healthy(case: &Case, suspected: usize, most: f64, best: f64) -> String {
    let totals = &case.model.totals;
    let waiting = percent(totals.stall_cycles as f64 / totals.cycles.max(1) as f64);
    let conflicts: u64 = totals.levels.iter().map(|level| level.class(MissClass::Conflict)).sum();
    let misses: u64 = totals.levels.iter().map(|level| level.misses()).sum();
    let conflicts = percent(conflicts as f64 / misses.max(1) as f64);
    let head = format!(
        "{waiting} of the modelled cycles wait for caches and memory, {conflicts} of all misses are conflict misses"
    );
    if suspected == 0 {
        return format!("{head}, and no objects crowd on few sets.");
    }
    if most < LEAST_GAIN {
        return format!("{head}, and those on crowded sets cost {} of the cycles at most.", percent(most));
    }
    format!("{head}, and the best remedy that was rehearsed would gain {}.", percent(best))
}
