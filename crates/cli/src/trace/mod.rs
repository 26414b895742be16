//! The verb `trace`: a command in the tap, modelled as it goes, kept as a run.

mod budget;
mod counts;
mod gauge;
mod length;
mod nodes;
mod options;
mod quiet;
mod recording;
mod served;
mod warm;

pub(crate) use budget::{Budget, Purpose, Replays};
pub use gauge::Gauge;
pub(crate) use length::Known;
pub(crate) use nodes::Apart;
use options::{Clock, Only};
pub(crate) use options::{RecordArgs, within};
pub use quiet::{Diagnosed, Look, Measured, once_begun, quietly};
pub(crate) use quiet::{RecordedCommand, for_diagnosis};

use crate::destination::runs_can_be_kept;
use crate::exit::{self, CannotHere, Interrupted};
use crate::interrupt::{self, Unfinished};
use crate::order::OrderArg;
use crate::progress::progress_of_a_wrapper;
use crate::run_name::run_name;
use crate::snapshot::{SnapshotArgs, command_of};
use anyhow::{Context, bail};
use nearmiss_analysis::{RecordError, Recording, Stage, TraceOptions};
use nearmiss_machine::describe;
use nearmiss_record::machine::Machine;
use nearmiss_record::run::{self, Filter, RunDir};
use nearmiss_record::units::Bytes;
use nearmiss_report::load::Report;
use nearmiss_report::text;
use nearmiss_snapshot::Snapshot;
use nearmiss_tap::guest::{
    CommandStatus, GuestCommand, GuestShape, InstructionClock, KernelArgument, KernelImage, QemuBinary, WarmUp,
};
use nearmiss_tap::parts::Parts;
use nearmiss_tap::session::{Recorded, Session, TapConfig, TapError};
use nearmiss_workload::{LargePages, Workload};
use std::cell::RefCell;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

/// The first is the command's, the second ends the guest: what was recorded until then is a run.
const FOR_THE_COMMAND: u32 = 2;
/// The first ends a command that is recorded for its diagnosis, the second drops the recording.
const FOR_THE_RECORDING: u32 = 1;
/// A running process seldom ends by itself.
const OF_A_SNAPSHOT: Duration = Duration::from_secs(60);
/// Two nanoseconds an instruction: the pace of a program that misses its caches now and then.
const INSTRUCTION_SHIFT: u8 = 1;

/// Arguments of `nearmiss trace`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  nearmiss trace -- sort words.txt                     this machine's caches
  nearmiss trace -m pentium-pro-4way-512k -- ./server  another machine's
  nearmiss trace --only user -- ./program              what cachegrind would see
  nearmiss trace --counts -- ./program                 how often each cache misses, no more
  nearmiss trace --warm -- make -C project             as on a host where it has just run
  nearmiss trace --memory 4GiB --timeout 10m -- make   more room, and an end
  nearmiss trace --from mark:1 --until mark:2 -- ./p   the part between two marks of nearmiss.h
  nearmiss trace --from symbol:f --for 50Minsn -- ./p  from the first call of a function
  nearmiss trace --load 'redis-benchmark -n 1000' -- redis-server    a server, while a load runs
  nearmiss trace -p 4711                               a process that runs, from a snapshot (root)

The first trace in a guest of a given shape (CPUs, memory, nodes, clock, kernel) boots the guest, in some 5 to 10 s, \
and saves it; later traces restore it, in under a second where little else runs. Then the command runs slower than \
alone: 52 times where it follows pointers, 81 for gzip, 147 for sort, 172 for gcc, 421 where it starts \
programs (measured). docs/reference/trace.md has more.")]
pub struct Args {
    /// Machine to model and to shape the guest by: `host`, a preset, or a machine file
    #[arg(short, long, value_name = "MACHINE", default_value = "host")]
    machine: String,
    #[command(flatten)]
    record: RecordArgs,
    #[command(flatten)]
    running: SnapshotArgs,
    /// Count misses only, on one CPU: no classes, functions or objects, and no run is kept. Faster
    #[arg(long, conflicts_with_all = ["cpus", "order", "max_trace", "runs", "pid"])]
    counts: bool,
    /// In which order the records of several CPUs reach the model
    #[arg(long, value_enum, default_value_t = OrderArg::Recorded)]
    order: OrderArg,
    /// Count time by instructions alone, waiting included, and switch address randomisation off, so that runs repeat
    #[arg(long)]
    deterministic: bool,
    /// Switch address randomisation off
    #[arg(long)]
    no_aslr: bool,
    /// The exact filter for every purpose: drops only repeats of the very last line
    #[arg(long)]
    one_line_filter: bool,
    /// Parts that a replay may change, and the trace then carries. More is recorded: of `sort`, 3.2 times as much for
    /// addresses, 2.3 times for stores, 1.5 times for tasks
    #[arg(long, value_name = "PART", value_enum, value_delimiter = ',', conflicts_with = "counts")]
    carry: Vec<Carry>,
    /// Do not keep calling contexts: faster, no call stacks
    #[arg(long)]
    no_stacks: bool,
    /// Do not preload the shim that distinguishes heap objects
    #[arg(long)]
    no_heap: bool,
    /// Do not count misses over cache sizes: faster
    #[arg(long)]
    no_curve: bool,
    /// Model only, keep no trace
    #[arg(long)]
    no_trace: bool,
    /// Largest trace to keep. A larger run is modelled whole, but nothing can replay it
    #[arg(long, value_name = "SIZE", default_value = "8GiB", value_parser = Bytes::parse)]
    max_trace: Bytes,
    /// Print the report after this time, such as 60s: the command is recorded in parts, as far as it comes, and then ended.
    /// 0: to its end [default: 0; with --pid 60s]
    #[arg(long, value_name = "TIME", value_parser = options::within, conflicts_with = "counts")]
    within: Option<Duration>,
    /// Directory for runs
    #[arg(long, value_name = "DIR", default_value = run::DEFAULT_PARENT)]
    runs: PathBuf,
    /// Also write the model's record (with --counts: the counts) here
    #[arg(long, value_name = "FILE", value_parser = crate::destination::json_file)]
    json: Option<PathBuf>,
    /// Do not print the report
    #[arg(short, long)]
    quiet: bool,
    /// The command and its arguments
    #[arg(last = true, required_unless_present = "pid", group = "subject", value_name = "CMD")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Carry {
    /// Places of objects: the same as --one-line-filter
    Addresses,
    /// Which stores go through the caches: every store is kept, by its call site
    Stores,
    /// Places of the fields of objects: every access is kept, some four times the records of the default
    Fields,
    /// Which CPU a task runs on: the filter forgets at each switch, and lines are shared by tasks
    Tasks,
}

/// Runs the verb. The command's exit status is ours.
pub fn run(mut args: Args) -> anyhow::Result<ExitCode> {
    let (status, ended) = if args.counts {
        (counts::count(&args)?, false)
    } else {
        let within = args.within.unwrap_or(if args.running.is_given() { OF_A_SNAPSHOT } else { Duration::ZERO });
        let budget = Budget::of(within);
        let snapshot = args.running.take(&args.record.load)?;
        args.command.extend(snapshot.iter().flat_map(|snapshot| command_of(snapshot)));
        let plan = budget.plan(Purpose::Report, None);
        let recording = trace(&Subject { snapshot: snapshot.as_ref(), ..Subject::of(&args) }, plan, Kept::Report)?;
        (recording.status, recording.ended)
    };
    Ok(ExitCode::from(match status {
        Some(CommandStatus::Exited(code)) => code as u8,
        Some(CommandStatus::Signaled(number)) => (128 + number) as u8,
        // A command that was ended on request has no status of its own.
        None => interrupt::received().map_or(if ended { 0 } else { exit::WRAPPER_FAILED }, exit::of_signal),
    }))
}

/// Files of a command's output in its run, when it is not the verb that owns it.
pub const OUTPUTS: [&str; 2] = ["command.out", "command.err"];

/// Product of a recording.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// The report, on standard error beside the command's own.
    Report,
    /// A run with the command's output in it, and what the model saw.
    Diagnosis,
    /// Figures alone, and no run.
    Figures,
}

/// The options, and what no user types.
#[derive(Clone, Copy)]
struct Subject<'a> {
    args: &'a Args,
    /// The snapshot that stands for the command.
    snapshot: Option<&'a Rc<Snapshot>>,
    /// The trace is looked at, and made again if that shows something.
    first_look: bool,
}

impl<'a> Subject<'a> {
    fn of(args: &'a Args) -> Self {
        Subject { args, snapshot: None, first_look: false }
    }

    /// Whether heap objects are distinguished. Those of a snapshot's processes cannot be.
    fn has_heap(&self) -> bool {
        !self.args.no_heap && self.snapshot.is_none()
    }
}

fn trace(subject: &Subject<'_>, plan: Option<Parts>, kept: Kept) -> anyhow::Result<Recording> {
    let args = subject.args;
    // The guest would report it too, after its boot.
    if subject.snapshot.is_none() {
        Workload::new(args.command.iter().cloned()).program()?;
    }
    runs_can_be_kept(&args.runs)?;
    let machine =
        args.record.nodes.with_clients(describe::cut(&nearmiss_host::load(&args.machine)?, args.record.cpus))?;
    if !args.carry.is_empty() && args.no_trace {
        bail!("--carry is about the trace that is kept, and --no-trace keeps none; give one of the two");
    }
    if args.carry.contains(&Carry::Stores) && args.no_stacks {
        bail!("--carry stores keeps stores by their call sites, and --no-stacks leaves those out; give one of the two");
    }
    let filter = filter(subject, &machine);
    let clock = if args.deterministic { Clock::Instructions } else { args.record.clock };
    let config = tap_config(subject, &machine, filter, clock)?;
    caution(&config);
    let (words, window) = served::recorded(subject, &machine, &config.kernel)?;
    // The load's window closes ahead of what stops the server and returns the load's status.
    let go_on = args.record.go_on || args.record.load.is_given();
    let session = Session::new(config)?.within(window).in_parts(plan).letting_it_finish(go_on);
    let session = session.on_progress(recording::shown(plan, kept));
    let program = args.command.first().map(|program| program.to_string_lossy()).unwrap_or_default();
    let command = args.record.warm.command(&words)?;
    let (run, _unfinished) = Unfinished::run(&args.runs, &run_name("", &program))?;
    let command = if kept == Kept::Diagnosis { with_output_in(&run, command) } else { Ok(command) };
    let options = TraceOptions {
        machine: &machine,
        order: args.order.into(),
        curve: !args.no_curve,
        evidence: kept == Kept::Diagnosis,
        most_trace: (!args.no_trace).then_some(args.max_trace),
        command: &args.command,
        clock: clock.name(),
        resumed: subject.snapshot.filter(|s| !s.numbers_may_be_taken()).map_or(&[], |snapshot| &snapshot.pids),
        notes: &|recorded| notes(subject, &machine, recorded),
        stage: &staged(if kept == Kept::Diagnosis { FOR_THE_RECORDING } else { FOR_THE_COMMAND }),
    };
    let result = command.and_then(|command| record(args, session, command, &options, &run));
    result.inspect_err(|_| run.discard())
}

/// Warns ahead of the run what may go wrong with this emulator.
fn caution(config: &TapConfig) {
    if let Some(caution) = config.qemu.caution() {
        exit::print_message(&caution);
    }
}

/// The command, its output and errors going to files of the run.
fn with_output_in(run: &RunDir, mut command: GuestCommand) -> anyhow::Result<GuestCommand> {
    for (stream, name) in command.streams[1..].iter_mut().zip(OUTPUTS) {
        *stream = Some(std::fs::File::create(run.file(name)).context(name)?.into());
    }
    Ok(command)
}

/// Records the command into the run, and prints the report where that is the product.
fn record(
    args: &Args,
    session: Session,
    command: GuestCommand,
    options: &TraceOptions<'_>,
    run: &RunDir,
) -> anyhow::Result<Recording> {
    let recording = nearmiss_analysis::record(session, command, options, run).map_err(not_recorded)?;
    let model = &recording.recorded.model;
    if let Some(file) = &args.json {
        run::write_whole(file, &serde_json::to_vec(model).context("model record")?)?;
    }
    if args.quiet {
        let cut = &recording.recorded.manifest.cut;
        cut.iter().chain(&recording.out_of_memory).for_each(|what| exit::print_message(what));
    } else {
        let report = Report::load(run)?;
        let text = text::render(&report, text_options());
        crate::output::print_to_stderr(&format!("{text}\nrun: {}\n", run.path().display()));
    }
    Ok(recording)
}

/// So many signals are for the command and the guest while they run.
fn staged(for_others: u32) -> impl Fn(Stage) {
    let signals = RefCell::new(None);
    move |stage| {
        let (text, kept) = match stage {
            Stage::Running => ("booting the guest, then recording", Some(interrupt::for_others(for_others))),
            Stage::Ended => ("naming functions and variables", None),
        };
        progress_of_a_wrapper(text);
        signals.replace(kept);
    }
}

/// Returns the notes that depend on how the guest was set up.
fn notes(subject: &Subject<'_>, machine: &Machine, recorded: &Recorded) -> Vec<String> {
    let nodes = subject.args.record.nodes.notes(machine);
    served::notes(subject).chain(nodes).chain(note_of_kernel(subject.args)).chain(warm::notes(recorded)).collect()
}

/// Keeps the type of an error that the command line's exit status depends on.
fn not_recorded(error: RecordError) -> anyhow::Error {
    match error {
        RecordError::Tap(error) => classified(error),
        RecordError::NoRoom(what) => CannotHere(what).into(),
        other => other.into(),
    }
}

/// An interrupt has an exit status of its own.
fn classified(error: TapError) -> anyhow::Error {
    match error {
        TapError::Interrupted => Interrupted(error.to_string()).into(),
        error => error.into(),
    }
}

fn text_options() -> text::Options {
    text::Options { whole_names: !std::io::stderr().is_terminal(), ..text::Options::default() }
}

/// The guest's kernel is another one than usual.
fn note_of_kernel(args: &Args) -> Option<String> {
    let words: Vec<String> = args.record.kernel_arg.iter().map(ToString::to_string).collect();
    (!words.is_empty()).then(|| format!("The guest's kernel had further arguments: {}.", words.join(" ")))
}

/// The filter that is exact for the machine, or the one that is exact for every machine, and what else it is to carry.
fn filter(subject: &Subject<'_>, machine: &Machine) -> Filter {
    let args = subject.args;
    let mut filter = describe::filter_for(machine);
    let is_whole = subject.first_look && describe::every_load_counts(machine);
    let carries = |part| args.carry.contains(&part) || is_whole && matches!(part, Carry::Addresses | Carry::Stores);
    if args.one_line_filter || carries(Carry::Addresses) {
        filter.index_bits = 0;
        filter.index_low = filter.line_log2;
    }
    filter.ordered_stores = carries(Carry::Stores);
    filter.by_task = carries(Carry::Tasks);
    filter.every_access = args.carry.contains(&Carry::Fields);
    filter.contexts = !args.no_stacks;
    filter.heap = subject.has_heap();
    // Nobody else needs these records, and no curve needs the hits.
    if args.no_trace && args.no_curve && !args.one_line_filter && args.carry.is_empty() {
        filter.first_level = describe::first_level_for(machine);
    }
    filter
}

fn tap_config(subject: &Subject<'_>, machine: &Machine, filter: Filter, clock: Clock) -> anyhow::Result<TapConfig> {
    let args = subject.args;
    let topology = machine.topology;
    let nodes = machine.memory.nodes;
    let kernel = match &args.record.kernel {
        Some(name) => KernelImage::named(name),
        None => KernelImage::newest(),
    };
    let qemu = match &args.record.qemu {
        Some(path) => QemuBinary::at(path.clone()),
        None => QemuBinary::installed(),
    };
    Ok(TapConfig {
        shape: GuestShape {
            packages: topology.packages,
            cores: topology.cores_per_package,
            threads: topology.threads_per_core,
            nodes,
        },
        memory: args.record.memory.map(|m| vec![m.0 / u64::from(nodes); nodes as usize]).unwrap_or_default(),
        kernel: kernel.map_err(|e| CannotHere(e.to_string()))?,
        qemu: qemu.map_err(|e| CannotHere(e.to_string()))?,
        only_user: args.record.only == Some(Only::User),
        filter,
        heap_shim: subject.has_heap().then(|| nearmiss_tap::guest::HEAP_SHIM.to_vec()),
        icount: (clock == Clock::Instructions)
            .then_some(InstructionClock { shift: INSTRUCTION_SHIFT, leaps: args.deterministic }),
        timeout: args.record.timeout,
        keep: args.record.keep.clone(),
        aslr: !(args.no_aslr || args.deterministic),
        kernel_arguments: [
            args.record.nodes.kernel_arguments(nodes)?,
            large_pages(machine)?,
            args.record.kernel_arg.clone(),
        ]
        .concat(),
        // What resumes a snapshot reads ahead by itself.
        warm_up: if subject.snapshot.is_some() { WarmUp::Nothing } else { args.record.warm.warm_up() },
        libc_tunables: libc_tunables(machine),
        saved_boot: !args.record.no_saved_boot,
    })
}

/// The guest's kernel gives large pages to the same programs as this machine's, where the machine's pages are modelled.
fn large_pages(machine: &Machine) -> anyhow::Result<Vec<KernelArgument>> {
    let setting = LargePages::here().filter(|_| machine.tlb.is_some());
    setting.into_iter().map(|setting| Ok(format!("transparent_hugepage={setting}").parse()?)).collect()
}

/// glibc picks its copy routines by cache size: it must see the modelled machine's, not the emulator's.
fn libc_tunables(machine: &Machine) -> Option<String> {
    let mut tunables = vec![format!("glibc.cpu.x86_data_cache_size={}", machine.data_cache(1)?.size.0)];
    if let Some(shared) = machine.data_cache(machine.levels()) {
        tunables.push(format!("glibc.cpu.x86_shared_cache_size={}", shared.size.0));
    }
    Some(tunables.join(":"))
}
