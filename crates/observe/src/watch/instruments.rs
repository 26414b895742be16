//! The instruments of an observation: which of them this machine lets run, and the record that they leave.

use super::ObserveError;
use super::cached::CachedFiles;
use super::clock::monotonic_ns;
use super::log::Log;
use super::options::{Options, Target};
use super::outcome::Outcome;
use super::timeline::{Timeline, clock_samples};
use super::wait_costs::Measuring;
use crate::bpf::{BpfSession, Figures, Wants, Who, merged_locks};
use crate::perf::{EventSpec, PerfError, PerfSession, Rate, Reach, Role, Symbolizer, event, has_pmu, pmu};
use nearmiss_record::observed::{Instrument, MemoryUse, Observed, Profile, SCHEMA, Task};
use nearmiss_record::words;
use nearmiss_workload::{Suspended, Tree};
use std::path::Path;
use std::time::Duration;

/// Length of a step of the time line; the rings are emptied as often.
pub(super) const STEP: Duration = Duration::from_millis(100);

/// The processes that the instruments begin with.
pub(crate) enum Roots {
    /// A command's, which has not run yet.
    Suspended(i32),
    /// A server's, or a process with its descendants, which run already.
    Running(Vec<i32>),
    /// All of the target's, now and later.
    OfTarget,
}

impl Roots {
    /// Returns the roots of a target; its command has not run yet.
    pub(crate) fn of(target: &Target, suspended: Option<&Suspended>) -> Self {
        match (suspended, target) {
            (Some(suspended), _) => Roots::Suspended(suspended.pid()),
            // The master of a server waits; its children, which it started long ago, work.
            (None, Target::Process(pid)) => Roots::Running(Tree::of(*pid).processes()),
            _ => Roots::OfTarget,
        }
    }

    fn processes(&self) -> Vec<i32> {
        match self {
            Roots::Suspended(process) => vec![*process],
            Roots::Running(processes) => processes.clone(),
            Roots::OfTarget => Vec::new(),
        }
    }
}

/// The instruments that run.
pub(crate) struct Instruments {
    pub(crate) perf: Option<PerfSession>,
    pub(crate) bpf: Option<BpfSession>,
    rows: Vec<Instrument>,
    waits: Option<Measuring>,
    /// Root processes of the followed files, used with block I/O; empty for a target like a cgroup or the machine.
    roots: Vec<i32>,
    cached: Option<CachedFiles>,
}

impl Instruments {
    pub(crate) fn start(target: &Target, roots: &Roots, options: &Options) -> Result<Self, ObserveError> {
        if let Target::Cgroup(path) = target {
            check_cgroup(path)?;
        }
        let mut rows = Vec::new();
        let perf = start_perf(target, roots, options, &mut rows)?;
        let bpf = start_bpf(target, roots, options, &mut rows);
        if perf.is_none() && bpf.is_none() {
            let why: Vec<String> = rows.iter().map(|r| format!("{}: {}", r.name, r.how)).collect();
            return Err(ObserveError::NothingWorks(why.join("; ")));
        }
        Ok(Instruments { perf, bpf, rows, waits: None, roots: roots.processes(), cached: None })
    }

    /// The window begins now; returns when that is.
    pub(crate) fn begin(&mut self, of_command: bool) -> Result<u64, ObserveError> {
        if self.ran("io") && !self.roots.is_empty() {
            self.cached = CachedFiles::begin(std::mem::take(&mut self.roots));
        }
        let now = monotonic_ns();
        if let Some(bpf) = &mut self.bpf {
            bpf.begin(now)?;
        }
        if let Some(perf) = &mut self.perf {
            perf.enable(now, of_command)?;
        }
        self.waits = if self.ran("polls") { Measuring::start() } else { None };
        Ok(now)
    }

    /// Ends the window now, and returns the time.
    pub(super) fn end(&mut self) -> Result<u64, ObserveError> {
        let now = monotonic_ns();
        if let Some(bpf) = &mut self.bpf {
            bpf.end(now)?;
        }
        Ok(now)
    }

    pub(super) fn figures(&self, at_ns: u64) -> Figures {
        self.bpf.as_ref().map(|bpf| bpf.figures(at_ns)).unwrap_or_default()
    }

    /// Returns the requested instruments, and their results.
    pub(crate) fn rows(&self) -> &[Instrument] {
        &self.rows
    }

    fn ran(&self, name: &str) -> bool {
        self.rows.iter().any(|row| row.name == name && row.on)
    }

    pub(crate) fn drain(&mut self) {
        if let Some(perf) = &mut self.perf {
            perf.drain();
        }
        if let Some(bpf) = &mut self.bpf {
            bpf.drain(self.perf.as_ref().map(PerfSession::spaces));
        }
    }

    /// Waits until a sample buffer fills or the time is up; false when there is nothing to wait on.
    pub(crate) fn wait_for_samples(&self, limit: Duration) -> bool {
        self.perf.as_ref().is_some_and(|perf| perf.wait(limit))
    }

    pub(super) fn step(&mut self, timeline: &mut Timeline) {
        self.drain();
        if let Some(cached) = &mut self.cached {
            cached.step();
        }
        let now = monotonic_ns();
        if timeline.is_due(now, STEP) {
            timeline.tick(now, self.figures(now));
        }
    }

    pub(super) fn finish(
        mut self,
        timeline: Timeline,
        started_ns: u64,
        ended_ns: u64,
        machine: bool,
        reported_cpu_ns: Option<u64>,
    ) -> Result<Outcome, ObserveError> {
        let mut symbolizer = Symbolizer::default();
        let waits = self.waits.take().and_then(Measuring::finish);
        let mut observed = Observed {
            waits,
            cached: self.cached.take().map(CachedFiles::finish).unwrap_or_default(),
            schema: SCHEMA.to_owned(),
            started_monotonic_ns: started_ns,
            duration_ns: ended_ns - started_ns,
            cpus: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
            ..Observed::default()
        };
        let mut log = Log::default();
        if let Some(perf) = &mut self.perf {
            perf.disable();
            perf.drain();
            observed.instrument_bytes += perf.buffer_bytes();
            if !perf.sees_kernel() {
                observed
                    .notes
                    .push("Kernel code was not sampled: it takes root, or kernel.perf_event_paranoid ≤ 1.".to_owned());
            }
        }
        if let Some(bpf) = &mut self.bpf {
            observed.instrument_bytes += bpf.kernel_bytes();
            let counted = bpf.read(&mut symbolizer, self.perf.as_ref().map(PerfSession::spaces))?;
            observed.locks = counted.locks;
            observed.polls = counted.polls;
            observed.io = counted.io;
            observed.queues = counted.queues;
            observed.memory = named_as_tasks(counted.memory, &counted.tasks);
            observed.tasks = counted.tasks;
            observed.lost = counted.lost;
            log = Log::of(bpf.take_log(), &observed.locks, started_ns);
            observed.locks = merged_locks(std::mem::take(&mut observed.locks));
        }
        observed.profile = self.perf.take().map(|perf| perf.finish(&mut symbolizer));
        if let Some(profile) = &observed.profile {
            let lost: u64 = profile.events.iter().map(|e| e.lost).sum();
            if lost > 0 {
                observed.lost.push(("samples".to_owned(), lost));
            }
        }
        if self.bpf.as_ref().is_some_and(BpfSession::follows_switches) {
            // The time line also has the tasks that found no room.
            let lost = observed.lost.iter().any(|(what, _)| what.starts_with("tasks"));
            observed.cpu_ns = if lost { timeline.cpu_ns() } else { cpu_of_tasks(&observed) };
            observed.timeline = timeline.counted();
        } else {
            let of_machine = machine.then(|| timeline.machine_cpu_ns());
            observed.cpu_ns = self.cpu_ns(&observed, reported_cpu_ns, of_machine);
            observed.timeline = timeline.spread(observed.profile.as_ref(), observed.cpu_ns);
        }
        observed.instruments = self.rows;
        Ok(Outcome { observed, finished: None, log })
    }

    /// Returns the target's CPU time by the best account there is where switches were not watched. The kernel's figure
    /// of a command lacks the processes that nobody waited for, as daemons are; the accounts of tasks lack the last
    /// moments of tasks that were not gone yet when the observation ended.
    fn cpu_ns(&self, observed: &Observed, reported: Option<u64>, of_machine: Option<u64>) -> u64 {
        let of_tasks = self.bpf.as_ref().map(|_| cpu_of_tasks(observed));
        of_machine.or(reported.max(of_tasks)).unwrap_or_else(|| observed.profile.as_ref().map_or(0, clock_total))
    }
}

/// Names processes by their first tasks: a command's first page is given out while it still has its launcher's name.
fn named_as_tasks(mut memory: Vec<MemoryUse>, tasks: &[Task]) -> Vec<MemoryUse> {
    for row in &mut memory {
        if let Some(task) = tasks.iter().find(|task| task.thread == row.process) {
            row.name.clone_from(&task.name);
        }
    }
    memory
}

fn cpu_of_tasks(observed: &Observed) -> u64 {
    observed.tasks.iter().map(|t: &Task| t.cpu_ns).sum()
}

/// Checks a cgroup. Only the unified hierarchy can be followed in the kernel; elsewhere an observation would find
/// nothing, silently.
fn check_cgroup(path: &Path) -> Result<(), PerfError> {
    const CGROUP2: i64 = 0x6367_7270; // CGROUP2_SUPER_MAGIC, include/uapi/linux/magic.h
    let refuse = |why: &str| PerfError::Target(format!("{}: {why}", path.display()));
    let found = rustix::fs::statfs(path).map_err(|e| refuse(&words::io_error(&e.into())))?;
    if found.f_type != CGROUP2 {
        return Err(refuse(
            "not a cgroup of the unified hierarchy; `grep cgroup2 /proc/mounts` prints where that is, cat /proc/PID/cgroup where a process is in it",
        ));
    }
    Ok(())
}

/// CPU time by the clock samples alone; their weights are nanoseconds when the clock is the CPU clock.
fn clock_total(profile: &Profile) -> u64 {
    let nanoseconds = profile.events.iter().any(|e| e.role == "clock" && !e.name.contains("cycles"));
    if nanoseconds { clock_samples(profile).map(|s| s.weight).sum() } else { 0 }
}

fn start_perf(
    target: &Target,
    roots: &Roots,
    options: &Options,
    rows: &mut Vec<Instrument>,
) -> Result<Option<PerfSession>, ObserveError> {
    let mut events: Vec<EventSpec> = Vec::new();
    let with_pmu = has_pmu();
    let frequency = Rate::Frequency(options.frequency_hz);
    if options.instruments.clock {
        events.push(event(if with_pmu { "cycles" } else { "cpu-clock" }, Role::Clock, frequency)?);
    }
    if options.instruments.misses && with_pmu {
        for (name, role) in [("cache-misses", Role::Misses), ("cache-references", Role::References)] {
            events.push(event(name, role, Rate::Period(options.miss_period))?);
        }
    }
    for name in &options.events {
        let (name, rate) = match name.split_once('@') {
            Some((name, period)) => {
                let period = period.parse().ok().filter(|p| *p > 0);
                let unknown =
                    || PerfError::UnknownEvent(format!("{name}@ (a period is a number, as in page-faults@16)"));
                (name, Rate::Period(period.ok_or_else(unknown)?))
            }
            None => (name.as_str(), frequency),
        };
        events.push(event(name, Role::Other, rate)?);
    }
    if options.instruments.misses && !with_pmu {
        let why = pmu().err();
        let to_enable = why.as_ref().map_or("", PerfError::to_enable);
        rows.push(missing("misses", &why.map_or_else(String::new, |e| e.to_string()), to_enable));
    }
    if events.is_empty() {
        return Ok(None);
    }
    let reach = match (roots, target) {
        (Roots::Suspended(pid), _) => Reach::Command(*pid),
        (Roots::Running(pids), _) => Reach::Processes(pids.clone()),
        (Roots::OfTarget, Target::Cgroup(path)) => Reach::Cgroup(path.clone()),
        _ => Reach::Machine,
    };
    match PerfSession::open(&events, &reach, options.stacks) {
        Ok(session) => {
            if options.instruments.clock {
                let what = if with_pmu {
                    "sampling cycles"
                } else {
                    "sampling the CPU clock (no performance-monitoring unit here)"
                };
                rows.push(running("clock", format!("{what}, {} Hz", options.frequency_hz)));
            }
            if options.instruments.misses && with_pmu {
                rows.push(running(
                    "misses",
                    format!("sampling cache misses and references, one in {}", options.miss_period),
                ));
            }
            Ok(Some(session))
        }
        Err(e @ (PerfError::UnknownEvent(_) | PerfError::Target(_))) => Err(e.into()),
        Err(e) => {
            rows.push(missing("clock", &e.to_string(), e.to_enable()));
            Ok(None)
        }
    }
}

fn start_bpf(target: &Target, roots: &Roots, options: &Options, rows: &mut Vec<Instrument>) -> Option<BpfSession> {
    let instruments = options.instruments;
    let wants = Wants {
        locks: instruments.locks,
        polls: instruments.polls,
        io: instruments.io,
        sched: instruments.sched,
        log: options.log,
        acquisitions: options.acquisitions && instruments.locks,
    };
    let names = [
        ("locks", instruments.locks),
        ("polls", instruments.polls),
        ("io", instruments.io),
        ("sched", instruments.sched),
    ];
    if names.iter().all(|(_, wanted)| !wanted) {
        return None;
    }
    let who = match (roots, target) {
        (Roots::Suspended(pid), _) => Who::Tasks(vec![*pid]),
        (Roots::Running(pids), _) => Who::Tasks(pids.clone()),
        (Roots::OfTarget, Target::Cgroup(path)) => Who::Cgroup(path.clone()),
        _ => Who::All,
    };
    match BpfSession::start(wants, &who) {
        Ok(session) => {
            for (name, _) in names.iter().filter(|(_, wanted)| *wanted) {
                let how = match (*name, session.calls()) {
                    ("polls", calls) => calls.how(),
                    ("locks", _) if wants.acquisitions => Instrument::with_cost(
                        "lock contention tracepoints; futexes at the scheduler; a probe in libc",
                        "everybody's taking of a mutex microseconds (20 µs where it was measured)",
                    ),
                    ("locks", _) => "lock contention tracepoints; futexes at the scheduler".to_owned(),
                    ("io", _) => "block tracepoints".to_owned(),
                    _ => "every switch and every wake-up, at the scheduler".to_owned(),
                };
                rows.push(running(name, how));
            }
            Some(session)
        }
        Err(e) => {
            for (name, _) in names.iter().filter(|(_, wanted)| *wanted) {
                rows.push(missing(name, &e.to_string(), e.to_enable()));
            }
            None
        }
    }
}

fn running(name: &str, how: String) -> Instrument {
    Instrument { name: name.to_owned(), on: true, how, to_enable: String::new() }
}

fn missing(name: &str, why: &str, to_enable: &str) -> Instrument {
    Instrument { name: name.to_owned(), on: false, how: why.to_owned(), to_enable: to_enable.to_owned() }
}
