//! The verb `diagnose`: what is wrong with a run, what would remedy it, what that would gain.

use crate::Remedies;
use crate::case::How;
use crate::destination::runs_can_be_kept;
use crate::exit::say;
use crate::measuring::measure;
use crate::output::{print, terminal_width};
use crate::phases::Phases;
use crate::progress::progress;
use crate::snapshot::{SnapshotArgs, command_of, of_running};
use crate::trace::{Budget, Diagnosed, Length, Look, RecordArgs, for_diagnosis};
use anyhow::Context;
use nearmiss_analysis::{Case, Detected, Needs, Options, detect, judge};
use nearmiss_record::run::{self, RunDir};
use nearmiss_snapshot::Snapshot;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Arguments of `nearmiss diagnose`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  nearmiss diagnose                    the newest run
  nearmiss diagnose RUN -m zen3-milan  a run, on another machine
  nearmiss diagnose -- ./prog          trace a command in a guest, then diagnose it: an answer within a minute
  nearmiss diagnose --within 5m -- make    more of it, in five minutes; --within 0: all of it
  nearmiss diagnose --load 'redis-benchmark -n 1000' -- redis-server    a server, while a load runs
  nearmiss diagnose -p 4711            a process that runs, from a snapshot of it: it pauses for a blink, and runs on
  nearmiss diagnose --measure -- ./prog its modelled time beside the time it takes here, and gains by the latter
  nearmiss diagnose --live -- ./server run it on this machine, too, for the remedies of what a live program does

Each finding is rehearsed in some 5 to 11 replays of the trace, in a few passes over it that use all CPUs: seconds for a run
of a few million references, a minute or more for a long one. The last line on standard error says what took how long.")]
pub struct Args {
    /// The run's directory [default: the newest one under ./nearmiss-runs]
    #[arg(conflicts_with = "subject")]
    run: Option<PathBuf>,
    #[command(flatten)]
    how: How,
    #[command(flatten)]
    record: RecordArgs,
    #[command(flatten)]
    running: SnapshotArgs,
    /// Answer after this time, about: a longer command is recorded in parts, as far as it comes, and then ended. 0: to its
    /// end, however long that takes
    #[arg(long, value_name = "TIME", value_parser = crate::trace::within, default_value = "60s", requires = "subject")]
    within: Duration,
    /// Also run the command natively, where its side effects are real, and observe it for the remedies that look at that
    #[arg(long, requires = "command")]
    live: bool,
    /// Also run the command on this machine, a few times: gains are then shares of the CPU time that it takes here
    #[arg(long, conflicts_with = "pid")]
    measure: bool,
    /// Where runs are kept
    #[arg(long, value_name = "DIR", default_value = run::DEFAULT_PARENT)]
    runs: PathBuf,
    /// A command to trace first
    #[arg(last = true, group = "subject", value_name = "CMD")]
    command: Vec<OsString>,
}

/// Runs the verb.
pub fn run(args: Args, remedies: Remedies) -> anyhow::Result<ExitCode> {
    let mut phases = Phases::begin();
    let budget = Budget::of(args.within);
    let snapshot = args.running.take(&args.record.load)?;
    if snapshot.is_some() {
        phases.ended("snapshot", Instant::now());
    }
    let subject = Subject { budget, snapshot: snapshot.as_ref() };
    let (run, mut case, detected) = match args.command.is_empty() && !args.running.is_given() {
        false => {
            runs_can_be_kept(&args.runs)?;
            record(&args, &subject, remedies, &mut phases)?
        }
        true => {
            let (run, case) = args.how.open(args.run.as_deref(), &args.runs, remedies)?;
            phases.ended("model", Instant::now());
            (run, case, None)
        }
    };
    // A share too small of the modelled cycles may be enough of the measured ones.
    case.traced.iter_mut().for_each(|traced| traced.thorough |= args.measure);
    let measured = if args.measure { measure(&case)? } else { None };
    if measured.is_some() {
        phases.ended("measuring", Instant::now());
    }
    let detected = match detected {
        Some(detected) => detected,
        None => detect(&case, remedies)?,
    };
    phases.ended("detection", Instant::now());
    let mut findings = judge(&case, &detected, Options { all: args.how.all, measured }, &progress)?;
    if let Some(snapshot) = &snapshot {
        of_running(&mut findings, snapshot, remedies);
    }
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

/// The time for the answer, and the snapshot that stands for a command.
struct Subject<'a> {
    budget: Budget,
    snapshot: Option<&'a Rc<Snapshot>>,
}

/// A run, opened, and what was detected in it already.
type Suspected = (RunDir, Case, Option<Detected<'static>>);

/// Records for a command what the remedies look at: a trace, an observation, or both. A command that is traced runs in
/// a guest that is thrown away, and should not run here, too. Also returns the run that the findings are written to.
fn record(args: &Args, subject: &Subject<'_>, remedies: Remedies, phases: &mut Phases) -> anyhow::Result<Suspected> {
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
    let open = |run: &RunDir| args.how.case(run);
    let traced = if of_trace.is_empty() && observed.is_some() {
        None
    } else {
        if observed.is_some() {
            say(&format!("tracing the command in a guest, for {}", of_trace.join(", ")));
        }
        Some(trace(args, subject, remedies, phases)?)
    };
    let watched = observed.as_ref().map(open).transpose()?;
    let (traced, seen, detected) =
        traced.map_or((None, None, None), |(run, case, detected)| (Some(run), case.traced, detected));
    // Remedies that look at an observation have not looked yet.
    let detected = detected.filter(|_| watched.is_none());
    // The observation keeps its own progress.
    let case = match (watched, seen) {
        (Some(watched), traced) => Case { traced, ..watched },
        (None, Some(traced)) => Case::from(traced),
        (None, None) => anyhow::bail!("no remedy looks at anything"),
    };
    let run = traced.or(observed).context("no remedy looks at anything")?;
    Ok((run, case, detected))
}

/// Records a trace of a command, and opens it. A trace that carries what remedies may change takes several times as
/// long as one that does not, and most programs have nothing to be changed: so the first one is the small one, and is
/// made again only where it shows something that could matter. `--all` and `--measure` include what matters less, too.
fn trace(args: &Args, subject: &Subject<'_>, remedies: Remedies, phases: &mut Phases) -> anyhow::Result<Suspected> {
    let restored = subject.snapshot.map(|snapshot| command_of(snapshot));
    let diagnosed = Diagnosed {
        machine: args.how.machine.as_deref(),
        record: &args.record,
        budget: subject.budget,
        runs: &args.runs,
        command: restored.as_deref().unwrap_or(&args.command),
        snapshot: subject.snapshot,
    };
    let mut record = |look| {
        let (run, recorded) = for_diagnosis(&diagnosed, look)?;
        phases.recorded(&recorded.manifest);
        let case = args.how.recorded(&run, recorded)?;
        phases.ended(if look == Look::First { "first look" } else { "model" }, Instant::now());
        anyhow::Ok((run, case))
    };
    if args.how.all || args.measure {
        let (run, case) = record(Look::Closer { tasks: false, length: None })?;
        return Ok((run, case, None));
    }
    let (run, case) = record(Look::First)?;
    let detected = detect(&case, remedies)?;
    let missing = detected.missing_parts(&case);
    if missing.is_empty() {
        return Ok((run, case, Some(detected)));
    }
    let carried: Vec<&str> = missing.iter().copied().collect();
    say(&format!("something could matter: recording again, to rehearse what changes {}", carried.join(", ")));
    let length = case.traced.as_ref().and_then(|traced| Length::of(&traced.manifest));
    let tasks = missing.contains("tasks");
    drop((detected, case));
    run.discard();
    let (run, case) = record(Look::Closer { tasks, length })?;
    Ok((run, case, None))
}
