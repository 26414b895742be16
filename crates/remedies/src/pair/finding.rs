//! From tasks that share caches to a finding: what they do to each other, and which of them belong together.

use super::evidence;
use super::judged::JudgedPairs;
use super::tables;
use super::tasks::USUAL_WINDOW;
use crate::command_line::command_line;
use nearmiss_analysis::{Case, CaseError, RehearsalRequest, Suspicion, Unrehearsed};
use nearmiss_machine::describe::Domains;
use nearmiss_record::finding::{EvidenceKind, Finding, Reach};
use nearmiss_record::rehearsal::Rehearsal;

/// Tasks that may do better beside others.
pub struct Pairing {
    pub domains: Domains,
    pub most_gain: f64,
}

impl Suspicion for Pairing {
    fn most_gain(&self) -> f64 {
        self.most_gain
    }

    fn finding(&self, case: &Case) -> Result<Finding, CaseError> {
        let case = case.traced()?;
        let judged = JudgedPairs::of(case, &self.domains, USUAL_WINDOW)?;
        judged.keep(case)?;
        let helps = judged.proposed().is_some();
        let run = case.run.path().display().to_string();
        let table = ["--table".to_owned(), run];
        let command = |verb: &str| command_line(verb, super::NAME, &table, &case.manifest.command);
        Ok(Finding {
            remedy: super::NAME.to_owned(),
            known: EvidenceKind::Modelled,
            symptom: evidence::symptom(&judged),
            cause: evidence::cause(&judged),
            evidence: evidence::evidence(&judged, self.most_gain),
            treatment: evidence::treatment(&judged),
            reach: Reach::Outside,
            prediction: judged.prediction(case),
            unless: vec![
                "the scheduler happens to place the tasks so already, or they wait for one another".to_owned(),
            ],
            apply: helps.then(|| command("apply")),
            verify: helps.then(|| command("verify")),
        })
    }

    fn rehearse(&self, case: &Case, request: &RehearsalRequest) -> Result<Rehearsal, CaseError> {
        let case = case.traced()?;
        let windows = if request.values.is_empty() { vec![USUAL_WINDOW] } else { request.numbers() };
        let judged = windows.iter().map(|window| JudgedPairs::of(case, &self.domains, *window));
        let judged = judged.collect::<Result<Vec<_>, _>>()?;
        // As the tables that are printed, the one that is kept is of the first window.
        judged.first().map_or(Ok(()), |first| first.keep(case))?;
        tables::rehearsal(case, &judged)
    }
}

/// Suspects tasks of a run with a trace that does not carry their places.
pub fn unrehearsed(why: String, most_gain: f64) -> Unrehearsed {
    Unrehearsed {
        remedy: super::NAME,
        sentence: format!("whether tasks would do better beside others is not known: {why}"),
        known: EvidenceKind::Modelled,
        symptom: "Several tasks wait for caches that they could share with others".to_owned(),
        cause: "Which tasks share a cache decides which lines stay in it.",
        lacking: "what other neighbours would gain",
        why,
        carry: "tasks",
        most_gain,
    }
}
