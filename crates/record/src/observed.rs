//! `observe.json`: behaviour of a program on the real machine, *measured* by the kernel's own instruments.
//!
//! Times are nanoseconds; instants are counted from the start of the observation, at [`Observed::started_monotonic_ns`]
//! on the machine's `CLOCK_MONOTONIC`. Histograms are log₂: slot *i* counts the values *v* with ⌊log₂ max(v, 1)⌋ = *i*;
//! trailing empty slots are left out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// File name in the run directory.
pub const FILE: &str = "observe.json";
/// `nearmiss/observe/1`.
pub const SCHEMA: &str = "nearmiss/observe/1";

crate::schema::is_record!(Observed);

/// Shortest run that gets a class: in less, a few samples and waits would decide.
pub const LEAST_CLASSIFIED_NS: u64 = 100_000_000;

/// Everything one observation found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Observed {
    /// [`SCHEMA`].
    pub schema: String,
    /// Target of the observation, for people: the command, `process 12`, `cgroup /x`, `the whole machine`.
    pub target: String,
    /// Start on `CLOCK_MONOTONIC`.
    pub started_monotonic_ns: u64,
    /// From the release of the command (or the start of the instruments) to the end.
    pub duration_ns: u64,
    /// CPUs online.
    pub cpus: u32,
    /// CPU time of the target: with `sched` or `locks` from switch to switch; else as the kernel reports it for the
    /// command, or for the whole machine in `/proc/stat`; else by the kernel's task accounts, to the end of each task;
    /// else by the clock samples.
    pub cpu_ns: u64,
    /// Instruments requested, and their state.
    pub instruments: Vec<Instrument>,
    /// Sampled events.
    pub profile: Option<Profile>,
    /// Lock waits, longest total first.
    pub locks: Vec<Lock>,
    /// Poll calls by thread and call, most calls first.
    pub polls: Vec<Poll>,
    /// Costs of waits here, measured while polls were watched.
    #[serde(default)]
    pub waits: Option<WaitCosts>,
    /// Block requests by device, operation and submitter.
    pub io: Vec<BlockIo>,
    /// Queues of the block devices.
    pub queues: Vec<Queue>,
    /// Files in the page cache, with `io`: those that the target opened, and larger ones that others had open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cached: Vec<CachedFile>,
    /// Pages that processes were given, and found by direct reclaim; most pages first.
    #[serde(default)]
    pub memory: Vec<MemoryUse>,
    /// Tasks, most CPU time first. Without `sched` and `locks` only the kernel's accounts of them are known.
    pub tasks: Vec<Task>,
    /// The time line, oldest first.
    pub timeline: Vec<Tick>,
    /// Phases with their class.
    /// None of a run shorter than [`LEAST_CLASSIFIED_NS`].
    pub phases: Vec<Phase>,
    /// Memory the instruments held in the kernel and in the observer, in bytes.
    pub instrument_bytes: u64,
    /// Events that found no room, by name; empty when nothing was lost.
    pub lost: Vec<(String, u64)>,
    /// Facts for the reader, one sentence each.
    pub notes: Vec<String>,
}

/// One instrument of an observation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Instrument {
    /// `clock`, `misses`, `locks`, `polls`, `io`, `sched`.
    pub name: String,
    /// The instrument ran.
    pub on: bool,
    /// Method of the measurement, or the reason why there was none.
    pub how: String,
    /// Input that enables the instrument; empty when it ran.
    pub to_enable: String,
}

/// Words between a method and its cost to those who are not observed.
const COSTS: &str = ", which costs ";

impl Instrument {
    /// Describes a method that costs others something.
    pub fn with_cost(method: &str, cost: &str) -> String {
        format!("{method}{COSTS}{cost}")
    }

    /// Whether the instrument ran by a method that costs others something.
    pub fn costs_others(&self) -> bool {
        self.on && self.how.contains(COSTS)
    }
}

/// Sampled events, with the code they fell on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Profile {
    /// The events.
    pub events: Vec<Event>,
    /// Code locations.
    pub frames: Vec<Frame>,
    /// Call stacks: indices into `frames`, innermost first.
    pub stacks: Vec<Vec<u32>>,
    /// Threads: (process, thread, name).
    pub threads: Vec<(i32, i32, String)>,
    /// Samples, oldest first.
    pub samples: Vec<Sample>,
}

/// An event that was sampled or counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Name of the event, as in `perf list`.
    pub name: String,
    /// Meaning of its samples: `clock`, `misses`, `references`, `other`.
    pub role: String,
    /// Samples a second requested; zero with a period.
    pub frequency_hz: u64,
    /// Events a sample requested; zero with a frequency.
    pub period: u64,
    /// Events counted.
    pub count: u64,
    /// Time the counters were enabled, summed over CPUs or tasks.
    pub enabled_ns: u64,
    /// Time they really counted: less than `enabled_ns` when events shared a counter.
    pub running_ns: u64,
    /// Samples the kernel could not deliver.
    pub lost: u64,
    /// Times the kernel throttled the sampling.
    pub throttled: u64,
}

/// A code location.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Frame {
    /// Demangled; `module+0x1234` where there is no name.
    pub function: String,
    /// Path, or `[kernel]`.
    pub module: String,
    /// `file:line`, or empty.
    pub line: String,
    /// Address of the instruction in its module (in the kernel: as loaded).
    pub address: u64,
    /// Kernel code.
    pub kernel: bool,
}

/// One sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// Since the start.
    pub at_ns: u64,
    /// Index into the events.
    pub event: u32,
    /// Index into the stacks.
    pub stack: u32,
    /// Index into the threads.
    pub thread: u32,
    /// Events it stands for (nanoseconds for clocks).
    pub weight: u64,
    /// CPU of the sample.
    pub cpu: u32,
}

/// Waits for one lock at one calling point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lock {
    /// Address, in the kernel or in the process.
    pub address: u64,
    /// `spinlock`, `mutex`, `rwsem:R`, `futex`, …
    pub kind: String,
    /// Symbol, if it has one; for a futex, its role in the program: `mutex`, `rwlock`, `condition variable`, `thread
    /// join`, `semaphore`, `barrier`, `parked thread`; empty if the stacks do not show it.
    pub name: String,
    /// Waiting for it is contention: others hold it. False for waits for something to happen, such as a condition
    /// variable, and for futexes with stacks that do not show it.
    pub contended: bool,
    /// For futexes: the named variable that holds it; empty on a heap or a stack.
    #[serde(default)]
    pub variable: String,
    /// Number of locks that read alike in this row, if more than one; the address is then that of the first.
    #[serde(default)]
    pub alike: u64,
    /// Process, for futexes.
    pub process: Option<i32>,
    /// Calling point first, then its callers.
    pub stack: Vec<Frame>,
    /// For futexes: (calling point, waits with a stack taken there). Futex stacks are taken for the first 64 waits of a
    /// futex and for one in 64 after that.
    pub call_sites: Vec<(Frame, u64)>,
    /// Acquisitions of a libc mutex, if they were counted; else zero.
    #[serde(default)]
    pub acquisitions: u64,
    /// Waits, those included that began before the observation or lasted at its end.
    pub count: u64,
    /// Sum of their times, cut to the observation.
    pub total_ns: u64,
    /// Shortest.
    pub min_ns: u64,
    /// Longest.
    pub max_ns: u64,
    /// Distribution of the waits.
    pub log2_ns: Vec<u32>,
}

/// The poll calls of one thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Poll {
    /// `poll`, `epoll_wait`, …
    pub call: String,
    /// Process.
    pub process: i32,
    /// Thread.
    pub thread: i32,
    /// Name of the thread.
    pub name: String,
    /// Calls that ended.
    pub calls: u64,
    /// A call was under way when the observation ended.
    #[serde(default)]
    pub open: bool,
    /// Descriptors polled, summed over calls; zero for epoll: its calls do not give them, see `watched`.
    #[serde(rename = "asked")]
    pub descriptors: u64,
    /// For epoll: descriptors in the set, as last looked at (once a second); zero where it was not.
    #[serde(default)]
    pub watched: u64,
    /// Events returned.
    pub events: u64,
    /// Events left over: of descriptors (of epoll: of the data registered for them) that the thread's last call of this
    /// kind returned too, and that were there when the call was made. Counted only with a log.
    #[serde(default)]
    pub again: u64,
    /// Events of which that is not known, though there is a log.
    #[serde(default)]
    pub not_compared: u64,
    /// Calls that returned events.
    pub with_events: u64,
    /// Calls that returned none.
    pub empty: u64,
    /// Calls that failed (`EINTR` included).
    pub failed: u64,
    /// Calls with timeout zero.
    pub zero_timeout: u64,
    /// Time in the calls off the CPU, cut to the observation; of a call under way at an end all time counts as such.
    pub blocked_ns: u64,
    /// Time in the calls on the CPU.
    pub on_cpu_ns: u64,
    /// Time between the end of a call and the next one.
    pub interval_ns: u64,
    /// Number of such intervals.
    pub intervals: u64,
    /// From the first call to the end of the last.
    pub span_ns: u64,
    /// CPU of the last call.
    pub last_cpu: u32,
    /// Calls that ended on another CPU than the one before.
    pub cpu_changes: u64,
    /// Distribution of the intervals.
    pub log2_interval_ns: Vec<u32>,
    /// Distribution of the events a call, of calls with events.
    pub log2_events: Vec<u32>,
}

/// CPU time that a wait of half a millisecond costs the thread that waits: the medians of up to a hundred waits, which two
/// threads of nearmiss made while the target ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaitCosts {
    /// CPU time of a `ppoll` without descriptors, which its timeout ends.
    pub sleep_cpu_ns: u64,
    /// CPU time of an `epoll_wait` that another thread ends.
    pub woken_cpu_ns: u64,
}

/// Block requests of one submitter to one device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlockIo {
    /// `vda`, `loop0`, …; `major:minor` where it has no name.
    pub device: String,
    /// `read`, `write`, `flush`, `discard`, ….
    pub operation: String,
    /// Process that submitted.
    pub process: i32,
    /// Name of the thread that submitted.
    pub name: String,
    /// Requests completed.
    pub count: u64,
    /// Bytes.
    pub bytes: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Time from start to issue.
    pub queue_ns: u64,
    /// Time from issue to completion.
    pub device_ns: u64,
    /// Shortest, start to completion.
    pub min_ns: u64,
    /// Longest.
    pub max_ns: u64,
    /// Distribution of the time before issue.
    pub log2_queue_ns: Vec<u32>,
    /// Distribution of the time in the device.
    pub log2_device_ns: Vec<u32>,
}

/// A file in the page cache, at the start of the observation and at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CachedFile {
    /// Path of the file.
    pub path: String,
    /// A process that had it open.
    pub process: i32,
    /// Name of the process.
    pub name: String,
    /// The target had it open.
    pub of_target: bool,
    /// Length of the file at the end.
    pub size_bytes: u64,
    /// In the page cache before; unknown where the target opened the file later.
    pub before_bytes: Option<u64>,
    /// In the page cache afterwards.
    pub after_bytes: u64,
    /// Pushed out meanwhile, and so lately that the kernel takes it for part of a working set.
    pub recently_evicted_bytes: u64,
    /// Bytes of any file that the process had read from storage meanwhile; unknown for the target's, and without the
    /// right.
    pub read_bytes: Option<u64>,
}

impl CachedFile {
    /// Bytes that the page cache lost of the file, as far as is known.
    pub fn lost(&self) -> u64 {
        self.before_bytes.map_or(0, |before| before.saturating_sub(self.after_bytes))
    }
}

/// The kernel's allocations of pages while a process was current.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryUse {
    /// The process.
    pub process: i32,
    /// Name of a thread that allocated.
    pub name: String,
    /// Pages of 4 KiB that the process was given.
    pub pages: u64,
    /// Calls that gave the pages.
    pub allocations: u64,
    /// Number of times that the process had to find pages itself.
    pub reclaims: u64,
    /// Time that the process took to find pages itself.
    pub reclaim_ns: u64,
    /// Longest single time that the process took to find pages itself.
    pub max_ns: u64,
    /// Pages that the process found.
    pub reclaimed: u64,
}

/// The request queue of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Queue {
    /// As [`BlockIo::device`].
    pub device: String,
    /// Requests that started.
    pub requests: u64,
    /// Requests already in flight when one starts, summed.
    pub seen: u64,
    /// Most in flight at once.
    pub max: u64,
    /// Time with at least one in flight.
    pub busy_ns: u64,
    /// Integral of the length over time.
    pub weighted_ns: u64,
    /// Distribution of the length seen at start; slot 0: empty, slot i: from 2^(i-1) to below 2^i.
    pub log2_length: Vec<u32>,
}

/// One task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    /// Process.
    pub process: i32,
    /// Thread.
    pub thread: i32,
    /// Name.
    pub name: String,
    /// Time for which it existed, cut to the observation: `cpu_ns`, `wait_ns` and the sum of `off`. Zero where switches
    /// were not watched.
    #[serde(default)]
    pub life_ns: u64,
    /// Time on a CPU.
    pub cpu_ns: u64,
    /// Part of `cpu_ns` that the kernel's account of the task lacks: time that a hypervisor took.
    #[serde(default)]
    pub stolen_ns: u64,
    /// Time in user mode, by the kernel's account.
    pub user_ns: u64,
    /// Time in the kernel, by the kernel's account.
    pub system_ns: u64,
    /// Time runnable, waiting for a CPU.
    pub wait_ns: u64,
    /// Part of `wait_ns` after another task took the CPU, or before the task first ran; the rest is after a wait.
    #[serde(default)]
    pub preempted_ns: u64,
    /// Times that the task was given a CPU.
    pub runs: u64,
    /// Switches because the task waited.
    pub voluntary: u64,
    /// Switches because another came first.
    pub involuntary: u64,
    /// Moves to another CPU.
    pub migrations: u64,
    /// Time waiting, by reason: (reason, nanoseconds, times), until the task is woken. Records of before `life_ns` count
    /// the wait for a CPU after waking too.
    pub off: Vec<(String, u64, u64)>,
}

/// One step of the time line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tick {
    /// End of the step.
    pub at_ns: u64,
    /// Length of the step.
    pub length_ns: u64,
    /// CPU time of the target in it: from switch to switch; where switches were not watched by the clock samples; without
    /// them all steps have the same share.
    pub cpu_ns: u64,
    /// Time its tasks were runnable without a CPU.
    #[serde(default)]
    pub runnable_ns: u64,
    /// Part of `runnable_ns` after another task took the CPU, or before a task first ran.
    #[serde(default)]
    pub preempted_ns: u64,
    /// CPU time used by anyone.
    pub machine_cpu_ns: u64,
    /// Time any CPU idled with a task waiting for block I/O.
    pub iowait_ns: u64,
    /// Kernel lock waits, as far as they lie in the step.
    pub lock_wait_ns: u64,
    /// Futex waits, as far as they lie in the step.
    pub futex_wait_ns: u64,
    /// Poll calls.
    pub poll_calls: u64,
    /// Events that the poll calls returned.
    pub poll_events: u64,
    /// Block requests completed.
    pub io_done: u64,
    /// Bytes of the completed block requests.
    pub io_bytes: u64,
    /// Block requests in flight at the end of the step.
    pub in_flight: u64,
    /// Context switches.
    pub switches: u64,
}

/// A stretch of the run in one class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// Since the start.
    pub from_ns: u64,
    /// Since the start.
    pub to_ns: u64,
    /// `CPU-busy`, `CPU-idle` or `lock-contended`.
    pub class: String,
    /// Reason for waiting when CPU-idle: `device`, `network`, `sleep`, `input`; else empty.
    pub bound_by: String,
    /// Share of the CPUs the target could use that it used.
    pub cpu_share: f64,
    /// Share of its runnable-or-waiting time spent waiting for locks.
    pub lock_share: f64,
    /// Share of its time waiting for block I/O.
    pub io_share: f64,
    /// Distance of the deciding share from the border, in points.
    pub margin_points: f64,
    /// The evidence in one sentence.
    pub evidence: String,
}
