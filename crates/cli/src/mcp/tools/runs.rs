//! The run that a call made or looked at: later calls name it.

use nearmiss_record::run::{self, RunDir};
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Runs that are looked through, the newest first.
const MOST: usize = 50;

/// The run in which a verb kept this record under this name.
pub fn with_record(place: &Path, name: &str, record: &impl Serialize) -> Option<String> {
    let record = serde_json::to_value(record).ok()?;
    let is_it = |run: &PathBuf| kept(&run.join(name)).is_some_and(|kept| kept == record);
    newest_first(place).into_iter().take(MOST).find(is_it).map(|run| run.display().to_string())
}

/// The run that was named, or the newest one.
pub fn named_or_newest(place: &Path, named: Option<&Path>) -> Option<String> {
    let run = match named {
        Some(named) => place.join(named),
        None => RunDir::newest(&place.join(run::DEFAULT_PARENT)).ok()?.path().to_owned(),
    };
    Some(run.display().to_string())
}

fn newest_first(place: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(place.join(run::DEFAULT_PARENT)).into_iter().flatten().flatten();
    let mut runs: Vec<_> =
        entries.filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()))).collect();
    runs.sort();
    runs.into_iter().rev().map(|(_, run)| run).collect()
}

/// A kept record without its checksum.
fn kept(file: &Path) -> Option<Value> {
    let mut record: Value = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
    record.as_object_mut()?.remove("checksum");
    Some(record)
}
