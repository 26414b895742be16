//! `nearmiss observe --top`.

use nearmiss_observe::watch::{Options, Target};
use std::process::ExitCode;

/// Runs the view until `q`.
pub fn run(_target: &Target, _options: &Options) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not built yet")
}
