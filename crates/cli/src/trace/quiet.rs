//! Traces for other verbs: nothing is printed, and the command's output is kept in the run.

use super::{Args, Budget, Carry, Kept, Known, OUTPUTS, Purpose, RecordArgs, Replays, Subject, trace};
use crate::exit::{self, Interrupted};
use crate::interrupt;
use crate::order::OrderArg;
use crate::snapshot::SnapshotArgs;
use nearmiss_analysis::{Recorded, Recording};
use nearmiss_record::run::RunDir;
use nearmiss_record::units::Bytes;
use nearmiss_snapshot::Snapshot;
use nearmiss_tap::guest::CommandStatus;
use nearmiss_tap::parts::Parts;
use nearmiss_tap::session::TapError;
use std::ffi::OsString;
use std::path::Path;
use std::rc::Rc;

/// Largest trace that is kept, unless another is given: as the help of `trace` has it.
const MAX_TRACE: Bytes = Bytes(8 << 30);

/// Guests that end while they boot are tried again, up to so often in all.
const TRIES: u32 = 3;

/// A command to be diagnosed, and where.
pub struct Diagnosed<'a> {
    /// Machine, as given to `-m`.
    pub machine: Option<&'a str>,
    /// How the command is recorded.
    pub(crate) record: &'a RecordArgs,
    /// Directory in which the run is kept.
    pub runs: &'a Path,
    /// The command.
    pub command: &'a [OsString],
    /// The snapshot that stands for the command.
    pub snapshot: Option<&'a Rc<Snapshot>>,
}

/// How closely a command is looked at.
#[derive(Clone, Copy, PartialEq)]
pub enum Look {
    /// With the machine's own filter: enough to see what could matter.
    First,
    /// With where objects lie and which stores go through the caches, so that both may be changed; and with the tasks'
    /// places, if `tasks` is set, and with the places of fields where replays move them. Whole where the run's end is
    /// `known` and fits.
    Closer { tasks: bool, replays: Replays, known: Option<Known> },
}

/// A command, recorded to be diagnosed.
pub(crate) struct RecordedCommand {
    /// Run of the recording.
    pub run: RunDir,
    /// Result of the recording, modelled.
    pub recorded: Recorded,
    /// An interrupt ended the recording: the user waits for an answer from what there is.
    pub is_interrupted: bool,
}

/// Traces a command to be diagnosed. `budget`: the time for the whole answer.
pub(crate) fn for_diagnosis(diagnosed: &Diagnosed<'_>, budget: Budget, look: Look) -> anyhow::Result<RecordedCommand> {
    let mut args = Args::quiet(diagnosed.machine.unwrap_or("host"), diagnosed.runs, diagnosed.command);
    args.record = diagnosed.record.clone();
    // Both looks at a command are at the same addresses: what streams and pages meet depends on them.
    args.no_aslr = diagnosed.snapshot.is_none();
    args.carry = match look {
        Look::First => Vec::new(),
        Look::Closer { tasks, replays, .. } => {
            let fields = replays == Replays::Fields;
            let more = [(tasks, Carry::Tasks), (fields, Carry::Fields)].into_iter().filter(|(is_wanted, _)| *is_wanted);
            [Carry::Addresses, Carry::Stores].into_iter().chain(more.map(|(_, part)| part)).collect()
        }
    };
    let plan = match look {
        Look::First => budget.plan(Purpose::FirstLook, None),
        Look::Closer { replays, known, .. } => budget.plan(Purpose::CloserLook(replays), known),
    };
    let subject = Subject { args: &args, snapshot: diagnosed.snapshot, first_look: look == Look::First };
    let recording = match trace(&subject, plan, Kept::Diagnosis) {
        Err(error) if plan.is_some_and(|plan| !plan.followed.is_zero()) && never_opened(&error) => {
            trace(&subject, plan.map(Parts::from_the_start), Kept::Diagnosis)?
        }
        recording => recording?,
    };
    let is_interrupted = ended_by_a_person(&recording)?;
    let Recording { recorded, status, ended, .. } = recording;
    if let Some(status) = status.filter(|status| *status != CommandStatus::Exited(0) && !ended) {
        exit::print_message(&format!("the command {status}; its errors: {}", recorded.run.file(OUTPUTS[1]).display()));
    }
    Ok(RecordedCommand { run: recorded.run.clone(), recorded, is_interrupted })
}

/// Whether the command ended ahead of the window: it took less time than the first look.
fn never_opened(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(TapError::NeverOpened(_))) && interrupt::received().is_none()
}

/// Returns whether an interrupt ended the command: what was recorded is diagnosed then. A request to terminate ends
/// nearmiss too.
fn ended_by_a_person(recording: &Recording) -> anyhow::Result<bool> {
    let run = recording.recorded.run.path().display();
    match interrupt::received() {
        Some(signal_hook::consts::SIGINT) => {
            exit::print_message("the command was interrupted; what was recorded until then is diagnosed");
            interrupt::forget();
            Ok(true)
        }
        Some(_) => {
            Err(Interrupted(format!("the command was interrupted; `nearmiss diagnose {run}` diagnoses what it did"))
                .into())
        }
        None => Ok(false),
    }
}

/// How a command is modelled in guests by `verify`: no trace is kept.
pub struct Measured<'a> {
    /// Machine, as given to `-m`.
    pub machine: &'a str,
    /// CPUs of the guest, at most.
    pub cpus: u32,
}

/// Records a command and models it. Errors: the command failed, so that its figures mean nothing.
pub fn quietly(measured: &Measured<'_>, runs: &Path, command: &[OsString]) -> anyhow::Result<RunDir> {
    let mut args = Args::quiet(measured.machine, runs, command);
    (args.no_trace, args.no_curve, args.no_heap) = (true, true, true);
    args.record.cpus = measured.cpus;
    let recording = trace(&Subject::of(&args), None, Kept::Diagnosis)?;
    if interrupt::received().is_some() {
        return Err(Interrupted("the command was interrupted".to_owned()).into());
    }
    let output = recording.recorded.run.file(OUTPUTS[1]);
    anyhow::ensure!(
        recording.status == Some(CommandStatus::Exited(0)),
        "a recorded command failed; its output: {}",
        output.display()
    );
    Ok(recording.recorded.run)
}

/// Records, again where the guest ended ahead of the command, which therefore has nothing to do with that.
pub fn once_begun<T>(record: impl Fn() -> anyhow::Result<T>) -> anyhow::Result<T> {
    for _ in 1..TRIES {
        match record() {
            Err(error) if matches!(error.downcast_ref(), Some(TapError::NotBegun(_))) => {
                exit::print_message(&format!("{error}; once more"));
            }
            done => return done,
        }
    }
    record()
}

impl Args {
    /// Arguments as if only these were given, and --quiet.
    pub(super) fn quiet(machine: &str, runs: &Path, command: &[OsString]) -> Self {
        Args {
            machine: machine.to_owned(),
            record: RecordArgs::default(),
            running: SnapshotArgs::default(),
            counts: false,
            order: OrderArg::Recorded,
            deterministic: false,
            no_aslr: false,
            one_line_filter: false,
            carry: Vec::new(),
            no_stacks: false,
            no_heap: false,
            no_curve: false,
            no_trace: false,
            max_trace: MAX_TRACE,
            within: None,
            runs: runs.to_owned(),
            json: None,
            quiet: true,
            command: command.to_vec(),
        }
    }
}
