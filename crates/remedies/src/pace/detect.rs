//! Which threads of an observed program wait often for few events.

use super::BUDGET;
use super::calls::{Calls, by_thread};
use super::finding::Poller;
use super::logs::Logs;
use nearmiss_analysis::{Case, CaseError, Suspicion, Suspicions};
use nearmiss_record::logs::PollCall;
use std::sync::Arc;
use std::time::Duration;

/// The longest interval that is tried.
const LONGEST: Duration = Duration::from_millis(40);

/// Suspects everything in an observation that fewer waits may help. If nothing does within the usual budget, and a log
/// has the times of the calls: the busiest thread that a longer interval may help.
pub fn detect(case: &Case) -> Result<Suspicions, CaseError> {
    let observation = case.observation()?;
    let observed = observation.observed();
    let within = |interval| {
        by_thread(observed).into_iter().filter(move |calls| calls.could_be_fewer(interval, observed.duration_ns))
    };
    let mut pollers: Vec<Calls> = within(BUDGET).collect();
    if pollers.is_empty() && observation.log::<PollCall>()?.is_some() {
        pollers.extend(within(LONGEST).max_by_key(|calls| calls.calls));
    }
    let logs = Logs::of(&pollers);
    let poller = |calls: Calls| {
        let share = calls.on_cpu_ns as f64 / observed.cpu_ns.max(1) as f64;
        Box::new(Poller { calls, share, logs: Arc::clone(&logs) }) as Box<dyn Suspicion>
    };
    Ok(pollers.into_iter().map(poller).collect())
}
