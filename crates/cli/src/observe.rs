//! The verb `observe`.

use crate::destination::runs_can_be_kept;
use crate::exit;
use crate::interrupt::{self, Unfinished};
use crate::load::LoadArgs;
use crate::run_name::run_name;
use crate::trace::OUTPUTS;
use anyhow::Context;
use nearmiss_observe::perf::StackMode;
use nearmiss_observe::watch::{self, InstrumentSet, Options, Outcome, Target};
use nearmiss_record::observed::{self, Observed, Profile};
use nearmiss_record::run::{self, Manifest, RunDir};
use nearmiss_workload::Status;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;
use std::time::Duration;
use tempfile::NamedTempFile;

/// Cache misses of a sample, unless another number is given: a prime, so that no loop keeps step.
const MISS_PERIOD: u64 = 10_007;

/// Arguments of `nearmiss observe`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  nearmiss observe -- make -j2                all instruments, on a command and what it starts
  nearmiss observe -p 1234 --for 10s          a running process, for a time
  nearmiss observe -a --io --for 5s           block I/O of the whole machine
  nearmiss observe --locks --log -- ./server  every wait by itself: then nearmiss report --log
  nearmiss observe -e page-faults@16 -- CMD   any event of `perf list`, one sample for 16 of them
  nearmiss observe --cgroup /sys/fs/cgroup/x  a cgroup; from the host, a container is one
  nearmiss observe --polls --load 'redis-benchmark -q' -- redis-server  a server, while a load runs
  nearmiss observe --top -a                   the same figures of each second, in the terminal
  nearmiss report --html                      the newest run as a page")]
pub struct Args {
    #[command(flatten)]
    instruments: Instruments,
    #[command(flatten)]
    whom: Whom,
    /// End after this time: 5s, 500ms, 2m
    #[arg(long = "for", value_name = "TIME", value_parser = nearmiss_usage::some_time)]
    limit: Option<Duration>,
    /// Samples a second on a busy CPU
    #[arg(short = 'F', long, value_name = "HZ", default_value_t = watch::DEFAULT_FREQUENCY_HZ, value_parser = clap::value_parser!(u64).range(1..=20_000))]
    frequency: u64,
    /// One sample for so many cache misses
    #[arg(long, value_name = "N", default_value_t = MISS_PERIOD, value_parser = clap::value_parser!(u64).range(100..))]
    miss_period: u64,
    /// Also sample this event, as `perf list` names it (repeatable)
    #[arg(short, long = "event", value_name = "EVENT")]
    events: Vec<String>,
    /// How user call stacks are found
    #[arg(long, value_enum, default_value_t = Stacks::Tables)]
    stacks: Stacks,
    #[command(flatten)]
    load: LoadArgs,
    /// Keep every lock wait and every poll, not only their sums. Goes with --locks and --polls; both are on where no
    /// instrument and no event is chosen
    #[arg(long)]
    log: bool,
    /// Also count how often libc's mutexes are taken, so that waits are a share of that; each taking, by anybody, then
    /// costs microseconds (20 where it was measured)
    #[arg(long)]
    acquisitions: bool,
    /// Refresh a view in the terminal once a second instead of writing a run
    #[arg(long)]
    top: bool,
    /// Also write the record to this file
    #[arg(long, value_name = "FILE", value_parser = crate::destination::json_file)]
    json: Option<PathBuf>,
    /// Directory for runs
    #[arg(long, value_name = "DIR", default_value = run::DEFAULT_PARENT)]
    runs: PathBuf,
    /// Rows of the report's tables
    #[arg(long, value_name = "N", default_value_t = 8)]
    rows: usize,
    /// The command to observe
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// With none of these: all that this machine can.
#[derive(clap::Args)]
struct Instruments {
    /// Time by function, line and call stack
    #[arg(long)]
    clock: bool,
    /// Cache misses by function, line and call stack (needs a performance-monitoring unit)
    #[arg(long)]
    misses: bool,
    /// Waits for kernel locks and futexes
    #[arg(long)]
    locks: bool,
    /// The poll, select, epoll and io_uring calls
    #[arg(long)]
    polls: bool,
    /// Block requests: latency and queue length
    #[arg(long)]
    io: bool,
    /// CPU time, run-queue waits, switches, and why tasks were off the CPU
    #[arg(long)]
    sched: bool,
}

#[derive(clap::Args)]
#[group(multiple = false)]
struct Whom {
    /// Observe this running process and what it starts
    #[arg(short, long, value_name = "PID", value_parser = nearmiss_usage::pid)]
    pid: Option<i32>,
    /// Observe a cgroup: a directory below /sys/fs/cgroup
    #[arg(long, value_name = "DIR")]
    cgroup: Option<PathBuf>,
    /// Observe the whole machine
    #[arg(short, long)]
    all: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Stacks {
    /// By the unwind tables of the files
    Tables,
    /// By frame pointers: cheaper, for programs built with them
    FramePointers,
    /// The kernel's part only
    None,
}

/// Runs the verb. As a wrapper it ends as its command does.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let options = options(&args)?;
    let target = target(&args)?;
    if args.top {
        if !std::io::stdout().is_terminal() {
            anyhow::bail!("--top needs a terminal; without one, use --for 5s");
        }
        return crate::top::run(&target, &options);
    }
    runs_can_be_kept(&args.runs)?;
    let stop = Arc::new(AtomicBool::new(false));
    // A command has its signals from the forwarder.
    let ours = !matches!(target, Target::Command(_)) || options.load.is_some();
    if ours {
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, stop.clone()).context("cannot listen for Ctrl-C")?;
        }
    }
    // The first signal ends the observation, which is kept.
    let ends = ours.then(|| interrupt::for_others(1));
    let outcome = watch::observe(&target, &options, &stop)?;
    drop(ends);
    // A load has an end of its own; any other observation ends by a signal.
    let cut_by = interrupt::received().filter(|_| options.load.is_some());
    interrupt::forget();
    let run = write(&args.runs, args.json.as_deref(), &target, &outcome)?;
    let page = nearmiss_report::observe::text(&outcome.observed, crate::output::terminal_width_of_stderr(), args.rows);
    let mut err = anstream::stderr().lock();
    // A closed stderr must not change how the command's end is reported.
    let _ = writeln!(err, "{page}\nrun       {}", run.path().display());
    Ok(match (outcome.finished, cut_by) {
        (Some(finished), _) => ExitCode::from(finished.status.wrapper_code()),
        (None, Some(signal)) => ExitCode::from(exit::of_signal(signal)),
        (None, None) => ExitCode::SUCCESS,
    })
}

/// An observation of a command, and the files of its output: a snapshot of the command finds these by name.
pub struct ObservedCommand {
    pub run: RunDir,
    /// The signal that ended the command, if one did.
    pub signal: Option<i32>,
    pub profile: Profile,
    _output: [NamedTempFile; 2],
    _unfinished: [Unfinished; 2],
}

/// Observes a command to be diagnosed: nothing is printed, every wait and poll is kept, its output too. `started` receives
/// the number of its process.
pub fn for_diagnosis(
    runs: &Path,
    command: &[OsString],
    started: Option<Sender<i32>>,
) -> anyhow::Result<ObservedCommand> {
    std::fs::create_dir_all(runs)?;
    let files = [NamedTempFile::new_in(runs)?, NamedTempFile::new_in(runs)?];
    let unfinished = [Unfinished::file(files[0].path()), Unfinished::file(files[1].path())];
    let output = [files[0].reopen()?.into(), files[1].reopen()?.into()];
    let options = Options { log: true, output: Some(output), started, ..Options::default() };
    let target = Target::Command(command.to_vec());
    let outcome = watch::observe(&target, &options, &Arc::default())?;
    drop(options);
    let run = write(runs, None, &target, &outcome)?;
    for (file, name) in files.iter().zip(OUTPUTS) {
        std::fs::hard_link(file.path(), run.file(name))
            .or_else(|_| std::fs::copy(file.path(), run.file(name)).map(drop))?;
    }
    let signal = match outcome.finished.map(|finished| finished.status) {
        Some(Status::Signaled(signal)) => Some(signal),
        _ => None,
    };
    let profile = outcome.observed.profile.unwrap_or_default();
    Ok(ObservedCommand { run, signal, profile, _output: files, _unfinished: unfinished })
}

fn target(args: &Args) -> anyhow::Result<Target> {
    let target = match (&args.whom, args.command.is_empty()) {
        (Whom { pid: Some(pid), .. }, true) if !Path::new("/proc").join(pid.to_string()).exists() => {
            anyhow::bail!("process {pid}: there is no such process; `ps -e` lists them")
        }
        (Whom { pid: Some(pid), .. }, true) => Target::Process(*pid),
        (Whom { cgroup: Some(path), .. }, true) => Target::Cgroup(path.clone()),
        (Whom { all: true, .. }, true) => Target::Machine,
        (Whom { pid: None, cgroup: None, all: false }, false) => Target::Command(args.command.clone()),
        (Whom { pid: None, cgroup: None, all: false }, true) => {
            anyhow::bail!("whom to observe? give a command after --, or -p PID, --cgroup DIR or -a")
        }
        _ => anyhow::bail!("a command and -p, --cgroup or -a do not go together: give one of them"),
    };
    if args.limit.is_none() && !args.top && matches!(target, Target::Machine | Target::Cgroup(_)) {
        crate::exit::print_message("observing until Ctrl-C (or give --for 5s)");
    }
    Ok(target)
}

fn options(args: &Args) -> anyhow::Result<Options> {
    let i = &args.instruments;
    let chosen =
        InstrumentSet { clock: i.clock, misses: i.misses, locks: i.locks, polls: i.polls, io: i.io, sched: i.sched };
    let load = args.load.load()?;
    if load.is_some() && (args.command.is_empty() || args.top) {
        anyhow::bail!("--load runs against a server that it starts: give the server after --, and no --top");
    }
    Ok(Options {
        instruments: if chosen == InstrumentSet::default() && args.events.is_empty() {
            InstrumentSet::ALL
        } else {
            chosen
        },
        frequency_hz: args.frequency,
        miss_period: args.miss_period,
        events: args.events.clone(),
        stacks: match args.stacks {
            Stacks::Tables => StackMode::Tables,
            Stacks::FramePointers => StackMode::FramePointers,
            Stacks::None => StackMode::None,
        },
        log: args.log,
        acquisitions: args.acquisitions,
        limit: args.limit,
        load,
        output: None,
        started: None,
    })
}

fn write(runs: &Path, json: Option<&Path>, target: &Target, outcome: &Outcome) -> anyhow::Result<RunDir> {
    let command: Vec<String> = match target {
        Target::Command(argv) => argv.iter().map(|a| a.to_string_lossy().into_owned()).collect(),
        _ => Vec::new(),
    };
    let what = command.first().unwrap_or(&outcome.observed.target);
    let (run, _unfinished) = Unfinished::run(runs, &run_name("observe-", what))?;
    write_in(&run, json, command, outcome).inspect_err(|_| run.discard())?;
    Ok(run)
}

fn write_in(run: &RunDir, json: Option<&Path>, command: Vec<String>, outcome: &Outcome) -> anyhow::Result<()> {
    let observed = &outcome.observed;
    run.write_json(observed::FILE, observed)?;
    watch::write_tables(run.path(), outcome)?;
    if let Some(file) = json {
        let mut bytes = serde_json::to_vec(observed)?;
        bytes.push(b'\n');
        run::write_whole(file, &bytes)?;
    }
    Ok(run.write_json(run::MANIFEST, &manifest(command, observed, outcome))?)
}

fn manifest(command: Vec<String>, observed: &Observed, outcome: &Outcome) -> Manifest {
    let status = outcome.finished.map(|f| f.status);
    Manifest {
        schema: run::SCHEMA.to_owned(),
        nearmiss: env!("CARGO_PKG_VERSION").to_owned(),
        command,
        cwd: std::env::current_dir().map(|d| d.display().to_string()).unwrap_or_default(),
        started: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        recorder: "observe".to_owned(),
        machine: "host".to_owned(),
        cpus: observed.cpus,
        exit_status: match status {
            Some(Status::Exited(code)) => Some(code.into()),
            _ => None,
        },
        signal: match status {
            Some(Status::Signaled(signal)) => Some(signal),
            _ => None,
        },
        window_ns: observed.duration_ns,
        notes: observed.notes.clone(),
        ..Manifest::default()
    }
}
