//! The whole of `nearmiss verify color`, as a program of its own:
//! `verify-color [--metric REGEX] [--colors N] [--stacks] [--blocks SIZE] -- CMD`.

use clap::Parser;
use nearmiss_remedy::color::apply::{Args, Options, apply};
use nearmiss_verify::{Commands, Metric, Plan, SideCommand};
use nearmiss_workload::Workload;
use std::error::Error;
use std::ffi::OsString;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    color: Args,
    /// A number that the command prints
    #[arg(long, value_name = "REGEX")]
    metric: Option<String>,
    /// The command and its arguments
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let cli = Cli::parse();
    let without = Workload::new(cli.command);
    let (with, coloring) = apply(without.clone(), &Options::from(&cli.color))?;
    let metric = cli.metric.as_deref().map_or_else(|| Ok(Metric::default()), Metric::printed)?;
    let plan = Plan { metric: metric.name().to_owned(), ..Plan::default() };
    let output = std::env::temp_dir().join(format!("verify-color-{}", std::process::id()));
    std::fs::create_dir_all(&output)?;
    let commands = Commands::new(
        SideCommand { name: "without color".to_owned(), workload: without, engagement: None },
        SideCommand { name: "with color".to_owned(), workload: with, engagement: Some(Box::new(coloring)) },
        &output,
    );
    let verdict = commands.metric(metric).compare(&plan)?;
    std::fs::remove_dir_all(&output)?;
    print!("{}", nearmiss_report::verdict::render(&verdict));
    Ok(())
}
