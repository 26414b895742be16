//! Options and target of an observation.

use crate::perf::StackMode;
use nearmiss_workload::{Load, Stdio};
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::time::Duration;

/// Target to observe.
#[derive(Clone, Debug)]
pub enum Target {
    /// A command and all it starts.
    Command(Vec<std::ffi::OsString>),
    /// A running process and what it starts.
    Process(i32),
    /// A cgroup of the unified hierarchy.
    Cgroup(PathBuf),
    /// Everything.
    Machine,
}

impl Target {
    /// Returns the target in the words of a report.
    pub(crate) fn describe(&self) -> String {
        match self {
            Target::Command(argv) => argv.iter().map(|a| a.to_string_lossy()).collect::<Vec<_>>().join(" "),
            Target::Process(pid) => format!("process {pid}"),
            Target::Cgroup(path) => format!("cgroup {}", path.display()),
            Target::Machine => "the whole machine".to_owned(),
        }
    }
}

/// The instruments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InstrumentSet {
    /// Samples of the time spent.
    pub clock: bool,
    /// Samples of misses.
    pub misses: bool,
    /// Lock waits.
    pub locks: bool,
    /// Polls.
    pub polls: bool,
    /// Block requests.
    pub io: bool,
    /// Tasks.
    pub sched: bool,
}

impl InstrumentSet {
    /// All instruments.
    pub const ALL: InstrumentSet =
        InstrumentSet { clock: true, misses: true, locks: true, polls: true, io: true, sched: true };
}

/// How to observe.
#[derive(Clone, Debug)]
pub struct Options {
    /// Requested instruments.
    pub instruments: InstrumentSet,
    /// Samples a second on a busy CPU.
    pub frequency_hz: u64,
    /// Misses per sample.
    pub miss_period: u64,
    /// More events to sample, by name.
    pub events: Vec<String>,
    /// How user stacks are found.
    pub stacks: StackMode,
    /// Keep every lock wait and poll.
    pub log: bool,
    /// Count how often libc's mutexes are taken.
    pub acquisitions: bool,
    /// End after this time.
    pub limit: Option<Duration>,
    /// The command is a server, which is observed while this load runs.
    pub load: Option<Load>,
    /// Destination of a command's output and error output, if not ours.
    pub output: Option<[Stdio; 2]>,
    /// Receives the number of a command's process as the command begins to run.
    pub started: Option<Sender<i32>>,
}

/// Samples a second by default: a prime, so as not to fall into step with timers.
pub const DEFAULT_FREQUENCY_HZ: u64 = 499;

impl Default for Options {
    fn default() -> Self {
        Options {
            instruments: InstrumentSet::ALL,
            frequency_hz: DEFAULT_FREQUENCY_HZ,
            miss_period: 10_007,
            events: Vec::new(),
            stacks: StackMode::Tables,
            log: false,
            acquisitions: false,
            limit: None,
            load: None,
            output: None,
            started: None,
        }
    }
}
