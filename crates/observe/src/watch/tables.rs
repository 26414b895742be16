//! The observation as tables and logs (Parquet), for DuckDB, Polars and their like, and for what replays it.

use super::{ObserveError, Outcome};
use nearmiss_record::logs::{IoTotals, LockTotals, NamedSample, PollTotals, TaskTime, write};
use std::path::Path;

/// Writes the table of each instrument that ran, and the log if one was kept: those that [`nearmiss_record::logs`] lists.
pub fn write_tables(directory: &Path, outcome: &Outcome) -> Result<(), ObserveError> {
    let observed = &outcome.observed;
    let ran = |name: &str| observed.instruments.iter().any(|i| i.name == name && i.on);
    if let Some(profile) = &observed.profile {
        write(directory, NamedSample::rows(profile))?;
    }
    if ran("locks") {
        write(directory, observed.locks.iter().map(LockTotals::from))?;
    }
    if ran("polls") {
        write(directory, observed.polls.iter().map(PollTotals::from))?;
    }
    if ran("io") {
        write(directory, observed.io.iter().map(IoTotals::from))?;
    }
    if ran("sched") {
        write(directory, observed.tasks.iter().flat_map(TaskTime::rows))?;
    }
    Ok(outcome.log.write(directory)?)
}
