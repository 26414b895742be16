//! The time that a command and all it started spend on CPUs, read while they run.

use crate::tree::{Stat, Tree};
use crate::{Error, Suspended};
use perf_event_open_sys::bindings as sys;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::FromRawFd;

const NS: u64 = 1_000_000_000;

/// A clock that runs while the command, or anything that it started, is on a CPU. Two readings give the time between.
pub enum CpuClock {
    /// The kernel's own clock of a task, handed on to all that the task starts. Nothing escapes it: neither a process
    /// that nobody waits for, nor one that left its parent.
    Event(File),
    /// The kernel's accounts, where that clock is refused. A child that its parent neither waits for nor leaves behind
    /// (`SIGCHLD` ignored) is missing after its end.
    Accounts(Tree),
}

impl CpuClock {
    /// Begins with a command that has not run yet.
    pub fn of(suspended: &Suspended) -> Self {
        task_clock(suspended.pid(), false).map_or_else(|_| CpuClock::Accounts(suspended.tree()), CpuClock::Event)
    }

    /// Begins where the command's program begins: what the fork of this process takes, and its end, is not the command's.
    /// `None` where the kernel refuses such a clock.
    pub fn from_exec(suspended: &Suspended) -> Option<Self> {
        task_clock(suspended.pid(), true).ok().map(CpuClock::Event)
    }

    /// Nanoseconds so far.
    pub fn read(&mut self) -> Result<u64, Error> {
        match self {
            CpuClock::Event(event) => {
                let mut bytes = [0; 8];
                let read = event.read_exact(&mut bytes);
                read.map_err(|e| Error::system("read the server's CPU time", e))?;
                Ok(u64::from_ne_bytes(bytes))
            }
            CpuClock::Accounts(tree) => Ok(accounts_ns(*tree)),
        }
    }
}

fn task_clock(pid: i32, from_exec: bool) -> io::Result<File> {
    let mut attr = sys::perf_event_attr::default();
    attr.type_ = sys::PERF_TYPE_SOFTWARE;
    attr.size = size_of::<sys::perf_event_attr>() as u32;
    attr.config = sys::PERF_COUNT_SW_TASK_CLOCK.into();
    attr.set_inherit(1);
    attr.set_disabled(from_exec.into());
    attr.set_enable_on_exec(from_exec.into());
    // The clock counts the kernel's part all the same, and ordinary users may open it so.
    attr.set_exclude_kernel(1);
    let flags = sys::PERF_FLAG_FD_CLOEXEC.into();
    // SAFETY: the attribute is fully initialised, and the kernel only reads it (and writes its size on E2BIG).
    let descriptor = unsafe { perf_event_open_sys::perf_event_open(&mut attr, pid, -1, -1, flags) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a fresh descriptor that nobody else owns.
    Ok(unsafe { File::from_raw_fd(descriptor) })
}

/// Adds the clocks of live processes, and the times of reaped ones from the accounts of their parents or the keeper.
fn accounts_ns(tree: Tree) -> u64 {
    let processes = tree.processes();
    let own: u64 = processes.iter().map(|pid| own_ns(*pid)).sum();
    let reapers = processes.iter().copied().chain(tree.keeper());
    let ticks: u64 = reapers.filter_map(Stat::of).map(|stat| stat.reaped_ticks).sum();
    // SAFETY: reads a constant.
    let ticks_a_second = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).unwrap_or(100).max(1);
    own + ticks * (NS / ticks_a_second)
}

/// The clock of a process with all its threads, those that have ended too.
fn own_ns(pid: libc::pid_t) -> u64 {
    let mut clock: libc::clockid_t = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both calls fill locals; a process that is gone gives an error.
    let read = unsafe { libc::clock_getcpuclockid(pid, &mut clock) == 0 && libc::clock_gettime(clock, &mut time) == 0 };
    if read { u64::try_from(time.tv_sec).unwrap_or(0) * NS + u64::try_from(time.tv_nsec).unwrap_or(0) } else { 0 }
}
