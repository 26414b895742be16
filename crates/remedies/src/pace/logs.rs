//! The log of an observation and its replays: read once and replayed once an interval, however often they are looked at.

use super::calls::{Calls, is_paced, no_log};
use super::replay::{Log, Replayed};
use nearmiss_analysis::{Case, CaseError};
use nearmiss_record::logs::PollCall;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// Process and thread.
type Thread = (u32, u32);
/// A look at how long it takes is worth so many rows.
const ROWS_A_STEP: usize = 1 << 16;

/// The log of one thread, and the effect of the requested intervals on it.
#[derive(Debug, Default)]
pub struct ReplayedLog {
    /// The log.
    pub log: Log,
    made: Mutex<BTreeMap<u64, Replayed>>,
}

impl ReplayedLog {
    /// A log of which no replay is made yet.
    pub fn of(log: Log) -> Arc<Self> {
        Arc::new(ReplayedLog { log, made: Mutex::default() })
    }

    /// The log under an interval.
    pub fn replay(&self, interval_ns: u64) -> Replayed {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        *made.entry(interval_ns).or_insert_with(|| self.log.replay(interval_ns))
    }
}

/// The logs of those threads of an observation that may be helped.
#[derive(Debug, Default)]
pub struct Logs {
    threads: BTreeSet<Thread>,
    read: Mutex<Option<BTreeMap<Thread, Arc<ReplayedLog>>>>,
}

impl Logs {
    /// The logs of these threads, which are read when the first of them is needed.
    pub fn of(threads: &[Calls]) -> Arc<Self> {
        let threads = threads.iter().map(|calls| (calls.process, calls.thread)).collect();
        Arc::new(Logs { threads, read: Mutex::default() })
    }

    /// Returns the replays of one thread's log.
    ///
    /// Errors: the observation has no log, or one that cannot be read.
    pub fn of_thread(&self, case: &Case, calls: &Calls) -> Result<Arc<ReplayedLog>, CaseError> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let logs = match read.take() {
            Some(logs) => logs,
            None => self.all(case)?.ok_or_else(|| no_log(calls))?,
        };
        let thread = (calls.process, calls.thread);
        Ok(Arc::clone(read.insert(logs).entry(thread).or_default()))
    }

    fn all(&self, case: &Case) -> Result<Option<BTreeMap<Thread, Arc<ReplayedLog>>>, CaseError> {
        let Some(rows) = case.observation()?.log::<PollCall>()? else { return Ok(None) };
        let mut calls: BTreeMap<Thread, Vec<PollCall>> = BTreeMap::new();
        for (at, row) in rows.enumerate() {
            let row = row?;
            if at % ROWS_A_STEP == 0 {
                (case.on_progress)(0, 1);
            }
            let thread = (row.process, row.thread);
            if self.threads.contains(&thread) && is_paced(&row.call) {
                calls.entry(thread).or_default().push(row);
            }
        }
        Ok(Some(calls.into_iter().map(|(thread, calls)| (thread, ReplayedLog::of(Log::new(calls)))).collect()))
    }
}
