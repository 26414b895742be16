//! The verb `diagnose`: what is wrong with a run, what would remedy it, what that would gain.

mod live;
mod moments;
mod reached;
mod spread;
mod standing;

use crate::Remedies;
use crate::case::How;
use crate::destination::runs_can_be_kept;
use crate::exit::{Interrupted, print_message};
use crate::interrupt;
use crate::measuring::measure;
use crate::output::{print, terminal_width};
use crate::phases::Phases;
use crate::progress::progress;
use crate::snapshot::{SnapshotArgs, command_of, of_running};
use crate::trace::{Budget, Diagnosed, Known, Look, RecordArgs, RecordedCommand, Replays, for_diagnosis};
use anyhow::Context;
use nearmiss_analysis::{Case, Detected, Needs, Options, Remedy, detect, judge};
use nearmiss_record::finding::Findings;
use nearmiss_record::run::{self, RunDir};
use nearmiss_snapshot::Snapshot;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Note on a command that was ended in the guest.
const LATER: &str = "The command's later course: --live runs it here and records moments of it (root), --from time:5s \
                     skips its start, --within 10m records more.";

/// Arguments of `nearmiss diagnose`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  nearmiss diagnose                      the newest run
  nearmiss diagnose RUN -m zen3-milan    a run, on another machine
  nearmiss diagnose -- ./prog            a command, traced in a guest: an answer within a minute
  nearmiss diagnose --within 5m -- make  more of it, in five minutes; --within 0: all of it
  nearmiss diagnose --load 'redis-benchmark -n 1000' -- redis-server  a server, while a load runs
  nearmiss diagnose -p 4711              a process, from a snapshot: it pauses and runs on (root)
  nearmiss diagnose --measure -- ./prog  its time here beside the modelled one, and gains by it
  nearmiss diagnose --live -- ./long     run it here at full speed, record moments of it (root)

Each finding is rehearsed in some 5 to 11 replays of the trace, in a few passes over it that use all CPUs: seconds for a run \
of a few million references, a minute or more for a long one. The last line on standard error shows what took how long.")]
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
    /// Run the command on this machine to its end, where its side effects are real. Its waits are observed, and snapshots of
    /// it at three or four moments are recorded instead of its start: for programs too long for the guest. Snapshots need root
    #[arg(long, requires = "command", conflicts_with_all = ["measure", "load"])]
    live: bool,
    /// Also run the command on this machine, a few times: gains are then shares of the CPU time that it takes here. A
    /// command is recorded once then, every access, without a first look. The recording must be modelled on host, and
    /// be whole: the time of parts is not measured, and --within 0 records all of a long command
    #[arg(long, conflicts_with = "pid")]
    measure: bool,
    /// Directory for runs
    #[arg(long, value_name = "DIR", default_value = run::DEFAULT_PARENT)]
    runs: PathBuf,
    /// A command to trace first
    #[arg(last = true, group = "subject", value_name = "CMD")]
    command: Vec<OsString>,
}

/// Runs the verb.
pub fn run(args: Args, remedies: Remedies) -> anyhow::Result<ExitCode> {
    let mut phases = Phases::begin();
    let (runs, findings) =
        if args.live { live::live(&args, remedies, &mut phases)? } else { one(&args, remedies, &mut phases)? };
    if args.how.shown.json {
        print(&format!("{}\n", serde_json::to_string(&findings).context("findings")?))?;
    } else {
        let page = nearmiss_report::findings::render(&findings, terminal_width());
        let runs: Vec<String> = runs.iter().map(|run| format!("run        {}\n", run.path().display())).collect();
        print(&format!("{page}\n{}", runs.concat()))?;
    }
    print_message(&phases.line());
    Ok(ExitCode::SUCCESS)
}

/// Runs that were diagnosed, the first one with the findings, and these.
type Answer = (Vec<RunDir>, Findings);

/// Diagnoses a kept run, or a command or a process that is recorded for it.
fn one(args: &Args, remedies: Remedies, phases: &mut Phases) -> anyhow::Result<Answer> {
    let budget = Budget::of(args.within);
    let snapshot = args.running.take(&args.record.load)?;
    if snapshot.is_some() {
        phases.ended("snapshot", Instant::now());
    }
    let subject = Subject { budget, snapshot: snapshot.as_ref() };
    let suspected = match args.command.is_empty() && !args.running.is_given() {
        false => {
            runs_can_be_kept(&args.runs)?;
            record(args, &subject, None, remedies, phases)?
        }
        true => {
            let (run, case) = args.how.open(args.run.as_deref(), &args.runs, remedies)?;
            phases.ended("model", Instant::now());
            (run, case, None)
        }
    };
    let (run, mut findings) = judged(args, suspected, remedies, phases)?;
    if let Some(snapshot) = &snapshot {
        of_running(&mut findings, snapshot, remedies);
    }
    run.write_json(run::FINDINGS, &findings)?;
    Ok((vec![run], findings))
}

/// Names of the remedies that look at this alone.
fn names(remedies: Remedies, needs: Needs) -> Vec<&'static str> {
    remedies.iter().filter(|remedy| remedy.needs == needs).map(|remedy| remedy.name).collect()
}

/// Judges what is suspected of a run, and all that was not looked at yet.
fn judged(
    args: &Args,
    (run, mut case, detected): Suspected<'_>,
    remedies: &[&Remedy],
    phases: &mut Phases,
) -> anyhow::Result<(RunDir, Findings)> {
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
    let covered = case.traced.as_ref().and_then(|traced| traced.manifest.covered);
    let mut findings = judge(&case, &detected, Options { all: args.how.shown.all, measured }, &progress)?;
    phases.ended("rehearsals", Instant::now());
    if covered.is_some_and(|covered| covered.ended) && !args.running.is_given() && !args.live {
        findings.notes.push(LATER.to_owned());
    }
    findings.notes.extend(case.traced.iter().flat_map(|traced| reached::notes(traced, &detected)));
    Ok((run, findings))
}

/// The time for the answer, and the snapshot that stands for a command.
struct Subject<'a> {
    budget: Budget,
    snapshot: Option<&'a Rc<Snapshot>>,
}

/// A run, opened, and what was detected in it already.
type Suspected<'r> = (RunDir, Case, Option<Detected<'r>>);

/// Records for a command what the remedies look at: a trace, an observation, or both, unless it was observed already. A
/// command that is traced runs in a guest that is thrown away, and should not run here, too. Also returns the run that
/// the findings are written to.
fn record(
    args: &Args,
    subject: &Subject<'_>,
    observed: Option<RunDir>,
    remedies: Remedies,
    phases: &mut Phases,
) -> anyhow::Result<Suspected<'static>> {
    let (of_trace, of_observation) = (names(remedies, Needs::Trace), names(remedies, Needs::Observation));
    let observed = match observed {
        None if of_trace.is_empty() && !of_observation.is_empty() => {
            print_message(&format!("observing the command on this machine, for {}", of_observation.join(", ")));
            let observed = crate::observe::for_diagnosis(&args.runs, &args.command, None)?;
            phases.ended("observing", Instant::now());
            if observed.signal == Some(signal_hook::consts::SIGINT) {
                return Err(Interrupted("the command was interrupted".to_owned()).into());
            }
            Some(observed.run)
        }
        observed => observed,
    };
    let open = |run: &RunDir| args.how.case(run);
    let traced = if of_trace.is_empty() && observed.is_some() {
        None
    } else {
        if observed.is_some() {
            print_message(&format!("tracing the command in a guest, for {}", of_trace.join(", ")));
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

/// Whether a person ended this recording, who then waits for an answer.
fn was_interrupted(error: &anyhow::Error) -> bool {
    let by_a_person = error.is::<Interrupted>() && interrupt::received() == Some(signal_hook::consts::SIGINT);
    if by_a_person {
        interrupt::forget();
    }
    by_a_person
}

/// Why a command is recorded a second time.
fn why_again(missing: &[&str]) -> String {
    match missing {
        [] => "the time left is enough for more of the run: recording it again".to_owned(),
        _ => format!("something could matter: recording again, to rehearse what changes {}", missing.join(", ")),
    }
}

/// Records a trace of a command, and opens it. A trace that carries what remedies may change takes several times as
/// long as one that does not, and most programs have nothing to be changed: so the first one is the small one, and is
/// made again only where it shows something that could matter, or where much of a short run was in its pauses. `--all` and `--measure` include what matters less, too.
fn trace<'r>(
    args: &Args,
    subject: &Subject<'_>,
    remedies: &'r [&'r Remedy],
    phases: &mut Phases,
) -> anyhow::Result<Suspected<'r>> {
    let restored = subject.snapshot.filter(|_| args.command.is_empty()).map(|snapshot| command_of(snapshot));
    let diagnosed = Diagnosed {
        machine: args.how.model.machine.as_deref(),
        record: &args.record,
        runs: &args.runs,
        command: restored.as_deref().unwrap_or(&args.command),
        snapshot: subject.snapshot,
    };
    let record = |look, budget, phases: &mut Phases| {
        let RecordedCommand { run, recorded, is_interrupted } = for_diagnosis(&diagnosed, budget, look)?;
        phases.recorded(&recorded.manifest);
        let case = args.how.recorded(&run, recorded)?;
        if look != Look::First {
            phases.ended("model", Instant::now());
        }
        anyhow::Ok((run, case, is_interrupted))
    };
    if args.how.shown.all || args.measure {
        let (run, case, _) =
            record(Look::Closer { tasks: false, replays: Replays::Fields, known: None }, subject.budget, phases)?;
        return Ok((run, case, None));
    }
    let (run, case, is_interrupted) = record(Look::First, subject.budget, phases)?;
    let detected = detect(&case, remedies)?;
    phases.ended("first look", Instant::now());
    let missing = detected.missing_parts(&case);
    let manifest = case.traced.as_ref().map(|traced| &traced.manifest);
    let budget = manifest.map_or(subject.budget, |manifest| subject.budget.after(manifest));
    let stores = case.traced.as_ref().map_or(0, |traced| traced.model.totals.stores);
    let known = manifest.map(|manifest| Known::of(manifest, stores));
    let in_parts = manifest.and_then(|manifest| manifest.covered).is_some_and(|covered| covered.has_pauses());
    let worth_another = known.is_some_and(|known| budget.has_room_for_more(known));
    if is_interrupted || missing.is_empty() && !(in_parts && worth_another) {
        return Ok((run, case, Some(detected)));
    }
    print_message(&why_again(&missing.iter().copied().collect::<Vec<_>>()));
    let [tasks, fields] = ["tasks", "fields"].map(|part| missing.contains(part));
    let known = if fields { known.map(Known::of_every_access) } else { known };
    let suspected_before = detected.suspected();
    let replays = match fields {
        true => Replays::Fields,
        false if missing.is_empty() => Replays::Detection,
        false => Replays::Blocks,
    };
    drop((detected, case));
    match record(Look::Closer { tasks, replays, known }, budget, phases) {
        Ok((closer, mut case, _)) => {
            run.discard();
            case.traced.iter_mut().for_each(|traced| traced.suspected_before.clone_from(&suspected_before));
            Ok((closer, case, None))
        }
        Err(error) if was_interrupted(&error) => {
            print_message("the second recording was interrupted; the first one is diagnosed");
            let case = args.how.case(&run)?;
            Ok((run, case, None))
        }
        Err(error) => Err(error),
    }
}
