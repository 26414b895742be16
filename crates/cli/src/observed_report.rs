//! `nearmiss report` of a run of `observe`.

use crate::kept_findings::kept_findings;
use crate::output::{print, terminal_width, write};
use crate::report_form::Form;
use anyhow::Context;
use nearmiss_record::logs::{LockWait, PollCall};
use nearmiss_record::observation::Observation;
use nearmiss_record::run::{self, RunDir};
use nearmiss_report::{function_name, observe};
use std::process::ExitCode;

/// Writes a run of `observe` in the requested form.
pub fn write_form(run: &RunDir, form: &Form, rows: usize) -> anyhow::Result<ExitCode> {
    let observation = Observation::open(run.path())?;
    let observed = observation.observed();
    if form.json {
        print(&format!("{}\n", serde_json::to_string(observed)?))?;
    } else if let Some(file) = &form.html {
        let file = file.clone().unwrap_or_else(|| run.file(run::REPORT));
        write(&file, observe::html(observed, kept_findings(run).as_ref()).as_bytes())?;
    } else if let Some(file) = &form.pprof {
        write(file, &observe::to_pprof(observed)?)?;
    } else if let Some(file) = &form.firefox {
        write(file, &observe::firefox(observed)?)?;
    } else if let Some(file) = &form.perfetto {
        write(file, &observe::perfetto(observed)?)?;
    } else if let Some(file) = &form.folded {
        let profile = observed.profile.as_ref().context("this run has no samples: observe with --clock")?;
        let event = observe::event_of(profile, "clock").unwrap_or(0);
        write(file, observe::folded(profile, event).as_bytes())?;
    } else if form.log {
        print(&log(&observation)?)?;
    } else if let Some(name) = &form.function {
        let profile = observed.profile.as_ref().context("this run has no samples: observe with --clock")?;
        let names = function_name::find(name, profile.frames.iter().map(|frame| frame.function.as_str()))
            .map_err(|nearest| anyhow::anyhow!("{}", function_name::unknown(name, &nearest)))?;
        let pages: Vec<String> =
            names.iter().filter_map(|name| observe::function(observed, name, terminal_width(), rows)).collect();
        anyhow::ensure!(!pages.is_empty(), "no sample fell on `{name}` itself, only on what it calls");
        print(&pages.join("\n"))?;
    } else if form.code.is_some() {
        anyhow::bail!("{}: --code is for traced runs; use --function NAME", run.path().display());
    } else if form.callgrind.is_some() {
        anyhow::bail!("{}: the callgrind format is for traced runs; use --pprof or --folded", run.path().display());
    } else {
        print(&observe::text(observed, terminal_width(), rows))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn log(observation: &Observation) -> anyhow::Result<String> {
    let (waits, polls) = (observation.log::<LockWait>()?, observation.log::<PollCall>()?);
    if waits.is_none() && polls.is_none() {
        anyhow::bail!("this run kept no log: observe with --log --locks or --polls");
    }
    Ok(observe::log(waits.into_iter().flatten(), polls.into_iter().flatten())?)
}
