//! From a run to findings: every remedy is asked what it sees, what could matter is rehearsed, and the findings are
//! ranked by what they would gain.

use nearmiss_record::finding::{Finding, Findings, Known, LEAST_GAIN, SCHEMA};
use nearmiss_record::model::MissClass;
use nearmiss_record::words::percent;
use nearmiss_remedy::{Case, CaseError, Remedy, Traced};

/// Which findings are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Also those whose gain is under [`LEAST_GAIN`].
    pub all: bool,
}

/// Diagnoses a run with the remedies that it has enough for. `progress` hears what is being rehearsed.
pub fn diagnose(
    case: &Case,
    remedies: &[&Remedy],
    options: Options,
    progress: &mut dyn FnMut(&str),
) -> Result<Findings, CaseError> {
    let mut findings: Vec<Finding> = Vec::new();
    let mut most = 0.0f64;
    let mut suspected = 0;
    let asked: Vec<&Remedy> = remedies.iter().copied().filter(|remedy| remedy.needs.are_met_by(case)).collect();
    for remedy in &asked {
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
    let why = || Why { suspected, most, best, nothing: asked.iter().map(|remedy| remedy.nothing_found).collect() };
    Ok(Findings {
        schema: SCHEMA.to_owned(),
        machine: case.machine_name().to_owned(),
        command: case.manifest().map(|manifest| manifest.command.clone()).unwrap_or_default(),
        known: if case.traced.is_some() { Known::Modelled } else { Known::Measured },
        findings,
        healthy: (best < LEAST_GAIN).then(|| why().healthy(case)),
        notes: notes(case, remedies),
    })
}

/// The case's own, and who was not asked.
fn notes(case: &Case, remedies: &[&Remedy]) -> Vec<String> {
    let idle = remedies.iter().filter(|remedy| !remedy.needs.are_met_by(case));
    let not_asked = idle.map(|remedy| format!("{} was not asked: it looks at {}.", remedy.name, remedy.needs));
    case.notes().into_iter().chain(not_asked).collect()
}

/// What is known of a run without a finding.
struct Why {
    suspected: usize,
    most: f64,
    best: f64,
    nothing: Vec<&'static str>,
}

impl Why {
    fn healthy(&self, case: &Case) -> String {
        let head = case.traced.as_ref().map_or(String::new(), |traced| format!("{}, and ", waiting(traced)));
        let end = if self.suspected == 0 {
            self.nothing.join(", ")
        } else if self.most < LEAST_GAIN {
            format!("what looks like something to remedy costs {} at most", percent(self.most))
        } else {
            format!("the best remedy that was rehearsed would gain {}", percent(self.best))
        };
        format!("{head}{end}.")
    }
}

fn waiting(traced: &Traced) -> String {
    let totals = &traced.model.totals;
    let waiting = percent(totals.stall_cycles as f64 / totals.cycles.max(1) as f64);
    let conflicts: u64 = totals.levels.iter().map(|level| level.class(MissClass::Conflict)).sum();
    let misses: u64 = totals.levels.iter().map(|level| level.misses()).sum();
    let conflicts = percent(conflicts as f64 / misses.max(1) as f64);
    format!(
        "{waiting} of the modelled cycles wait for caches and memory, {conflicts} of all misses are conflict misses"
    )
}
