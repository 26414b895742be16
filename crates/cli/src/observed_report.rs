//! `nearmiss report` of a run of `observe`.

use crate::output::{print, terminal_width, write};
use crate::report_form::Form;
use anyhow::Context;
use nearmiss_observe::watch::{self, Logged};
use nearmiss_record::observed;
use nearmiss_record::run::{self, RunDir};
use nearmiss_report::observe::{self, LogLine};
use std::process::ExitCode;

/// A run of `observe` in the form asked for.
pub fn write_form(run: &RunDir, form: &Form, rows: usize) -> anyhow::Result<ExitCode> {
    let observed: observed::Observed = run.read_json(observed::FILE)?;
    if form.json {
        print(&format!("{}\n", serde_json::to_string(&observed)?))?;
    } else if let Some(file) = &form.html {
        let file = file.clone().unwrap_or_else(|| run.file(run::REPORT));
        write(&file, observe::html(&observed).as_bytes())?;
    } else if let Some(file) = &form.pprof {
        write(file, &observe::to_pprof(&observed)?)?;
    } else if let Some(file) = &form.firefox {
        write(file, &observe::firefox(&observed)?)?;
    } else if let Some(file) = &form.perfetto {
        write(file, &observe::perfetto(&observed)?)?;
    } else if let Some(file) = &form.folded {
        let profile = observed.profile.as_ref().context("this run has no samples: observe with --clock")?;
        let event = observe::event_of(profile, "clock").unwrap_or(0);
        write(file, observe::folded(profile, event).as_bytes())?;
    } else if form.log {
        let log =
            watch::read_log(run.path())?.context("this run kept no log: observe with --log --locks or --polls")?;
        print(&observe::log(&log.iter().map(line).collect::<Vec<_>>()))?;
    } else if let Some(name) = &form.function {
        let page = observe::function(&observed, name, terminal_width(), rows);
        print(&page.with_context(|| format!("no sample fell on `{name}`; the report lists functions by name"))?)?;
    } else if form.callgrind.is_some() {
        anyhow::bail!("{}: the callgrind format is for traced runs; use --pprof or --folded", run.path().display());
    } else {
        print(&observe::text(&observed, terminal_width(), rows))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn line(logged: &Logged) -> LogLine<'_> {
    LogLine {
        end_ns: logged.end_ns,
        length_ns: logged.length_ns,
        thread: logged.thread,
        cpu: logged.cpu,
        what: &logged.what,
    }
}
