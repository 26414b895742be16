//! Reports every task that a command starts, in any way: the kernel's own records of forks, handed on to all that the
//! command starts. No library in the program is needed.

use crate::{CpuSet, Error, Suspended};
use memmap2::{MmapOptions, MmapRaw};
use perf_event_open_sys::bindings as sys;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Pages of records a CPU: some thousand forks between two looks.
const DATA_PAGES: usize = 16;
/// Bytes of a record's head, and of a fork: head, process, parent, task, parent's task, time.
const HEAD: usize = 8;
const FORK: usize = HEAD + 24;

/// The tasks that a command starts, from its first instruction on.
#[derive(Debug)]
pub struct Forks {
    rings: Vec<Ring>,
}

impl Forks {
    /// Opens the records of a process that has not run an instruction of its own yet. Errors: the kernel refuses them.
    pub fn of_process(pid: i32) -> Result<Self, Error> {
        let cpus = CpuSet::allowed()?;
        let rings = cpus.iter().map(|cpu| Ring::open(pid, cpu as i32)).collect::<io::Result<_>>();
        Ok(Forks { rings: rings.map_err(|e| Error::system("listen for the tasks that the command starts", e))? })
    }

    /// Opens the records of a command.
    pub fn of(suspended: &Suspended) -> Result<Self, Error> {
        Self::of_process(suspended.pid())
    }

    /// Thread ids of the tasks that were started since the last call, in the order in which they were; waits for some,
    /// for this time at most.
    pub fn wait(&mut self, limit: Duration) -> Vec<i32> {
        let mut waiting: Vec<PollFd<'_>> =
            self.rings.iter().map(|ring| PollFd::new(&ring.event, PollFlags::IN)).collect();
        let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: limit.subsec_nanos().into() };
        // Interrupted or not: what there is, is read.
        let _ = poll(&mut waiting, Some(&limit));
        drop(waiting);
        // Each CPU has its own ring.
        let mut forked: Vec<(u64, i32)> = self.rings.iter_mut().flat_map(Ring::read).collect();
        forked.sort_unstable();
        forked.into_iter().map(|(_, task)| task).collect()
    }
}

/// One CPU's records.
#[derive(Debug)]
struct Ring {
    event: File,
    pages: MmapRaw,
    page_bytes: usize,
}

impl Ring {
    fn open(pid: i32, cpu: i32) -> io::Result<Self> {
        let mut attr = sys::perf_event_attr::default();
        attr.type_ = sys::PERF_TYPE_SOFTWARE;
        attr.size = size_of::<sys::perf_event_attr>() as u32;
        attr.config = sys::PERF_COUNT_SW_DUMMY.into();
        attr.set_inherit(1);
        attr.set_task(1);
        attr.set_exclude_kernel(1);
        attr.set_watermark(1);
        attr.__bindgen_anon_2.wakeup_watermark = 1;
        let flags = sys::PERF_FLAG_FD_CLOEXEC.into();
        // SAFETY: the attribute is fully initialised, and the kernel only reads it (and writes its size on E2BIG).
        let descriptor = unsafe { perf_event_open_sys::perf_event_open(&mut attr, pid, cpu, -1, flags) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a fresh descriptor that nobody else owns.
        let event = unsafe { File::from_raw_fd(descriptor) };
        // SAFETY: reads a constant.
        let page_bytes = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        let pages = MmapOptions::new().len((1 + DATA_PAGES) * page_bytes).map_raw(&event)?;
        Ok(Ring { event, pages, page_bytes })
    }

    fn head(&self) -> &sys::perf_event_mmap_page {
        // SAFETY: the mapping begins with this page, is page-aligned, and lives as long as `self`; the fields that the
        // kernel writes meanwhile are read through atomics alone.
        unsafe { &*self.pages.as_ptr().cast() }
    }

    fn position(field: &u64) -> &AtomicU64 {
        // SAFETY: an aligned field of a shared mapping, which an atomic may read and write.
        unsafe { AtomicU64::from_ptr(std::ptr::from_ref(field).cast_mut()) }
    }

    fn byte(&self, at: u64) -> u8 {
        let data = DATA_PAGES * self.page_bytes;
        let offset = self.page_bytes + at as usize % data;
        // SAFETY: inside the mapping; the kernel does not write what it has handed over until the tail passes it.
        unsafe { self.pages.as_ptr().add(offset).read_volatile() }
    }

    fn word(&self, at: u64) -> u32 {
        u32::from_ne_bytes(std::array::from_fn(|i| self.byte(at + i as u64)))
    }

    /// Tasks, each with the time at which it was started.
    fn read(&mut self) -> Vec<(u64, i32)> {
        let end = Self::position(&self.head().data_head).load(Ordering::Acquire);
        let tail = Self::position(&self.head().data_tail);
        let mut at = tail.load(Ordering::Relaxed);
        let mut tasks = Vec::new();
        while at < end {
            let bytes = u64::from(self.word(at + 4) >> 16);
            if bytes < HEAD as u64 {
                break;
            }
            if self.word(at) == sys::PERF_RECORD_FORK && bytes >= FORK as u64 {
                let fork = at + HEAD as u64;
                let time = u64::from(self.word(fork + 20)) << 32 | u64::from(self.word(fork + 16));
                tasks.push((time, self.word(fork + 8) as i32));
            }
            at += bytes;
        }
        tail.store(end, Ordering::Release);
        tasks
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::Workload;

    #[test]
    fn every_fork_of_a_command_is_reported() {
        let suspended = Workload::new(["sh", "-c", "(:) & (:) & wait; sh -c '(:); :'"]).launch_suspended().unwrap();
        let Ok(mut forks) = Forks::of(&suspended) else {
            eprintln!("skipped: this kernel reports no forks to ordinary users");
            return;
        };
        let pid = suspended.pid();
        suspended.resume().unwrap().wait().unwrap();
        let tasks = forks.wait(Duration::ZERO);
        // Two in the background, the inner shell, and what that starts; a shell may run its last command itself.
        assert!((3..=4).contains(&tasks.len()) && !tasks.contains(&pid), "{tasks:?}");
        // Any CPU may report it; numbers rise until they begin anew.
        assert!(tasks.is_sorted() || tasks[0] > 30_000, "{tasks:?}");
        assert!(forks.wait(Duration::ZERO).is_empty());
    }
}
