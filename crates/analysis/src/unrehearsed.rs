//! Suspicion of a remedy in a run that lacks the data for the remedy's gain.

use crate::case::Case;
use crate::contract::{RehearsalRequest, Suspicion};
use crate::replay::CaseError;
use nearmiss_record::finding::{Evidence, EvidenceKind, Finding, Prediction, Reach};
use nearmiss_record::rehearsal::Rehearsal;

/// The suspicion. It stays one until the run is recorded again with more in its trace.
pub struct Unrehearsed {
    /// Name of the remedy.
    pub remedy: &'static str,
    /// Known and unknown facts, as a sentence without its end.
    pub sentence: String,
    /// How the facts are known.
    pub known: EvidenceKind,
    /// Symptom, in short.
    pub symptom: String,
    /// Why the suspicion would matter.
    pub cause: &'static str,
    /// Quantity that the run lacks: `what it would gain`.
    pub lacking: &'static str,
    /// Why the run lacks the quantity.
    pub why: String,
    /// Value of `nearmiss trace --carry` for a run that has the quantity.
    pub carry: &'static str,
    /// Share of the command's cost that could be saved at the very most.
    pub most_gain: f64,
}

impl Suspicion for Unrehearsed {
    fn most_gain(&self) -> f64 {
        self.most_gain
    }

    fn lacks(&self, _: &Case) -> Option<&'static str> {
        Some(self.carry)
    }

    fn finding(&self, _: &Case) -> Result<Finding, CaseError> {
        let change = format!("record the run again with `nearmiss trace --carry {}`", self.carry);
        Ok(Finding {
            remedy: self.remedy.to_owned(),
            known: self.known,
            symptom: self.symptom.clone(),
            cause: self.cause.to_owned(),
            evidence: Evidence { most_gain: self.most_gain, ..Evidence::default() },
            treatment: format!("None yet: the run does not show {}", self.lacking),
            reach: Reach::Inside { why: self.why.clone(), change },
            prediction: Prediction::default(),
            unless: Vec::new(),
            apply: None,
            verify: None,
        })
    }

    fn beyond_limit(&self, _: &Case) -> Result<Option<String>, CaseError> {
        Ok(Some(self.sentence.clone()))
    }

    fn rehearse(&self, _: &Case, _: &RehearsalRequest) -> Result<Rehearsal, CaseError> {
        Err(CaseError::Unfit(self.sentence.clone()))
    }
}
