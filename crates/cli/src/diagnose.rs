//! The verb `diagnose`: what is wrong with a run, what would remedy it, what that would gain.

use crate::Remedies;
use crate::case::How;
use crate::destination::runs_can_be_kept;
use crate::exit::say;
use crate::measuring::measure;
use crate::output::{print, terminal_width};
use crate::phases::Phases;
use crate::progress::progress;
use crate::trace::Only;
use anyhow::Context;
use nearmiss_diagnose::{Options, diagnose};
use nearmiss_machine::describe;
use nearmiss_record::run::{self, RunDir};
use nearmiss_remedy::{Case, Needs};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::Instant;

/// Arguments of `nearmiss diagnose`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  nearmiss diagnose                    the newest run
  nearmiss diagnose RUN -m zen3-milan  a run, on another machine
  nearmiss diagnose -- ./server        trace a command in a guest, then diagnose it
  nearmiss diagnose --measure -- ./prog its modelled time beside the time it takes here, and gains by the latter
  nearmiss diagnose --live -- ./server run it on this machine, too, for the remedies of what a live program does

Each finding is rehearsed in some 5 to 11 replays of the trace, in a few passes over it that use all CPUs: seconds for a run
of a few million references, a minute or more for a long one. The last line on standard error says what took how long.")]
pub struct Args {
    /// The run's directory [default: the newest one under ./nearmiss-runs]
    #[arg(conflicts_with = "command")]
    run: Option<PathBuf>,
    #[command(flatten)]
    how: How,
    /// CPUs of the guest that a command is traced in, at most
    #[arg(long, value_name = "N", default_value_t = describe::DEFAULT_CPUS, requires = "command", value_parser = clap::value_parser!(u32).range(1..=64))]
    cpus: u32,
    /// Of a command that is traced: record less than the whole machine
    #[arg(long, value_name = "PART", value_enum, requires = "command")]
    only: Option<Only>,
    /// Also run the command on this machine, where it does what it does, and observe it for the remedies that look at that
    #[arg(long, requires = "command")]
    live: bool,
    /// Also run the command on this machine, a few times: gains are then shares of the CPU time that it takes here
    #[arg(long)]
    measure: bool,
    /// Where runs are kept
    #[arg(long, value_name = "DIR", default_value = run::DEFAULT_PARENT)]
    runs: PathBuf,
    /// A command to trace first
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Runs the verb.
pub fn run(args: Args, remedies: Remedies) -> anyhow::Result<ExitCode> {
    let mut phases = Phases::begin();
    let (run, mut case) = match args.command.is_empty() {
        false => {
            runs_can_be_kept(&args.runs)?;
            record(&args, remedies, &mut phases)?
        }
        true => args.how.open(args.run.as_deref(), &args.runs, remedies)?,
    };
    // Of measured cycles, what is too little of the modelled ones may be enough.
    case.traced.iter_mut().for_each(|traced| traced.thorough |= args.measure);
    phases.ended("model", Instant::now());
    let measured = args.measure.then(|| measure(&case)).transpose()?;
    if measured.is_some() {
        phases.ended("measuring", Instant::now());
    }
    let detected = OnceLock::new();
    let heard = |what: &str| {
        detected.get_or_init(Instant::now);
        progress(what);
    };
    let findings = diagnose(&case, remedies, Options { all: args.how.all, measured }, &heard)?;
    phases.ended("detection", *detected.get_or_init(Instant::now));
    phases.ended("rehearsals", Instant::now());
    run.write_json(run::FINDINGS, &findings)?;
    if args.how.json {
        print(&format!("{}\n", serde_json::to_string(&findings).context("findings")?))?;
    } else {
        let page = nearmiss_report::findings::render(&findings, terminal_width());
        print(&format!("{page}\nrun        {}\n", run.path().display()))?;
    }
    say(&phases.line());
    Ok(ExitCode::SUCCESS)
}

/// Records of a command what the remedies look at: a trace, an observation, or both. A command that is traced runs in a
/// guest that is thrown away; nobody who asks for that wants it to run here, too. Also the run that the findings
/// are written to.
fn record(args: &Args, remedies: Remedies, phases: &mut Phases) -> anyhow::Result<(RunDir, Case)> {
    let names = |needs: Needs| -> Vec<&str> {
        remedies.iter().filter(|remedy| remedy.needs == needs).map(|remedy| remedy.name).collect()
    };
    let (of_trace, of_observation) = (names(Needs::Trace), names(Needs::Observation));
    let observed = if of_observation.is_empty() || !(args.live || of_trace.is_empty()) {
        None
    } else {
        say(&format!("observing the command on this machine, for {}", of_observation.join(", ")));
        let observed = crate::observe::for_diagnosis(&args.runs, &args.command)?;
        phases.ended("observing", Instant::now());
        Some(observed)
    };
    let traced = if of_trace.is_empty() && observed.is_some() {
        None
    } else {
        if observed.is_some() {
            say(&format!("tracing the command in a guest, for {}", of_trace.join(", ")));
        }
        let machine = args.how.machine.as_deref();
        let traced = crate::trace::for_diagnosis(machine, args.cpus, args.only, &args.runs, &args.command)?;
        phases.recorded(&traced.read_json(run::MANIFEST)?);
        Some(traced)
    };
    let open = |run: &RunDir| args.how.case(run);
    let cases = (traced.as_ref().map(open).transpose()?, observed.as_ref().map(open).transpose()?);
    let case =
        Case { traced: cases.0.and_then(|case| case.traced), observation: cases.1.and_then(|case| case.observation) };
    let run = traced.or(observed).context("no remedy looks at anything")?;
    Ok((run, case))
}
