//! Traces for other verbs: nothing is printed, and the command's output is kept in the run.

use super::{Args, OUTPUTS, Only, trace};
use crate::exit::{self, Interrupted};
use crate::interrupt;
use clap::Parser;
use nearmiss_record::run::RunDir;
use nearmiss_tap::guest::CommandStatus;
use std::ffi::OsString;
use std::path::Path;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

/// Traces a command to be diagnosed: the filter is the one that is exact where addresses move.
pub fn for_diagnosis(
    machine: Option<&str>,
    cpus: u32,
    only: Option<Only>,
    runs: &Path,
    command: &[OsString],
) -> anyhow::Result<RunDir> {
    let cpus = cpus.to_string();
    let options = ["--one-line-filter", "--carry", "stores", "-m", machine.unwrap_or("host"), "--cpus", &cpus];
    let mut line = line(&options, runs, command)?;
    line.args.only = only;
    let (run, status) = recorded(&line)?;
    if status != Some(CommandStatus::Exited(0)) {
        exit::say(&format!("the command did not end well; its output: {}", run.file(OUTPUTS[1]).display()));
    }
    Ok(run)
}

/// Traces a command with these options of `trace`. Errors: the command failed, so that its figures mean nothing.
pub fn quietly(options: &[&str], runs: &Path, command: &[OsString]) -> anyhow::Result<RunDir> {
    let (run, status) = recorded(&line(options, runs, command)?)?;
    let output = run.file(OUTPUTS[1]);
    anyhow::ensure!(
        status == Some(CommandStatus::Exited(0)),
        "a recorded command did not end well; its output: {}",
        output.display()
    );
    Ok(run)
}

fn line(options: &[&str], runs: &Path, command: &[OsString]) -> anyhow::Result<Line> {
    let words = ["trace", "--quiet"].into_iter().chain(options.iter().copied()).chain(["--runs"]);
    let words = words.map(OsString::from).chain([runs.into(), "--".into()]);
    Ok(Line::try_parse_from(words.chain(command.iter().cloned()))?)
}

fn recorded(line: &Line) -> anyhow::Result<(RunDir, Option<CommandStatus>)> {
    let (run, status) = trace(&line.args, true)?;
    if interrupt::received().is_some() || status == Some(CommandStatus::Signaled(signal_hook::consts::SIGINT)) {
        let run = run.path().display();
        return Err(Interrupted(format!(
            "the command was interrupted; `nearmiss diagnose {run}` diagnoses what it did"
        ))
        .into());
    }
    Ok((run, status))
}
