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

/// A command to be diagnosed, and where.
pub struct Diagnosed<'a> {
    /// As `-m` takes it.
    pub machine: Option<&'a str>,
    /// CPUs of the guest.
    pub cpus: u32,
    /// What is recorded.
    pub only: Option<Only>,
    /// Where the run is kept.
    pub runs: &'a Path,
    /// The command.
    pub command: &'a [OsString],
}

/// How closely a command is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// By the machine's own filter: enough to see what could matter.
    First,
    /// With where objects lie and which stores go through the caches, so that both may be changed; and with the tasks'
    /// places, if that is wanted.
    Closer { tasks: bool },
}

/// Traces a command to be diagnosed.
pub fn for_diagnosis(diagnosed: &Diagnosed<'_>, look: Look) -> anyhow::Result<RunDir> {
    let cpus = diagnosed.cpus.to_string();
    let mut options = vec!["-m", diagnosed.machine.unwrap_or("host"), "--cpus", &cpus];
    options.extend(match look {
        Look::First => None,
        Look::Closer { tasks: false } => Some("--carry=addresses,stores"),
        Look::Closer { tasks: true } => Some("--carry=addresses,stores,tasks"),
    });
    let mut line = line(&options, diagnosed.runs, diagnosed.command)?;
    (line.args.only, line.args.first_look) = (diagnosed.only, look == Look::First);
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
