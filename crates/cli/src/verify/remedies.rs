//! `verify` of a remedy: a command with and without it.

use super::how::ComparisonArgs;
use super::in_guests::{self, GuestComparison, InGuests};
use super::sides::{Title, compare_sides};
use crate::Remedies;
use crate::by_remedy::chosen_remedy;
use anyhow::{Context, ensure};
use clap::{ArgMatches, Args as _, Command, FromArgMatches};
use nearmiss_analysis::Remedy;
use nearmiss_record::finding::{Findings, Prediction, Reach};
use nearmiss_record::run::{self, RunDir};
use nearmiss_record::verdict::Predicted;
use nearmiss_verify::SideCommand;
use nearmiss_workload::Workload;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A program that takes only the time of its start.
const DOES_NOTHING: &str = "true";

/// Arguments that `verify` takes beside a remedy's own options.
#[derive(clap::Args)]
struct VerifyArgs {
    #[command(flatten)]
    how: ComparisonArgs,
    #[command(flatten)]
    guests: InGuests,
    /// Set the verdict beside what `diagnose` predicted for this run
    #[arg(long, value_name = "RUN")]
    against: Option<PathBuf>,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// The arguments of one remedy's subcommand.
pub fn arguments(command: Command, remedy: &Remedy) -> Command {
    VerifyArgs::augment_args((remedy.options)(command))
}

/// Runs the verb.
pub fn run(given: &ArgMatches, remedies: Remedies) -> anyhow::Result<ExitCode> {
    let (remedy, given) = chosen_remedy(given, remedies)?;
    let VerifyArgs { how, guests, against, command } = VerifyArgs::from_arg_matches(given)?;
    let name = (remedy.title)(given);
    let title = Title {
        stem: remedy.name.to_owned(),
        command: command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        remedy: Some(name.clone()),
        predicted: against
            .as_deref()
            .map(|run| predicted(run, &command, remedy.name, how.judges_what_is_printed()))
            .transpose()?,
        notes: Vec::new(),
    };
    if let Some(machine) = &guests.in_guests {
        let comparison = GuestComparison {
            remedy,
            given,
            command: &command,
            title,
            runs: &how.runs,
            seed: how.seed,
            json: how.json,
        };
        return in_guests::run(&guests, machine, comparison);
    }
    let without = Workload::new(command);
    let with = (remedy.apply)(without.clone(), given)?;
    let side = |name, workload, engagement| SideCommand { name, workload, engagement };
    // A remedy that does not take this program has no separable start.
    let nothing = Workload::new([DOES_NOTHING]);
    let start = (remedy.apply)(nothing.clone(), given).ok().map(|applied| {
        let named = |workload, engagement| side(DOES_NOTHING.to_owned(), workload, engagement);
        (named(nothing, None), named(applied.workload, Some(applied.engagement)))
    });
    compare_sides(
        &how,
        title,
        side(format!("without {}", remedy.name), without, None),
        side(format!("with {name}"), with.workload, Some(with.engagement)),
        start,
    )
}

/// Returns the prediction of a remedy for a run. A number that the command prints is taken to be about the function
/// that gains most, its wall time about the whole of it.
fn predicted(run: &Path, command: &[OsString], remedy: &str, printed: bool) -> anyhow::Result<Predicted> {
    let prediction = prediction(run, command, remedy)?;
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

/// Checks that a run is of the command's program: predictions hold for one program alone. Its arguments may differ: a
/// trace is of a short run.
fn same_program(run: &Path, traced: &[String], command: &[OsString]) -> anyhow::Result<()> {
    let name = |word: Option<&Path>| word.and_then(Path::file_name).map(OsStr::to_owned);
    // The command of a process that was observed by its number is unknown.
    if traced.is_empty() {
        return Ok(());
    }
    let (of_run, of_command) = (traced.first().map(Path::new), command.first().map(Path::new));
    ensure!(
        name(of_run) == name(of_command),
        "{}: this run is of `{}`: name a run of the command that is verified",
        run.display(),
        traced.join(" ")
    );
    Ok(())
}

fn prediction(run: &Path, command: &[OsString], remedy: &str) -> anyhow::Result<Prediction> {
    let findings: Findings = RunDir::open(run)?
        .read_json(run::FINDINGS)
        .map_err(|error| anyhow::anyhow!("{error}; `nearmiss diagnose {}` writes it", run.display()))?;
    same_program(run, &findings.command, command)?;
    let of_remedy = findings.findings.into_iter().filter(|finding| finding.remedy == remedy);
    let (outside, inside): (Vec<_>, Vec<_>) = of_remedy.partition(|finding| finding.reach == Reach::Outside);
    let nothing = match inside.first() {
        Some(_) => {
            format!("what was found is for the program's author to change: {remedy} does not reach it from outside")
        }
        None => format!("nothing was found that {remedy} remedies"),
    };
    let finding = outside.into_iter().next();
    Ok(finding.with_context(|| format!("{}: {nothing}", run.display()))?.prediction)
}
