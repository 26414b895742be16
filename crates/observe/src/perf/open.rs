//! Opening events on a command, a process, a cgroup or every CPU.

use super::{EventSpec, PerfError, Rate};
use perf_event_open_sys::bindings as sys;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::PathBuf;

/// Scope of the events.
#[derive(Clone, Debug)]
pub enum Reach {
    /// A process that has not run yet, and all it will start.
    Command(i32),
    /// Running processes, their threads, and all they will start.
    Processes(Vec<i32>),
    /// A cgroup.
    Cgroup(PathBuf),
    /// Everything.
    Machine,
}

/// Largest user stack that the kernel copies for one sample, in bytes.
pub const STACK_BYTES: u32 = 8192;
/// `ip`, `sp` and `bp`: all that unwinding needs.
pub const UNWIND_REGISTERS: u64 = 1 << 8 | 1 << 7 | 1 << 6;

/// Contents of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contents {
    /// Kernel samples and stacks too.
    pub kernel: bool,
    /// The user stack as bytes, to be unwound by the observer.
    pub stack_bytes: u32,
    /// The user stack by frame pointers.
    pub frame_pointers: bool,
}

/// The attributes of an event that samples.
pub fn attributes(event: &EventSpec, contents: Contents, reach: &Reach) -> sys::perf_event_attr {
    let mut attr = sys::perf_event_attr::default();
    attr.type_ = event.kind;
    attr.size = size_of::<sys::perf_event_attr>() as u32;
    attr.config = event.config;
    attr.read_format = (sys::PERF_FORMAT_TOTAL_TIME_ENABLED | sys::PERF_FORMAT_TOTAL_TIME_RUNNING).into();
    attr.__bindgen_anon_3.config1 = event.config1;
    attr.sample_type = u64::from(
        sys::PERF_SAMPLE_IDENTIFIER
            | sys::PERF_SAMPLE_IP
            | sys::PERF_SAMPLE_TID
            | sys::PERF_SAMPLE_TIME
            | sys::PERF_SAMPLE_CPU
            | sys::PERF_SAMPLE_CALLCHAIN,
    );
    match event.rate {
        Rate::Frequency(hz) => {
            attr.set_freq(1);
            // Not with a fixed period: the kernel then samples software events at every single one.
            attr.sample_type |= u64::from(sys::PERF_SAMPLE_PERIOD);
            attr.__bindgen_anon_1.sample_freq = hz;
        }
        Rate::Period(period) => attr.__bindgen_anon_1.sample_period = period,
    }
    if contents.stack_bytes > 0 {
        attr.sample_type |= u64::from(sys::PERF_SAMPLE_REGS_USER | sys::PERF_SAMPLE_STACK_USER);
        attr.sample_regs_user = UNWIND_REGISTERS;
        attr.sample_stack_user = contents.stack_bytes;
    }
    attr.set_exclude_callchain_user(u64::from(!contents.frame_pointers));
    attr.set_exclude_kernel(u64::from(!contents.kernel));
    attr.set_exclude_callchain_kernel(u64::from(!contents.kernel));
    attr.set_exclude_hv(1);
    attr.set_disabled(1);
    attr.set_enable_on_exec(u64::from(matches!(reach, Reach::Command(_))));
    attr.set_inherit(u64::from(matches!(reach, Reach::Command(_) | Reach::Processes(_))));
    attr.set_mmap(1);
    attr.set_mmap2(1);
    attr.set_comm(1);
    attr.set_comm_exec(1);
    attr.set_task(1);
    attr.set_sample_id_all(1);
    attr.set_use_clockid(1);
    attr.clockid = libc::CLOCK_MONOTONIC;
    attr
}

/// An open event, on one CPU.
pub struct Opened {
    pub fd: OwnedFd,
    pub cpu: u32,
    pub event: usize,
}

/// Opens every event on every CPU for the target.
pub fn open_all(
    events: &[EventSpec],
    contents: Contents,
    reach: &Reach,
    cpus: &[u32],
) -> Result<Vec<Opened>, PerfError> {
    let cgroup = match reach {
        Reach::Cgroup(path) => {
            Some(File::open(path).map_err(|e| PerfError::Target(format!("{}: {e}", path.display())))?)
        }
        _ => None,
    };
    let (who, flags): (Vec<i32>, u32) = match reach {
        Reach::Command(pid) => (vec![*pid], 0),
        Reach::Processes(pids) => (threads_of(pids)?, 0),
        Reach::Cgroup(_) => (vec![cgroup.as_ref().map_or(-1, AsRawFd::as_raw_fd)], sys::PERF_FLAG_PID_CGROUP),
        Reach::Machine => (vec![-1], 0),
    };
    let mut opened = Vec::new();
    for (index, event) in events.iter().enumerate() {
        let attr = attributes(event, contents, reach);
        for &cpu in cpus {
            for &pid in &who {
                match open_one(attr, pid, cpu, flags) {
                    Ok(fd) => opened.push(Opened { fd, cpu, event: index }),
                    // A thread that has ended since it was listed.
                    Err(e) if e.raw_os_error() == Some(libc::ESRCH) && who.len() > 1 => {}
                    Err(e) => return Err(refusal(event, &e)),
                }
            }
        }
    }
    Ok(opened)
}

pub(super) fn open_one(mut attr: sys::perf_event_attr, pid: i32, cpu: u32, flags: u32) -> io::Result<OwnedFd> {
    let flags = flags | sys::PERF_FLAG_FD_CLOEXEC;
    // SAFETY: the attribute is fully initialised and the kernel only reads it (and writes its size on E2BIG).
    let fd = unsafe { perf_event_open_sys::perf_event_open(&mut attr, pid, cpu as i32, -1, flags.into()) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a fresh descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// The threads of a process and of its descendants, of which some may have ended since they were listed.
fn threads_of(pids: &[i32]) -> Result<Vec<i32>, PerfError> {
    let found: Vec<i32> = pids.iter().filter_map(|pid| threads(*pid)).flatten().collect();
    match pids.first() {
        Some(pid) if found.is_empty() => {
            Err(PerfError::Target(format!("process {pid}: there is no such process; `ps -e` lists them")))
        }
        _ => Ok(found),
    }
}

fn threads(pid: i32) -> Option<Vec<i32>> {
    let listing = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    Some(listing.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok()).collect())
}

pub(super) fn refusal(event: &EventSpec, error: &io::Error) -> PerfError {
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    let why = match error.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => {
            "this machine has no performance-monitoring unit that counts it".to_owned()
        }
        Some(libc::EACCES | libc::EPERM) => format!("not allowed (kernel.perf_event_paranoid = {})", paranoid.trim()),
        Some(libc::EINVAL) => "the kernel does not know it, or not at this rate".to_owned(),
        Some(libc::EMFILE) => "too many descriptors: raise `ulimit -n`".to_owned(),
        _ => error.to_string(),
    };
    PerfError::Refused { event: event.name.clone(), why, errno: error.raw_os_error().unwrap_or(0) }
}

/// Tries an event on this process, to learn whether it can be had; with `kernel`, also for kernel samples.
pub fn try_open(event: &EventSpec, kernel: bool, whole_machine: bool) -> Result<(), PerfError> {
    let reach = if whole_machine { Reach::Machine } else { Reach::Processes(vec![std::process::id() as i32]) };
    let contents = Contents { kernel, stack_bytes: 0, frame_pointers: true };
    let attr = attributes(event, contents, &reach);
    let (pid, cpu) = if whole_machine { (-1, 0) } else { (0, u32::MAX) };
    open_one(attr, pid, cpu, 0).map(drop).map_err(|e| refusal(event, &e))
}

/// Whether this process may count cycles, and why not.
pub fn pmu() -> Result<(), PerfError> {
    let cycles = super::event("cycles", super::Role::Clock, Rate::Period(1_000_000_000))?;
    try_open(&cycles, false, false)
}

/// Whether this process may count cycles.
pub fn has_pmu() -> bool {
    pmu().is_ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_descendant_that_has_ended_costs_nothing_and_no_process_at_all_is_an_error() {
        let (own, ended) = (std::process::id() as i32, 4_194_305);
        assert!(threads_of(&[own, ended]).unwrap().contains(&own));
        let error = threads_of(&[ended]).unwrap_err().to_string();
        assert!(error.starts_with("process 4194305: there is no such process"), "{error}");
    }
}
