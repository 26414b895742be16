//! The verb `generate`: man pages and shell completions.

use crate::{Remedies, verbs};
use nearmiss_usage::What;
use std::process::ExitCode;

/// Arguments of `nearmiss generate`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  nearmiss generate completions bash > /etc/bash_completion.d/nearmiss
  nearmiss generate man apply | man -l -            the page of a verb
  nearmiss generate man --all /usr/share/man/man1   all pages")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

/// Runs the verb.
pub fn run(args: Args, remedies: Remedies) -> anyhow::Result<ExitCode> {
    let version = concat!("nearmiss ", env!("CARGO_PKG_VERSION"));
    crate::output::print(&nearmiss_usage::generate(&args.what, verbs::command(remedies), version)?)?;
    Ok(ExitCode::SUCCESS)
}
