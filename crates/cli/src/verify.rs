//! The verb `verify`: a command with and without a remedy, interleaved, and a verdict.

use crate::Remedies;
use crate::counting::Counting;
use crate::run_name::run_name;
use crate::verbs::{asked, of_remedies};
use anyhow::Context;
use clap::{ArgMatches, Args as _, Command, FromArgMatches};
use nearmiss_record::finding::{Findings, Prediction};
use nearmiss_record::run::{self, RunDir, write_whole};
use nearmiss_record::words::percent;
use nearmiss_remedy::Remedy;
use nearmiss_verify::{Better, Commands, Metric, Plan, SideCommand, Verdict};
use nearmiss_workload::Workload;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What `verify` takes beside a remedy's own options.
#[derive(clap::Args)]
struct Own {
    #[command(flatten)]
    how: How,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// A subcommand a remedy.
pub fn arguments(command: Command, remedies: Remedies) -> Command {
    let arguments = |command, remedy: &Remedy| Own::augment_args((remedy.options)(command));
    of_remedies(command, remedies, |remedy| remedy.verify_help, arguments)
}

#[derive(clap::Args)]
struct How {
    /// Judge a number that the command prints: the regular expression's first group [default: wall time]
    #[arg(long, value_name = "REGEX")]
    metric: Option<String>,
    /// A higher number is better
    #[arg(long, requires = "metric")]
    higher: bool,
    /// A shell command that runs beside each run: does the remedy harm it?
    #[arg(long, value_name = "CMD2")]
    beside: Option<String>,
    /// Also count this event, as `perf list` names it (repeatable) [default: cycles, instructions and cache-misses,
    /// where the machine has counters]
    #[arg(long = "count", value_name = "EVENT")]
    count: Vec<String>,
    /// Set the verdict beside what `diagnose` predicted for this run
    #[arg(long, value_name = "RUN")]
    against: Option<PathBuf>,
    /// Exit with 1 unless this gain is certain, such as 5%
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    require_gain: Option<f64>,
    /// Run at least so many pairs: more than decide the verdict make its interval narrower
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(6..))]
    pairs: u16,
    /// Begin no new pairs after this time
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = humantime::parse_duration)]
    time_limit: Duration,
    /// Seed of the order of runs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print the verdict as JSON
    #[arg(long)]
    json: bool,
    /// Where the runs' output is kept
    #[arg(long, value_name = "DIR", default_value = run::DEFAULT_PARENT)]
    runs: PathBuf,
}

/// `5%` or `0.05`, as a share.
fn parse_share(text: &str) -> Result<f64, String> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|p| p / 100.0),
        None => text.parse(),
    };
    share
        .ok()
        .filter(|s| (0.0..1.0).contains(s))
        .ok_or_else(|| format!("`{text}` is not a share; write for example 5%"))
}

/// What was predicted of a remedy for a run.
fn predicted(run: &Path, remedy: &str) -> anyhow::Result<Prediction> {
    let findings: Findings = RunDir::open(run)?
        .read_json(run::FINDINGS)
        .map_err(|error| anyhow::anyhow!("{error}; `nearmiss diagnose {}` writes it", run.display()))?;
    let finding = findings.findings.into_iter().find(|finding| finding.remedy == remedy);
    Ok(finding.with_context(|| format!("{}: nothing was found that {remedy} remedies", run.display()))?.prediction)
}

/// Predicted against measured. A number that the command prints is taken to be about the function that gains most, its
/// wall time about the whole of it.
fn beside(predicted: &Prediction, verdict: &Verdict, printed: bool) -> String {
    let measured = 1.0 - verdict.comparison.ratio;
    let (what, low, high) = match &predicted.function {
        Some(function) if printed => {
            let (a, b) = (function.gain, function.dependent_gain);
            (format!("`{}`", function.name), a.min(b), a.max(b))
        }
        _ => ("the command".to_owned(), predicted.low, predicted.high),
    };
    let how = match (predicted.overlap.map(percent), printed) {
        (Some(overlap), true) => format!(" (overlap {overlap} to none)"),
        (Some(overlap), false) => format!(" (overlap {overlap})"),
        (None, _) => String::new(),
    };
    let apart = if measured < low { low - measured } else { (measured - high).max(0.0) };
    format!(
        "predicted for {what}: {} to {} saved{how}\nmeasured, {}: {} saved; {:.0} points from what was predicted",
        percent(low),
        percent(high),
        verdict.comparison.metric,
        percent(measured),
        apart * 100.0
    )
}

/// Runs the verb.
pub fn run(given: &ArgMatches, remedies: Remedies) -> anyhow::Result<ExitCode> {
    let (remedy, given) = asked(given, remedies)?;
    let Own { how, command } = Own::from_arg_matches(given)?;
    let metric = how.metric.as_deref().map_or_else(|| Ok(Metric::default()), Metric::printed)?;
    let plan = Plan {
        metric: metric.name().to_owned(),
        better: if how.higher { Better::Higher } else { Better::Lower },
        seed: how.seed,
        least_pairs: how.pairs.into(),
        most_pairs: Plan::default().most_pairs.max(how.pairs.into()),
        time_limit: how.time_limit,
        required_gain: how.require_gain,
        ..Plan::default()
    };
    let predicted = how.against.as_deref().map(|run| predicted(run, remedy.name)).transpose()?;
    let without = Workload::new(command);
    let applied = (remedy.apply)(without.clone(), given)?;
    let kept = RunDir::create(&how.runs, &run_name("verify-", remedy.name))?;
    let commands = Commands::new(
        SideCommand { workload: without, engagement: None },
        SideCommand { workload: applied.workload, engagement: Some(applied.engagement) },
        kept.path(),
    );
    let mut commands = commands.metric(metric);
    if let Some(neighbour) = &how.beside {
        commands = commands.beside(Workload::new(["/bin/sh", "-c", neighbour]));
    }
    if let Some(counts) = Counting::new(&how.count)? {
        commands = commands.probe(Box::new(counts));
    }
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, stop.clone()).context("cannot listen for Ctrl-C")?;
    }
    let mut verdict = match commands.stop(stop).compare(&plan) {
        Err(interrupted @ nearmiss_verify::Error::Interrupted { .. }) => {
            eprintln!("nearmiss: {interrupted}");
            return Ok(ExitCode::from(crate::exit::INTERRUPTED));
        }
        compared => compared?,
    };
    verdict.remedy = Some((remedy.title)(given));
    let json = serde_json::to_vec(&verdict).context("verdict")?;
    write_whole(&kept.file("verdict.json"), &json)?;
    if how.json {
        println!("{}", String::from_utf8_lossy(&json));
    } else {
        println!("{verdict}\n\nmeasured; output of the runs: {}", kept.path().display());
        if let Some(predicted) = predicted {
            println!("\n{}", beside(&predicted, &verdict, how.metric.is_some()));
        }
    }
    Ok(match verdict.required_gain_met {
        Some(false) => ExitCode::from(crate::exit::CONDITION_FAILED),
        _ => ExitCode::SUCCESS,
    })
}
