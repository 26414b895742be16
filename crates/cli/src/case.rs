//! A traced run as `diagnose` and `rehearse` take it: which one, on which machine, how told.

use crate::modelling::OrderArg;
use crate::progress::progress;
use nearmiss_machine::describe;
use nearmiss_record::run::{self, RunDir, RunKind};
use nearmiss_remedy::Case;
use std::path::Path;

/// How a run is modelled, and what is shown of it.
#[derive(clap::Args)]
pub struct How {
    /// Model the run on this machine: `host`, a preset, or a machine file [default: the one it was traced with, or host]
    #[arg(short, long, value_name = "MACHINE")]
    pub machine: Option<String>,
    /// In which order the records of several CPUs meet the model
    #[arg(long, value_enum)]
    order: Option<OrderArg>,
    /// Also what would gain less than 2%
    #[arg(long)]
    pub all: bool,
    /// Print the record as JSON
    #[arg(long)]
    pub json: bool,
}

impl How {
    /// Models the run.
    pub fn case(&self, run: &RunDir) -> anyhow::Result<Case> {
        let machine = self.machine.as_deref().map(describe::load).transpose()?;
        progress("modelling the run");
        let mut case = Case::open(run, machine.as_ref(), self.order.map(Into::into))?;
        case.heard = |done, of| progress(&format!("rehearsing: {done} of {of} replays done"));
        Ok(case)
    }
}

/// The run that was named, or the newest one that was traced.
pub fn find(named: Option<&Path>, parent: &Path) -> anyhow::Result<RunDir> {
    let Some(path) = named else {
        return RunDir::newest_with(parent, run::MODEL).map_err(|error| anyhow::anyhow!("{error}"));
    };
    let run = RunDir::open(path).map_err(|error| anyhow::anyhow!("{error}"))?;
    let kind = run.kind();
    if kind != RunKind::Traced {
        anyhow::bail!("{}: {kind}, which has no trace; record one with `nearmiss trace -- CMD`", path.display());
    }
    Ok(run)
}
