//! From a thread that waits often to a finding: what happens, what to do, what it would gain.

use super::apply::arguments;
use super::calls::Calls;
use super::intervals::{Basis, Choice, Tried};
use super::logs::Logs;
use super::{BUDGET, NAME};
use nearmiss_analysis::{Case, CaseError, RehearsalRequest, Suspicion, Value};
use nearmiss_record::finding::{Base, Evidence, EvidenceKind, EvidenceLine, Finding, LEAST_GAIN, Prediction, Reach};
use nearmiss_record::rehearsal::Rehearsal;
use nearmiss_record::words::{grouped, percent};
use std::sync::Arc;

/// A thread that waits often for few events.
pub struct Poller {
    /// Calls of the thread.
    pub calls: Calls,
    /// Share of the command's CPU time that the calls take.
    pub share: f64,
    /// The logs, in which the thread is one of several.
    pub logs: Arc<Logs>,
}

impl Poller {
    fn tried(&self, case: &Case, request: &RehearsalRequest) -> Result<Tried, CaseError> {
        let observed = case.observation()?.observed();
        let thread = observed.tasks.iter().find(|task| task.thread.cast_unsigned() == self.calls.thread);
        let basis = Basis {
            cpu_ns: observed.cpu_ns,
            // The thread counts as the whole command where the observation has no tasks.
            thread_cpu_ns: thread.map_or(observed.cpu_ns, |task| task.cpu_ns),
            waits: observed.waits,
            // A second at most.
            budget_ns: request.limit.as_ref().and_then(Value::number).unwrap_or(BUDGET.as_nanos() as u64),
            intervals: request.numbers(),
        };
        Ok(Tried::new(self.logs.of_thread(case, &self.calls)?, basis, &*case.on_progress))
    }

    fn symptom(&self, duration_ns: u64) -> String {
        let a_second = self.calls.calls as f64 * 1e9 / duration_ns.max(1) as f64;
        format!(
            "`{}` waits {} times a second for {:.1} events each, and the waits take {} of the CPU time",
            self.calls.name,
            grouped(a_second as u64),
            self.calls.events_a_call(),
            percent(self.share)
        )
    }

    fn evidence(&self, tried: &Tried) -> Evidence {
        let call = super::words::time(self.calls.cost_ns());
        let call = format!("A call takes {call} of CPU time. {}{}", tried.of_sleeps(), tried.of_batches());
        Evidence {
            lines: vec![EvidenceLine::new("Cost", call), EvidenceLine::new("Interval", tried.choice().to_string())],
            tables: vec![tried.table()],
            // Beside the waits, fewer returns are saved too.
            most_gain: self.share.max(tried.choice().saved),
        }
    }
}

impl Suspicion for Poller {
    fn most_gain(&self) -> f64 {
        self.share
    }

    fn finding(&self, case: &Case) -> Result<Finding, CaseError> {
        let observation = case.observation()?;
        let tried = self.tried(case, &RehearsalRequest::default())?;
        let choice = tried.choice();
        let command = &observation.manifest().command;
        let line = |verb: &str| (!command.is_empty()).then(|| arguments(verb, choice.interval_ns, command));
        Ok(Finding {
            remedy: NAME.to_owned(),
            known: EvidenceKind::Measured,
            symptom: self.symptom(observation.observed().duration_ns),
            cause: "Each call returns as soon as one descriptor is ready, so that the calls rise with the load."
                .to_owned(),
            evidence: self.evidence(&tried),
            treatment: format!(
                "At least {} from the return of a wait to the next wait",
                super::words::time(choice.interval_ns)
            ),
            reach: Reach::Outside,
            prediction: prediction(&choice),
            unless: vec![
                "the clients are few and each waits for its answer before it sends again".to_owned(),
                "the program takes one event a wait and leaves the others".to_owned(),
            ],
            apply: line("apply"),
            verify: line("verify"),
        })
    }

    fn beyond_limit(&self, case: &Case) -> Result<Option<String>, CaseError> {
        const MS: u64 = 1_000_000;
        let beyond = self.tried(case, &RehearsalRequest::default())?.beyond_budget();
        let worth = beyond.filter(|(_, saved)| *saved >= LEAST_GAIN);
        Ok(worth.map(|(added_ns, saved)| {
            let (budget, saved) = (added_ns.div_ceil(MS), percent(saved));
            format!("within {budget} ms {NAME} would save {saved}: `nearmiss rehearse {NAME} --budget {budget}ms`")
        }))
    }

    fn rehearse(&self, case: &Case, request: &RehearsalRequest) -> Result<Rehearsal, CaseError> {
        let tried = self.tried(case, request)?;
        Ok(Rehearsal {
            remedy: NAME.to_owned(),
            subject: format!("{} waits of `{}`, thread {}", grouped(tried.calls()), self.calls.name, self.calls.thread),
            basis: format!("from the log of every wait; {}", tried.choice().in_short()),
            placements: Vec::new(),
            table: tried.table(),
            more: Vec::new(),
        })
    }
}

fn prediction(choice: &Choice) -> Prediction {
    Prediction {
        gain: choice.saved,
        low: choice.saved_between[0],
        high: choice.saved_between[1],
        of: Base::other("the CPU time"),
        approximate: vec![
            "The gain is the CPU time of the calls saved, and of what each return takes beside its events, less that of \
             the sleeps."
                .to_owned(),
            "The clients send as they sent.".to_owned(),
        ],
        ..Prediction::default()
    }
}
