//! Findings at several moments of one run, as one answer.

use nearmiss_record::finding::{Finding, Findings, Moments};
use nearmiss_record::words::duration;
use std::time::Duration;

/// Findings of what was recorded at one moment.
pub struct Moment {
    /// Time from the start of the command.
    pub at: Duration,
    /// Share of the run's time that it stands for.
    pub share: f64,
    /// What was found.
    pub findings: Findings,
}

/// Merges the findings of a run's moments: the same remedy of the same function is one finding, with the prediction of the moment at which it gains most. Returns `None` without a moment.
pub fn over_moments(moments: Vec<Moment>) -> Option<Findings> {
    let of = moments.len();
    let mut merged: Vec<Finding> = Vec::new();
    let mut notes: Vec<String> = moments.iter().filter_map(nothing_found).collect();
    let of_all = |note: &String| moments.iter().all(|moment| moment.findings.notes.contains(note));
    let mut advice: Vec<String> = Vec::new();
    for moment @ Moment { at, findings, .. } in &moments {
        for finding in &findings.findings {
            add(&mut merged, finding, moment, of);
        }
        put_new(&mut advice, &findings.advice);
        let at = duration(at.as_nanos() as u64);
        let named =
            findings.notes.iter().map(|note| if of_all(note) { note.clone() } else { format!("At {at}: {note}") });
        put_new(&mut notes, &named.collect::<Vec<_>>());
    }
    merged.sort_by(|a, b| whole_gain(b).total_cmp(&whole_gain(a)));
    let quiet = merged.is_empty();
    let every = |healthy: &[Moment]| healthy.iter().all(|moment| moment.findings.healthy.is_some());
    let healthy = (quiet && every(&moments)).then(|| format!("at none of {of} moments of the run is there a finding"));
    let unexplained = moments.iter().filter_map(|moment| moment.findings.unexplained.clone()).next();
    let first = moments.into_iter().next()?.findings;
    Some(Findings { findings: merged, healthy, unexplained: unexplained.filter(|_| quiet), advice, notes, ..first })
}

fn add(merged: &mut Vec<Finding>, finding: &Finding, moment: &Moment, of: usize) {
    let at_ns = moment.at.as_nanos() as u64;
    let gain = finding.prediction.gain * moment.share;
    let Some(known) = merged.iter_mut().find(|known| is_same(known, finding)) else {
        let mut finding = finding.clone();
        finding.prediction.moments = Some(Moments { at_ns: vec![at_ns], of: of as u32, whole_gain: gain });
        merged.push(finding);
        return;
    };
    let mut moments = known.prediction.moments.take().unwrap_or_default();
    moments.whole_gain += gain;
    // Two findings of one moment are at the same time.
    if moments.at_ns.last() != Some(&at_ns) {
        moments.at_ns.push(at_ns);
    }
    if finding.prediction.gain > known.prediction.gain {
        *known = finding.clone();
    }
    known.prediction.moments = Some(moments);
}

/// Returns whether two findings are of one remedy and one function; where no function is named, of one change.
fn is_same(a: &Finding, b: &Finding) -> bool {
    let function = |finding: &Finding| finding.prediction.function.as_ref().map(|function| function.name.clone());
    a.remedy == b.remedy
        && match (function(a), function(b)) {
            (None, None) => a.treatment == b.treatment,
            (a, b) => a == b,
        }
}

fn whole_gain(finding: &Finding) -> f64 {
    finding.prediction.moments.as_ref().map_or(finding.prediction.gain, |moments| moments.whole_gain)
}

/// A note on a moment without a finding.
fn nothing_found(moment: &Moment) -> Option<String> {
    let why = match (&moment.findings.healthy, &moment.findings.unexplained) {
        (Some(why), _) => why,
        (None, Some(unexplained)) => &unexplained.why,
        (None, None) => return None,
    };
    Some(format!("At {}: {}.", duration(moment.at.as_nanos() as u64), why.trim_end_matches('.')))
}

fn put_new(all: &mut Vec<String>, more: &[String]) {
    for one in more {
        if !all.contains(one) {
            all.push(one.clone());
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use nearmiss_record::finding::{Evidence, EvidenceKind, FunctionGain, Prediction, Reach};

    fn finding(remedy: &str, function: &str, gain: f64) -> Finding {
        let function = Some(FunctionGain { name: function.to_owned(), ..FunctionGain::default() });
        Finding {
            remedy: remedy.to_owned(),
            known: EvidenceKind::Modelled,
            symptom: String::new(),
            cause: String::new(),
            evidence: Evidence::default(),
            treatment: String::new(),
            reach: Reach::Outside,
            prediction: Prediction { gain, function, ..Prediction::default() },
            unless: Vec::new(),
            apply: None,
            verify: None,
        }
    }

    fn moment(at_s: u64, share: f64, findings: Vec<Finding>) -> Moment {
        let healthy = findings.is_empty().then(|| "all is well".to_owned());
        let findings = Findings { findings, healthy, notes: vec!["once".to_owned()], ..Findings::default() };
        Moment { at: Duration::from_secs(at_s), share, findings }
    }

    #[test]
    fn the_same_finding_of_two_moments_is_one_and_ranks_by_the_whole_run() {
        let merged = over_moments(vec![
            moment(10, 0.5, vec![finding("first", "walk", 0.3)]),
            moment(30, 0.3, vec![finding("first", "walk", 0.6), finding("second", "count", 0.8)]),
            moment(50, 0.2, Vec::new()),
        ])
        .unwrap();
        let [walk, count] = &merged.findings[..] else { panic!("{:?}", merged.findings) };
        let of = |finding: &Finding| finding.prediction.moments.clone().unwrap();
        assert_eq!((walk.prediction.gain, of(walk).at_ns), (0.6, vec![10_000_000_000, 30_000_000_000]));
        assert!((of(walk).whole_gain - 0.33).abs() < 1e-12);
        assert_eq!((of(count).at_ns, of(count).of), (vec![30_000_000_000], 3));
        assert!((of(count).whole_gain - 0.24).abs() < 1e-12);
        assert_eq!(merged.notes, ["At 50.00 s: all is well.", "once"]);
        assert_eq!(merged.healthy, None);
    }

    #[test]
    fn a_run_that_is_well_at_each_moment_is_well() {
        let merged = over_moments(vec![moment(1, 0.5, Vec::new()), moment(2, 0.5, Vec::new())]).unwrap();
        assert_eq!(merged.healthy.as_deref(), Some("at none of 2 moments of the run is there a finding"));
        assert!(over_moments(Vec::new()).is_none());
    }
}
