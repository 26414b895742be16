//! `verify` of a remedy: a command with and without it.

use super::how::How;
use super::sides::{Title, compare_sides};
use anyhow::Context;
use nearmiss_record::finding::{Findings, Prediction};
use nearmiss_record::run;
use nearmiss_record::verdict::Predicted;
use nearmiss_remedy::color::apply::{self as color, Options};
use nearmiss_verify::SideCommand;
use nearmiss_workload::Workload;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The remedies that can be verified.
#[derive(clap::Subcommand)]
pub enum Remedy {
    /// Does coloring help?
    #[command(after_help = "Examples:
  nearmiss verify color -- ./program
  nearmiss verify color --metric 'ns_per_visit ([0-9.]+)' -- ./program
  nearmiss verify color --beside './other' -- ./program    and does it harm another program?
  nearmiss verify color --require-gain 5% -- ./program     exit code 1 unless 5% are gained for sure")]
    Color {
        #[command(flatten)]
        color: color::Args,
        #[command(flatten)]
        how: How,
        /// Set the verdict beside what `diagnose` predicted for this run
        #[arg(long, value_name = "RUN")]
        against: Option<PathBuf>,
        /// The command and its arguments
        #[arg(last = true, required = true, value_name = "CMD")]
        command: Vec<OsString>,
    },
}

/// Runs the verb.
pub fn run(remedy: Remedy) -> anyhow::Result<ExitCode> {
    let Remedy::Color { color, how, against, command } = remedy;
    let title = Title {
        stem: "color".to_owned(),
        command: command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        remedy: Some(format!("color, {} colors", color.colors)),
        predicted: against.as_deref().map(|run| predicted(run, "color", how.metric.is_some())).transpose()?,
        notes: Vec::new(),
    };
    let without = Workload::new(command);
    let (with, coloring) = color::apply(without.clone(), &Options::from(&color))?;
    let name = format!("with color, {} colors", color.colors);
    compare_sides(
        &how,
        title,
        SideCommand { name: "without color".to_owned(), workload: without, engagement: None },
        SideCommand { name, workload: with, engagement: Some(Box::new(coloring)) },
    )
}

/// What was predicted of a remedy for a run. A number that the command prints is taken to be about the function that
/// gains most, its wall time about the whole of it.
fn predicted(run: &Path, remedy: &str, printed: bool) -> anyhow::Result<Predicted> {
    let prediction = prediction(run, remedy)?;
    let function = prediction.function.filter(|_| printed);
    let (low, high) = match &function {
        Some(f) => (f.gain.min(f.dependent_gain), f.gain.max(f.dependent_gain)),
        None => (prediction.low, prediction.high),
    };
    Ok(Predicted {
        run: run.display().to_string(),
        function: function.map(|f| f.name),
        low,
        high,
        overlap: prediction.overlap,
    })
}

fn prediction(run: &Path, remedy: &str) -> anyhow::Result<Prediction> {
    let findings: Findings = crate::case::find(Some(run), Path::new(run::DEFAULT_PARENT))?
        .read_json(run::FINDINGS)
        .map_err(|error| anyhow::anyhow!("{error}; `nearmiss diagnose {}` writes it", run.display()))?;
    let finding = findings.findings.into_iter().find(|finding| finding.remedy == remedy);
    Ok(finding.with_context(|| format!("{}: nothing was found that {remedy} remedies", run.display()))?.prediction)
}
