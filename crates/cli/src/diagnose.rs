//! The verb `diagnose`: what is wrong with a run, what would remedy it, what that would gain.

use crate::case::{How, find};
use crate::output::{print, terminal_width};
use crate::progress::progress;
use crate::trace::Only;
use anyhow::Context;
use nearmiss_diagnose::{Options, diagnose};
use nearmiss_machine::describe;
use nearmiss_record::run;
use std::ffi::OsString;
use std::path::PathBuf;
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
    #[command(flatten)]
    how: How,
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
            let machine = args.how.machine.as_deref();
            crate::trace::for_diagnosis(machine, args.cpus, args.only, &args.runs, &args.command)?
        }
        (named, true) => find(named.as_deref(), &args.runs)?,
    };
    let case = args.how.case(&run)?;
    let findings = diagnose(&case, Options { all: args.how.all }, &mut |what| progress(what))?;
    run.write_json(run::FINDINGS, &findings)?;
    if args.how.json {
        print(&format!("{}\n", serde_json::to_string(&findings).context("findings")?))?;
    } else {
        print(&nearmiss_report::findings::render(&findings, terminal_width()))?;
    }
    Ok(ExitCode::SUCCESS)
}
