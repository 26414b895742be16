//! Sources on a command: a trace of it, an observation of it, or both.

use crate::replay::CaseError;
use crate::traced::Traced;
use nearmiss_record::observation::Observation;
use nearmiss_record::run::Manifest;
use nearmiss_record::words::duration;
use std::fmt;

/// Source that a remedy reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// A trace of every memory access.
    Trace,
    /// An observation of the live program.
    Observation,
    /// A trace or an observation.
    Either,
}

impl Needs {
    /// Returns whether a case has the source.
    pub fn are_satisfied_by(self, case: &Case) -> bool {
        match self {
            Needs::Trace => case.traced.is_some(),
            Needs::Observation => case.observation.is_some(),
            Needs::Either => true,
        }
    }
}

/// Writes the source as a sentence has it: `looks at …`.
impl fmt::Display for Needs {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Needs::Trace => "a trace (nearmiss trace -- CMD)",
            Needs::Observation => "an observation (nearmiss observe --log -- CMD)",
            Needs::Either => "a trace or an observation",
        })
    }
}

/// Everything that detection may look at; at least one of the two is there.
pub struct Case {
    /// A traced run on a machine.
    pub traced: Option<Traced>,
    /// An observed run.
    pub observation: Option<Observation>,
    /// Receives how many steps of a rehearsal on the observation are done, and of how many; rehearsals on the trace
    /// have [`Traced::on_progress`].
    pub on_progress: Box<dyn Fn(usize, usize) + Send + Sync>,
}

impl From<Traced> for Case {
    fn from(traced: Traced) -> Self {
        Case { traced: Some(traced), observation: None, on_progress: Box::new(|_, _| ()) }
    }
}

impl From<Observation> for Case {
    fn from(observation: Observation) -> Self {
        Case { traced: None, observation: Some(observation), on_progress: Box::new(|_, _| ()) }
    }
}

impl Case {
    /// The trace; a remedy that needs one is called only where there is one.
    pub fn traced(&self) -> Result<&Traced, CaseError> {
        self.traced.as_ref().ok_or_else(|| CaseError::Unfit("there is no trace to look at".to_owned()))
    }

    /// The observation; a remedy that needs one is called only where there is one.
    pub fn observation(&self) -> Result<&Observation, CaseError> {
        self.observation.as_ref().ok_or_else(|| CaseError::Unfit("there is no observation to look at".to_owned()))
    }

    /// Returns the manifest of the run.
    pub fn manifest(&self) -> Option<&Manifest> {
        let observed = self.observation.as_ref().map(Observation::manifest);
        self.traced.as_ref().map(|traced| &traced.manifest).or(observed)
    }

    /// The machine that the figures are about.
    pub fn machine_name(&self) -> &str {
        self.traced.as_ref().map_or("this machine", |traced| &traced.machine().name)
    }

    /// Returns the caution on the measurement behind the machine, if any.
    pub fn caution(&self) -> Option<&str> {
        self.traced.as_ref()?.machine().caution()
    }

    /// Facts a reader must know, one sentence each.
    pub fn notes(&self) -> Vec<String> {
        let covered = self.traced.iter().filter_map(covered);
        let traced = self.traced.iter().flat_map(|traced| &traced.model.notes);
        let observed = self.observation.iter().flat_map(|observation| &observation.observed().notes);
        covered.chain(traced.chain(observed).cloned()).collect()
    }
}

/// What no recording shows of a later part.
const BEHIND_A_PAUSE: &str = " A line that first shows up behind a pause is taken for found in a cache behind the first \
    with the chance that the parts come back to such lines in time; ranges have half and twice the waits for the rest.";

/// How much of the run was recorded, where that may not be all, what that is on the machine that is modelled, and what is
/// taken of the caches behind a pause.
fn covered(traced: &Traced) -> Option<String> {
    let coverage = traced.manifest.covered?;
    let sentence = coverage.sentence()?;
    let (time, machine) = (duration(traced.cpu_ns()), &traced.machine().name);
    let unseen = if coverage.parts > 1 { BEHIND_A_PAUSE } else { "" };
    Some(format!("{sentence} The recorded parts are {time} of CPU time on {machine}, modelled.{unseen}"))
}
