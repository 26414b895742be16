//! Which programs each instrument needs, and loading only those.

use super::{BpfError, refused};
use crate::perf::attach_to_point;
use crate::rights::Rights;
use aya::programs::uprobe::UProbeScope;
use aya::programs::{Program, ProgramError};
use aya::{Btf, Ebpf, EbpfLoader};
use nearmiss_record::observed::Instrument;
use std::os::fd::{AsFd, OwnedFd};

const OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/observe.bpf.o"));

/// The requested instruments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// Kernel lock and futex waits.
    pub locks: bool,
    /// The poll family.
    pub polls: bool,
    /// Block requests.
    pub io: bool,
    /// Why tasks were off the CPU, and their accounts to their very end.
    pub sched: bool,
    /// Every lock wait and poll, one by one.
    pub log: bool,
    /// How often libc's mutexes are taken, beside how often they are waited for.
    pub acquisitions: bool,
}

impl Wants {
    /// Whether the scheduler's tracepoints are watched: every task's time is then known by what it did with it.
    pub fn switches(self) -> bool {
        self.locks || self.sched
    }
}

/// How system calls are watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallTracing {
    /// Not at all.
    #[default]
    None,
    /// At the functions of the requested calls: other calls pay nothing.
    Functions,
    /// At the tracepoints of the requested calls, where the kernel refuses functions: every call of the machine then
    /// takes the kernel's tracing path while it lasts (`scripts/observe-cheap.sh` measures what that costs).
    CallPoints,
    /// A program at the entry and exit of every system call, where the trace file system cannot be read either.
    EveryCall,
}

impl CallTracing {
    /// Describes the tracing in the words of the report.
    pub fn how(self) -> String {
        match self {
            CallTracing::None => String::new(),
            CallTracing::Functions => "at the poll family's functions".to_owned(),
            CallTracing::CallPoints => Instrument::with_cost(
                "at the poll family's tracepoints (this kernel refuses BPF on functions)",
                "every system call of the machine some 50 ns meanwhile",
            ),
            CallTracing::EveryCall => Instrument::with_cost(
                "at every system call's entry and exit (this kernel refuses BPF on functions, and its trace file system cannot be read)",
                "every system call of the machine some 120 ns meanwhile",
            ),
        }
    }

    /// Returns the cost to others; empty where there is none.
    pub fn cost(self) -> &'static str {
        match self {
            CallTracing::None | CallTracing::Functions => "",
            CallTracing::CallPoints => {
                "no BPF on functions here: while it runs, every system call of the machine takes some 50 ns longer"
            }
            CallTracing::EveryCall => {
                "no BPF on functions here: while it runs, every system call of the machine takes some 120 ns longer"
            }
        }
    }
}

const LOCK_POINTS: [(&str, &str); 2] = [("lock_begin", "contention_begin"), ("lock_end", "contention_end")];
const IO_POINTS: [(&str, &str); 3] =
    [("io_start", "block_io_start"), ("io_issue", "block_rq_issue"), ("io_complete", "block_rq_complete")];
const MEMORY_POINTS: [(&str, &str); 3] = [
    ("page_alloc", "mm_page_alloc"),
    ("reclaim_begin", "mm_vmscan_direct_reclaim_begin"),
    ("reclaim_end", "mm_vmscan_direct_reclaim_end"),
];
/// Points of kernels with memory cgroups.
const CGROUP_MEMORY_POINTS: [(&str, &str); 2] =
    [("cgroup_reclaim_begin", "mm_vmscan_memcg_reclaim_begin"), ("cgroup_reclaim_end", "mm_vmscan_memcg_reclaim_end")];
const TASK_POINTS: [(&str, &str); 3] =
    [("task_wakes", "sched_wakeup"), ("task_begins", "sched_wakeup_new"), ("task_switch", "sched_switch")];
const END_POINTS: [(&str, &str); 1] = [("task_free", "sched_process_free")];
const FORK_POINTS: [(&str, &str); 1] = [("task_fork", "sched_process_fork")];
const CALL_POINTS: [(&str, &str); 2] = [("any_call_enter", "sys_enter"), ("any_call_exit", "sys_exit")];

/// Everyone's events count.
pub const WHO_ALL: u32 = 0;
/// Events of listed tasks and what they start count.
pub const WHO_TASKS: u32 = 1;
/// Events of a cgroup count.
pub const WHO_CGROUP: u32 = 2;

/// Constants of the programs, set before they are loaded.
pub struct Constants {
    pub who: u32,
    pub cgroup_id: u64,
    pub cgroup_level: u32,
}

/// Programs attached; they run until this is dropped.
pub struct Loaded {
    pub ebpf: Ebpf,
    pub calls: CallTracing,
    _points: Vec<OwnedFd>,
}

/// Loads and attaches the requested instruments. Nothing counts before the target runs or [`Constants`] match it.
pub fn load(wants: Wants, constants: &Constants) -> Result<Loaded, BpfError> {
    if OBJECT.is_empty() {
        return Err(BpfError::NotBuilt);
    }
    // Checked first: a container hides files too.
    match Rights::now() {
        Rights::Full | Rights::Capabilities => {}
        container => return Err(BpfError::NotAllowed(container)),
    }
    let btf = Btf::from_sys_fs().map_err(|_| BpfError::NoBtf)?;
    let self_tgid = std::process::id();
    let [log, locks, polls, switches] = [wants.log, wants.locks, wants.polls, wants.switches()].map(u32::from);
    let mut loader = EbpfLoader::new();
    loader
        .btf(Some(&btf))
        .allow_unsupported_maps() // task storage, which only the programs use
        .override_global("who", &constants.who, true)
        .override_global("cgroup_id", &constants.cgroup_id, true)
        .override_global("cgroup_level", &constants.cgroup_level, true)
        .override_global("self_tgid", &self_tgid, true)
        .override_global("log_events", &log, true)
        .override_global("want_locks", &locks, true)
        .override_global("want_polls", &polls, true)
        .override_global("want_switches", &switches, true);
    for (map, entries) in sizes(wants) {
        loader.map_max_entries(map, entries);
    }
    let mut ebpf = loader.load(OBJECT).map_err(|e| refused("the BPF maps", &e))?;
    let mut attach = |points: &[(&str, &str)]| -> Result<(), BpfError> {
        for (program, point) in points {
            tracepoint(&mut ebpf, &btf, program, point)?;
        }
        Ok(())
    };
    attach(&END_POINTS)?;
    if constants.who == WHO_TASKS {
        attach(&FORK_POINTS)?;
    }
    if wants.locks {
        attach(&LOCK_POINTS)?;
    }
    if wants.switches() {
        attach(&TASK_POINTS)?;
    }
    if wants.io {
        attach(&IO_POINTS)?;
        attach(&MEMORY_POINTS)?;
        // A kernel without cgroups has no reclaim for them.
        let _ = attach(&CGROUP_MEMORY_POINTS);
    }
    if wants.acquisitions {
        mutexes(&mut ebpf)?;
    }
    let (calls, points) = if wants.polls { poll_calls(&mut ebpf, &btf)? } else { (CallTracing::None, Vec::new()) };
    if wants.locks
        && let Some(Program::Iter(iter)) = ebpf.program_mut("find_runqueues")
    {
        // Only for names: a kernel built otherwise goes without.
        let _ = iter.load("task", &btf);
    }
    // Every instrument reports the CPU time of its target.
    if let Some(Program::Iter(iter)) = ebpf.program_mut("snapshot") {
        iter.load("task", &btf).map_err(|e| refused("the task list", &e))?;
    }
    Ok(Loaded { ebpf, calls, _points: points })
}

/// Maps of instruments that are not requested shrink to one entry.
fn sizes(wants: Wants) -> Vec<(&'static str, u32)> {
    let mut sizes = Vec::new();
    let mut shrink = |wanted: bool, maps: &[&'static str]| {
        if !wanted {
            sizes.extend(maps.iter().map(|map| (*map, 1)));
        }
    };
    shrink(wants.locks, &["lock_waits", "lock_stats", "lock_stacks", "lock_places", "runqueues"]);
    shrink(wants.acquisitions, &["acquisitions"]);
    shrink(wants.polls, &["poll_stats", "poll_seats"]);
    shrink(wants.polls && wants.log, &["poll_returns"]);
    shrink(wants.io, &["io_flights", "io_stats", "queues", "memory_stats", "reclaims"]);
    if wants.locks {
        sizes.push(("lock_log", if wants.log { 16 << 20 } else { 1 << 20 }));
    }
    if wants.polls && wants.log {
        sizes.push(("poll_log", 16 << 20));
    }
    sizes
}

fn tracepoint(ebpf: &mut Ebpf, btf: &Btf, program: &str, point: &str) -> Result<(), BpfError> {
    let Some(Program::BtfTracePoint(found)) = ebpf.program_mut(program) else {
        return Err(BpfError::NotBuilt);
    };
    let name = format!("tracepoint {point}");
    found.load(point, btf).map_err(|e| refused(&name, &e))?;
    found.attach().map_err(|e| refused(&name, &e))?;
    Ok(())
}

/// Counts the calls that take a mutex of the libc that this program itself runs with.
fn mutexes(ebpf: &mut Ebpf) -> Result<(), BpfError> {
    let what = "probe of libc's mutexes";
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let libc = maps.split_whitespace().find(|word| word.ends_with("/libc.so.6"));
    let libc = libc.ok_or_else(|| BpfError::Refused { what: what.to_owned(), why: "no libc.so.6 here".to_owned() })?;
    let Some(Program::UProbe(probe)) = ebpf.program_mut("mutex_taken") else { return Err(BpfError::NotBuilt) };
    probe.load().map_err(|e| refused(what, &e))?;
    for function in ["pthread_mutex_lock", "pthread_mutex_timedlock", "pthread_mutex_clocklock"] {
        probe.attach(function, libc, UProbeScope::AllProcesses).map_err(|e| refused(what, &e))?;
    }
    Ok(())
}

/// Attaches to the poll family in the cheapest way that this kernel grants.
fn poll_calls(ebpf: &mut Ebpf, btf: &Btf) -> Result<(CallTracing, Vec<OwnedFd>), BpfError> {
    if poll_functions(ebpf, btf).is_ok() {
        return Ok((CallTracing::Functions, Vec::new()));
    }
    if let Ok(points) = poll_points(ebpf) {
        return Ok((CallTracing::CallPoints, points));
    }
    for (program, point) in CALL_POINTS {
        tracepoint(ebpf, btf, program, point)?;
    }
    Ok((CallTracing::EveryCall, Vec::new()))
}

/// Attaches to the tracepoints of the poll family. They run for as long as the descriptors are open.
fn poll_points(ebpf: &mut Ebpf) -> Result<Vec<OwnedFd>, BpfError> {
    let mut points = Vec::new();
    for call in super::layout::POLL_CALLS {
        // Exits first: a call that is under way is then not counted at all.
        for side in ["exit", "enter"] {
            let name = format!("tracepoint syscalls:sys_{side}_{call}");
            let Some(Program::TracePoint(found)) = ebpf.program_mut(&format!("point_{side}_{call}")) else {
                return Err(BpfError::NotBuilt);
            };
            found.load().map_err(|e| refused(&name, &e))?;
            let program = found.fd().map_err(|e| refused(&name, &e))?;
            let at = format!("sys_{side}_{call}");
            points.push(attach_to_point("syscalls", &at, program.as_fd()).map_err(|e| refused(&name, &e))?);
        }
    }
    Ok(points)
}

/// Attaches to the functions of the poll family; all or none.
fn poll_functions(ebpf: &mut Ebpf, btf: &Btf) -> Result<(), ProgramError> {
    let attached = try_poll_functions(ebpf, btf);
    if attached.is_err() {
        for (_, program) in ebpf.programs_mut() {
            // A program that was not loaded cannot be unloaded: nothing to do about that.
            let _ = match program {
                Program::FEntry(p) => p.unload(),
                Program::FExit(p) => p.unload(),
                _ => Ok(()),
            };
        }
    }
    attached
}

fn try_poll_functions(ebpf: &mut Ebpf, btf: &Btf) -> Result<(), ProgramError> {
    for call in super::layout::POLL_CALLS {
        let function = format!("__x64_sys_{call}");
        if let Some(Program::FExit(exit)) = ebpf.program_mut(&format!("poll_exit_{call}")) {
            exit.load(&function, btf)?;
            exit.attach()?;
        }
        if let Some(Program::FEntry(entry)) = ebpf.program_mut(&format!("poll_enter_{call}")) {
            entry.load(&function, btf)?;
            entry.attach()?;
        }
    }
    Ok(())
}
