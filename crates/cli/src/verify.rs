//! The verb `verify`: two sides, interleaved, and a verdict.

mod commands;
mod how;
mod remedies;
mod sides;

use std::process::ExitCode;

/// Arguments of `nearmiss verify`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  nearmiss verify color -- ./program           with and without coloring, interleaved, and a verdict
  nearmiss verify commands './old' './new'     is the second command better than the first?
  nearmiss report                              the newest run's verdict again")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    #[command(flatten)]
    Remedy(remedies::Remedy),
    /// Is the second of two commands better than the first?
    Commands(commands::Args),
}

/// Runs the verb.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.what {
        What::Remedy(remedy) => remedies::run(remedy),
        What::Commands(args) => commands::run(&args),
    }
}
