//! The verb `generate`: man pages and shell completions.

use clap::Command;
use nearmiss_usage::GeneratedText;
use std::process::ExitCode;

/// Arguments of `nearmiss generate`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  nearmiss generate completions bash > /etc/bash_completion.d/nearmiss
  nearmiss generate man apply | man -l -            the page of a verb
  nearmiss generate man --all /usr/share/man/man1   all pages")]
pub struct Args {
    #[command(subcommand)]
    what: GeneratedText,
}

/// Runs the verb; `command` is the whole command line.
pub fn run(args: &Args, command: Command) -> anyhow::Result<ExitCode> {
    let version = concat!("nearmiss ", env!("CARGO_PKG_VERSION"));
    crate::output::print(&nearmiss_usage::generate(&args.what, command, version)?)?;
    Ok(ExitCode::SUCCESS)
}
