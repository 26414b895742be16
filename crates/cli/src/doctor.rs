//! The verb `doctor`.

use std::process::ExitCode;

/// Arguments of `nearmiss doctor`.
#[derive(clap::Args)]
pub struct Args {}

/// Runs the verb.
pub fn run(_args: Args) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not built yet")
}
