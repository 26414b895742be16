//! The pairs of a run as a file in its directory, by which `apply` places the tasks of a later run.

use super::replays::Beside;
use super::tasks::Sample;
use crate::replay::CaseError;
use nearmiss_record::run::RunDir;
use serde::Serialize;

/// Its file in a run's directory.
pub const FILE: &str = "pairs.json";
/// `nearmiss/pairs/1`.
pub const SCHEMA: &str = "nearmiss/pairs/1";

/// Tasks, and what each does beside each other one.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct KeptPairs<'a> {
    schema: &'static str,
    tasks: Vec<KeptTask<'a>>,
    pairs: &'a [Beside],
}

/// A task of the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct KeptTask<'a> {
    /// How many tasks of the command began before it: so it is known in a later run.
    order: usize,
    name: &'a str,
    /// Its cycles alone.
    weight: f64,
}

/// Writes the file.
pub fn keep(run: &RunDir, sample: &Sample, alone: &[f64], pairs: &[Beside]) -> Result<(), CaseError> {
    let tasks = sample.tasks.iter().zip(alone);
    let tasks = tasks.map(|(task, weight)| KeptTask { order: task.order, name: &task.name, weight: *weight }).collect();
    Ok(run.write_json(FILE, &KeptPairs { schema: SCHEMA, tasks, pairs })?)
}
