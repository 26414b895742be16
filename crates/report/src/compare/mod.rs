//! Runs side by side: what got better, what got worse, by how much, and how much of it is noise.

mod html;
mod join;
mod observed;
mod shown;
mod sides;
mod text;
mod traced;

pub use html::html;
pub use text::text;

use crate::load::{LoadError, Report};
use nearmiss_gate::CONFIDENCE;
use nearmiss_record::comparison::{ComparedRun, RunComparison, SCHEMA};
use nearmiss_record::observed::{FILE, Observed};
use nearmiss_record::run::{MANIFEST, Manifest, RunDir, RunError, RunKind};
use sides::letters;
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

/// Reads and compares runs of `trace`, or runs of `observe`: one or several a side.
pub fn compare(before: &[RunDir], after: &[RunDir]) -> Result<RunComparison, CompareError> {
    let all: Vec<&RunDir> = before.iter().chain(after).collect();
    if let Some(verdict) = all.iter().find(|run| run.kind() == RunKind::Verified) {
        return Err(CompareError::Verdict(verdict.path().to_owned()));
    }
    if let Some((first, other)) = all.first().zip(all.iter().find(|run| run.kind() != all[0].kind())) {
        return Err(CompareError::Kinds {
            before: first.path().to_owned(),
            before_kind: first.kind(),
            after: other.path().to_owned(),
            after_kind: other.kind(),
        });
    }
    let mut comparison = match all.first().map(|run| run.kind()) {
        Some(RunKind::Observed) => observations([before, after])?,
        _ => traces([before, after])?,
    };
    let letters = letters([before.len(), after.len()]).concat();
    let same = twice(&letters, &all);
    // The note on noise adds nothing to that on one run beside itself.
    let of_noise = (same.is_empty() || all.len() > 2).then(|| on_noise(before.len(), after.len()));
    comparison.notes.splice(0..0, same.into_iter().chain(of_noise));
    Ok(comparison)
}

/// Notes on runs that were given twice.
fn twice(letters: &[String], runs: &[&RunDir]) -> Vec<String> {
    // A path that cannot be resolved is no reason to refuse: the files were read.
    let places: Vec<_> = runs.iter().map(|run| run.path().canonicalize().ok()).collect();
    let earlier = |at: usize| places[..at].iter().position(|place| place.is_some() && *place == places[at]);
    let pairs = (0..runs.len()).filter_map(|at| Some((&letters[earlier(at)?], &letters[at])));
    let consequence = |first: &str, again: &str| match first.chars().next() == again.chars().next() {
        true => "the noise looks smaller than it is",
        false => "nothing can differ",
    };
    pairs
        .map(|(first, again)| format!("{first} and {again} are the same run: {}.", consequence(first, again)))
        .collect()
}

/// Returns how sure the words better and worse are.
fn on_noise(before: usize, after: usize) -> String {
    if before + after == 2 {
        return "One run a side: no difference is called better or worse, since the noise is not known. Several runs a \
                side show it: `nearmiss report --compare B1 B2 B3 --against A1 A2 A3`."
            .to_owned();
    }
    format!(
        "Figures are means of {before} and {after} runs. A difference that is called noise lies within Student's \
         interval ({}% confidence) of how the runs of a side differ among themselves.",
        CONFIDENCE * 100.0
    )
}

fn traces(sides: [&[RunDir]; 2]) -> Result<RunComparison, CompareError> {
    let read = |runs: &[RunDir]| runs.iter().map(Report::load).collect::<Result<Vec<_>, _>>();
    let [before, after] = sides;
    let (a, b) = (read(before)?, read(after)?);
    let run = |(run, report): (&RunDir, &Report)| ComparedRun {
        path: run.path().display().to_string(),
        target: nearmiss_record::words::quoted(&report.manifest.command),
        started: report.manifest.started.clone(),
        machine: report.model.machine.name.clone(),
    };
    Ok(RunComparison {
        schema: SCHEMA.to_owned(),
        kind: RunKind::Traced,
        origin: "modelled".to_owned(),
        before: before.iter().zip(&a).map(run).collect(),
        after: after.iter().zip(&b).map(run).collect(),
        tables: traced::tables([&a, &b]),
        notes: traced::notes([&a, &b]),
    })
}

fn observations(sides: [&[RunDir]; 2]) -> Result<RunComparison, CompareError> {
    let read = |runs: &[RunDir]| {
        let read = |run: &RunDir| Ok((run.read_json::<Manifest>(MANIFEST)?, run.read_json::<Observed>(FILE)?));
        runs.iter().map(read).collect::<Result<Vec<_>, RunError>>()
    };
    let [before, after] = sides;
    let (a, b) = (read(before)?, read(after)?);
    let run = |(run, (manifest, observed)): (&RunDir, &observed::Run)| ComparedRun {
        path: run.path().display().to_string(),
        target: observed.target.clone(),
        started: manifest.started.clone(),
        machine: manifest.machine.clone(),
    };
    Ok(RunComparison {
        schema: SCHEMA.to_owned(),
        kind: RunKind::Observed,
        origin: "measured".to_owned(),
        before: before.iter().zip(&a).map(run).collect(),
        after: after.iter().zip(&b).map(run).collect(),
        tables: observed::tables([&a, &b]),
        notes: observed::notes([&a, &b]),
    })
}
