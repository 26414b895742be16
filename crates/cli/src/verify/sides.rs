//! Runs two sides, keeps the verdict as a run, prints it.

use super::how::ComparisonArgs;
use crate::command_line::shell;
use crate::counting::Counting;
use crate::exit::{self, Interrupted};
use crate::interrupt;
use crate::output::print;
use crate::progress;
use crate::run_name::run_name;
use anyhow::Context;
use nearmiss_record::run::{self, Manifest, RunDir};
use nearmiss_record::verdict::{Outcome, Predicted, Verdict};
use nearmiss_verify::{Commands, Error, Metric, Plan, Printed, SideCommand};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Subject of a comparison, beside its two sides.
pub struct Title {
    /// Stem of the run directory's name: a remedy, or a program.
    pub stem: String,
    /// Command line as typed, for the manifest.
    pub command: Vec<String>,
    /// The remedy with its parameters; none: two commands.
    pub remedy: Option<String>,
    /// Prediction, where the verdict is to stand beside it.
    pub predicted: Option<Predicted>,
    /// Facts that a reader of the verdict must know.
    pub notes: Vec<String>,
}

/// Compares two sides and reports which is better. The status is that of the gate (`--require-gain`).
///
/// `start` is a program that does nothing, without and with the remedy.
pub fn compare_sides(
    how: &ComparisonArgs,
    mut title: Title,
    without: SideCommand,
    with: SideCommand,
    start: Option<(SideCommand, SideCommand)>,
) -> anyhow::Result<ExitCode> {
    let figures = how.figures()?;
    let plan = how.plan(&figures);
    let load = how.load.under_load(figures.clone())?;
    let counts = Counting::new(&how.count)?;
    let stop = stopped_by_signals()?;
    // Bad input is refused before anything is left on the disk.
    let kept = RunDir::create(&how.runs, &run_name("verify-", &title.stem))?;
    let started = jiff::Timestamp::now();
    let mut commands = Commands::new(without, with, kept.path()).stop(stop);
    commands = match load {
        Some(load) => commands.under_load(load),
        None => printing(commands, figures),
    };
    if let Some(prepare) = &how.prepare {
        commands = commands.prepare(shell(prepare));
    }
    if let Some(neighbour) = &how.beside {
        commands = commands.beside(shell(neighbour));
    }
    if let Some(counts) = counts {
        commands = commands.probe(Box::new(counts));
    }
    // A server has started when its load begins.
    if let Some((without, with)) = start.filter(|_| !how.load.is_given())
        && let Err(error) = commands.measure_start(without, with)
    {
        title.notes.push(format!("The remedy's start could not be measured: {error}"));
    }
    commands = commands.on_progress(report_progress(&plan));
    let stopped_first = interrupt::for_others(1);
    let compared = commands.compare(&plan);
    drop(stopped_first);
    if compared.as_ref().is_err_and(|error| !error.names_output()) {
        kept.discard();
    }
    match compared {
        Ok(verdict) => keep_and_print(how, title, started, &kept, verdict),
        Err(interrupted @ Error::Interrupted { .. }) => Err(Interrupted(interrupted.to_string()).into()),
        Err(error) => Err(error.into()),
    }
}

/// Reports the progress of a comparison: of the least number of runs, and then of the time.
fn report_progress(plan: &Plan) -> Box<dyn Fn(usize)> {
    let least = 2 * (plan.least_pairs + plan.warm_up);
    let (runs, time) = (
        progress::of("comparing, of the least number of runs"),
        progress::of("comparing until the verdict is certain, of the longest time"),
    );
    let (begun, limit) = (Instant::now(), plan.time_limit);
    let ms = |time: Duration| time.as_millis() as u64;
    Box::new(move |ended| match ended < least {
        true => runs.at(ended as u64, least as u64),
        false => time.at(ms(begun.elapsed()), ms(limit)),
    })
}

/// The first figure decides, and the others have verdicts of their own.
fn printing(commands: Commands, mut figures: Vec<Printed>) -> Commands {
    if figures.is_empty() {
        return commands;
    }
    let first = figures.remove(0);
    commands.metric(Metric::Printed(first)).also_printed(figures)
}

/// Returns a flag that becomes true on a request to stop.
fn stopped_by_signals() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, stop.clone()).context("cannot listen for Ctrl-C")?;
    }
    Ok(stop)
}

/// The manifest is written last: a directory with one is a run with a whole verdict.
fn keep_and_print(
    how: &ComparisonArgs,
    title: Title,
    started: jiff::Timestamp,
    kept: &RunDir,
    mut verdict: Verdict,
) -> anyhow::Result<ExitCode> {
    let manifest = manifest(&title, started);
    verdict.remedy = title.remedy;
    verdict.predicted = title.predicted;
    verdict.notes.splice(..0, title.notes);
    kept.write_json(run::VERDICT, &verdict)?;
    kept.write_json(run::MANIFEST, &manifest)?;
    if how.json {
        print(&format!("{}\n", serde_json::to_string(&verdict).context("verdict")?))?;
    } else {
        print(&nearmiss_report::verdict::render(&verdict))?;
        print(&format!("\noutput of the runs: {}\n", kept.path().display()))?;
    }
    Ok(gate(&verdict))
}

/// Returns the manifest of a run of `verify`.
pub fn manifest(title: &Title, started: jiff::Timestamp) -> Manifest {
    Manifest {
        schema: run::SCHEMA.to_owned(),
        nearmiss: env!("CARGO_PKG_VERSION").to_owned(),
        command: title.command.clone(),
        cwd: std::env::current_dir().map(|d| d.display().to_string()).unwrap_or_default(),
        started: started.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        recorder: "verify".to_owned(),
        machine: "host".to_owned(),
        cpus: std::thread::available_parallelism().map_or(0, |n| n.get() as u32),
        notes: title.notes.clone(),
        ..Manifest::default()
    }
}

fn gate(verdict: &Verdict) -> ExitCode {
    // A load at a rate is a condition too.
    match verdict.required_gain_met == Some(false) || verdict.outcome == Outcome::Void {
        true => ExitCode::from(exit::CONDITION_FAILED),
        false => ExitCode::SUCCESS,
    }
}
