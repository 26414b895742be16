//! Two runs side by side: what got better, what got worse, by how much.

mod html;
mod join;
mod observed;
mod shown;
mod text;
mod traced;

pub use html::html;
pub use text::text;

use crate::load::{LoadError, Report};
use nearmiss_record::comparison::{ComparedRun, RunComparison, SCHEMA};
use nearmiss_record::observed::{FILE, Observed};
use nearmiss_record::run::{MANIFEST, Manifest, RunDir, RunError, RunKind};
use std::path::PathBuf;

/// Why two runs cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// The files of a run cannot be read.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A traced run has no sound model.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The figures of the two runs are not of the same things.
    #[error("{before} is {before_kind}, {after} is {after_kind}: compare two runs of the same kind")]
    Kinds {
        /// The first run.
        before: PathBuf,
        /// Kind of the first run.
        before_kind: RunKind,
        /// The second run.
        after: PathBuf,
        /// Kind of the second run.
        after_kind: RunKind,
    },
    /// A verdict compares already.
    #[error("{0} is a run of `nearmiss verify`, which has both sides in it: `nearmiss report {0}` shows its verdict")]
    Verdict(PathBuf),
}

/// Reads and compares two runs of `trace`, or two of `observe`.
pub fn compare(before: &RunDir, after: &RunDir) -> Result<RunComparison, CompareError> {
    if let Some(verdict) = [before, after].into_iter().find(|run| run.kind() == RunKind::Verified) {
        return Err(CompareError::Verdict(verdict.path().to_owned()));
    }
    if before.kind() != after.kind() {
        return Err(CompareError::Kinds {
            before: before.path().to_owned(),
            before_kind: before.kind(),
            after: after.path().to_owned(),
            after_kind: after.kind(),
        });
    }
    let mut comparison = match before.kind() {
        RunKind::Observed => observations(before, after)?,
        _ => traces(before, after)?,
    };
    // A path that cannot be resolved is no reason to refuse: the files were read.
    if let (Ok(a), Ok(b)) = (before.path().canonicalize(), after.path().canonicalize())
        && a == b
    {
        comparison.notes.insert(0, "A and B are the same run: nothing can differ.".to_owned());
    }
    Ok(comparison)
}

fn traces(before: &RunDir, after: &RunDir) -> Result<RunComparison, CompareError> {
    let (a, b) = (Report::load(before)?, Report::load(after)?);
    let run = |run: &RunDir, report: &Report| ComparedRun {
        path: run.path().display().to_string(),
        target: nearmiss_record::words::quoted(&report.manifest.command),
        started: report.manifest.started.clone(),
        machine: report.model.machine.name.clone(),
    };
    Ok(RunComparison {
        schema: SCHEMA.to_owned(),
        kind: RunKind::Traced,
        origin: "modelled".to_owned(),
        before: run(before, &a),
        after: run(after, &b),
        tables: traced::tables(&a, &b),
        notes: traced::notes(&a, &b),
    })
}

fn observations(before: &RunDir, after: &RunDir) -> Result<RunComparison, CompareError> {
    let read =
        |run: &RunDir| Ok::<_, RunError>((run.read_json::<Manifest>(MANIFEST)?, run.read_json::<Observed>(FILE)?));
    let (a, b) = (read(before)?, read(after)?);
    let run = |run: &RunDir, (manifest, observed): &(Manifest, Observed)| ComparedRun {
        path: run.path().display().to_string(),
        target: observed.target.clone(),
        started: manifest.started.clone(),
        machine: manifest.machine.clone(),
    };
    Ok(RunComparison {
        schema: SCHEMA.to_owned(),
        kind: RunKind::Observed,
        origin: "measured".to_owned(),
        before: run(before, &a),
        after: run(after, &b),
        tables: observed::tables(&a.1, &b.1),
        notes: observed::notes(&a, &b),
    })
}
