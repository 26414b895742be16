//! The verb `verify`: a command with and without a remedy, interleaved, and a verdict.

use anyhow::Context;
use nearmiss_record::run::{self, RunDir, write_whole};
use nearmiss_remedy::color::apply::{self as color, Options};
use nearmiss_verify::{Better, Commands, Metric, Plan, SideCommand};
use nearmiss_workload::Workload;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Arguments of `nearmiss verify`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    remedy: Remedy,
}

#[derive(clap::Subcommand)]
enum Remedy {
    /// Does coloring help?
    #[command(after_help = "Examples:
  nearmiss verify color -- ./program
  nearmiss verify color --metric 'ns_per_visit ([0-9.]+)' -- ./program
  nearmiss verify color --require-gain 5% -- ./program     exit code 1 unless 5% are gained for sure")]
    Color {
        #[command(flatten)]
        color: color::Args,
        #[command(flatten)]
        how: How,
        /// The command and its arguments
        #[arg(last = true, required = true, value_name = "CMD")]
        command: Vec<OsString>,
    },
}

#[derive(clap::Args)]
struct How {
    /// Judge a number that the command prints: the regular expression's first group [default: wall time]
    #[arg(long, value_name = "REGEX")]
    metric: Option<String>,
    /// A higher number is better
    #[arg(long, requires = "metric")]
    higher: bool,
    /// Exit with 1 unless this gain is certain, such as 5%
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    require_gain: Option<f64>,
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

/// Runs the verb.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Remedy::Color { color, how, command } = args.remedy;
    let metric = how.metric.as_deref().map_or_else(|| Ok(Metric::default()), Metric::printed)?;
    let plan = Plan {
        metric: metric.name().to_owned(),
        better: if how.higher { Better::Higher } else { Better::Lower },
        seed: how.seed,
        time_limit: how.time_limit,
        required_gain: how.require_gain,
        ..Plan::default()
    };
    let without = Workload::new(command);
    let (with, coloring) = color::apply(without.clone(), &Options::from(&color))?;
    let kept = RunDir::create(&how.runs, "verify-color")?;
    let commands = Commands::new(
        SideCommand { workload: without, engagement: None },
        SideCommand { workload: with, engagement: Some(Box::new(coloring)) },
        kept.path(),
    );
    let mut verdict = commands.metric(metric).compare(&plan)?;
    verdict.remedy = Some(format!("color, {} colors", color.colors));
    let json = serde_json::to_vec(&verdict).context("verdict")?;
    write_whole(&kept.file("verdict.json"), &json)?;
    if how.json {
        println!("{}", String::from_utf8_lossy(&json));
    } else {
        println!("{verdict}\n\nmeasured; output of the runs: {}", kept.path().display());
    }
    Ok(match verdict.required_gain_met {
        Some(false) => ExitCode::from(crate::exit::CONDITION_FAILED),
        _ => ExitCode::SUCCESS,
    })
}
