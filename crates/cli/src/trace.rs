//! The verb `trace`.

use std::process::ExitCode;

/// Arguments of `nearmiss trace`.
#[derive(clap::Args)]
pub struct Args {}

/// Runs the verb.
pub fn run(_args: Args) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not built yet")
}
