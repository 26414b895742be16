//! The verb `diagnose`: what is wrong with a run, what would remedy it, what that would gain.

use crate::modelling::OrderArg;
use crate::progress::progress;
use crate::report::{print, terminal_width};
use crate::trace::Only;
use anyhow::Context;
use nearmiss_diagnose::{Options, diagnose};
use nearmiss_machine::describe;
use nearmiss_record::observed;
use nearmiss_record::run::{self, RunDir};
use nearmiss_remedy::Case;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `nearmiss diagnose`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  nearmiss diagnose                    the newest run
  nearmiss diagnose RUN -m zen3-milan  a run, on another machine
  nearmiss diagnose -- ./server        trace a command, then diagnose it

Each finding is rehearsed in some 15 replays of the trace, two at a time on two CPUs: seconds for a run of a few
million references, minutes for a long one.")]
pub struct Args {
    /// The run's directory [default: the newest one under ./nearmiss-runs]
    #[arg(conflicts_with = "command")]
    run: Option<PathBuf>,
    /// Model the run on this machine: `host`, a preset, or a machine file [default: the one it was traced with, or host]
    #[arg(short, long, value_name = "MACHINE")]
    machine: Option<String>,
    /// In which order the records of several CPUs meet the model
    #[arg(long, value_enum)]
    order: Option<OrderArg>,
    /// Also findings whose predicted gain is under 2%
    #[arg(long)]
    all: bool,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
    /// CPUs of the guest that a command is traced in, at most
    #[arg(long, value_name = "N", default_value_t = describe::DEFAULT_CPUS, value_parser = clap::value_parser!(u32).range(1..=64))]
    cpus: u32,
    /// Of a command that is traced: record less than the whole machine
    #[arg(long, value_name = "PART", value_enum)]
    only: Option<Only>,
    /// Where runs are kept
    #[arg(long, value_name = "DIR", default_value = run::DEFAULT_PARENT)]
    runs: PathBuf,
    /// A command to trace first
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Runs the verb.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let run = match (&args.run, args.command.is_empty()) {
        (_, false) => {
            let machine = args.machine.as_deref();
            crate::trace::for_diagnosis(machine, args.cpus, args.only, &args.runs, &args.command)?
        }
        (Some(path), true) => open(path)?,
        (None, true) => newest(&args.runs)?,
    };
    let machine = args.machine.as_deref().map(describe::load).transpose()?;
    progress("modelling the run");
    let mut case = Case::open(&run, machine.as_ref(), args.order.map(Into::into))?;
    case.heard = replayed;
    let findings = diagnose(&case, Options { all: args.all }, &mut |what| progress(what))?;
    run.write_json(run::FINDINGS, &findings)?;
    if args.json {
        print(&format!("{}\n", serde_json::to_string(&findings).context("findings")?))?;
    } else {
        print(&nearmiss_report::findings::render(&findings, terminal_width()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A traced run by its directory.
pub(crate) fn open(path: &Path) -> anyhow::Result<RunDir> {
    let run = RunDir::open(path).map_err(|error| anyhow::anyhow!("{error}"))?;
    if run.file(observed::FILE).is_file() {
        anyhow::bail!("{}: an observed run has no trace; record one with `nearmiss trace -- CMD`", path.display());
    }
    Ok(run)
}

/// The newest run that was traced.
pub(crate) fn newest(parent: &Path) -> anyhow::Result<RunDir> {
    RunDir::newest_with(parent, run::MODEL).map_err(|error| anyhow::anyhow!("{error}"))
}

/// Says how far a rehearsal is.
pub(crate) fn replayed(done: usize, of: usize) {
    progress(&format!("rehearsing: {done} of {of} replays done"));
}
