//! Counts of one task, by the kernel for that task alone: its instructions, and its misses of the last level.

use perf_event_open_sys::bindings as sys;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::FromRawFd;

/// Kind of counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterKind {
    /// Instructions and cache misses, by the processor's counters.
    Hardware,
    /// Time on a CPU (ns) and page faults, which every kernel counts: they cost as much to read.
    StandIn,
}

impl CounterKind {
    fn events(self) -> [(u32, u32); 2] {
        match self {
            CounterKind::Hardware => [
                (sys::PERF_TYPE_HARDWARE, sys::PERF_COUNT_HW_INSTRUCTIONS),
                (sys::PERF_TYPE_HARDWARE, sys::PERF_COUNT_HW_CACHE_MISSES),
            ],
            CounterKind::StandIn => [
                (sys::PERF_TYPE_SOFTWARE, sys::PERF_COUNT_SW_TASK_CLOCK),
                (sys::PERF_TYPE_SOFTWARE, sys::PERF_COUNT_SW_PAGE_FAULTS),
            ],
        }
    }
}

/// A task's two counters, from when they were opened on.
#[derive(Debug)]
pub struct TaskCounts {
    events: [File; 2],
    last: [u64; 2],
}

impl TaskCounts {
    /// Opens the counters of a task; 0 is the calling one. Errors: the machine has no such counter, or the kernel
    /// refuses it.
    pub fn open(task: i32, kind: CounterKind) -> io::Result<Self> {
        let [work, harm] = kind.events();
        Ok(TaskCounts { events: [open(task, work)?, open(task, harm)?], last: [0; 2] })
    }

    /// Both counts since the last call.
    pub fn since_last(&mut self) -> io::Result<[u64; 2]> {
        let mut now = [0u64; 2];
        for (event, count) in self.events.iter_mut().zip(&mut now) {
            let mut bytes = [0u8; 8];
            event.read_exact(&mut bytes)?;
            *count = u64::from_ne_bytes(bytes);
        }
        let since = std::array::from_fn(|at| now[at].saturating_sub(self.last[at]));
        self.last = now;
        Ok(since)
    }
}

fn open(task: i32, (kind, event): (u32, u32)) -> io::Result<File> {
    let mut attr = sys::perf_event_attr::default();
    attr.type_ = kind;
    attr.size = size_of::<sys::perf_event_attr>() as u32;
    attr.config = event.into();
    attr.set_exclude_kernel(u64::from(kind == sys::PERF_TYPE_HARDWARE));
    attr.set_exclude_hv(1);
    let flags = sys::PERF_FLAG_FD_CLOEXEC.into();
    // SAFETY: the attribute is fully initialised, and the kernel only reads it (and writes its size on E2BIG).
    let descriptor = unsafe { perf_event_open_sys::perf_event_open(&mut attr, task, -1, -1, flags) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a fresh descriptor that nobody else owns.
    Ok(unsafe { File::from_raw_fd(descriptor) })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_since_the_last_look() {
        let Ok(mut counts) = TaskCounts::open(0, CounterKind::StandIn) else {
            eprintln!("skipped: this kernel lets nobody count");
            return;
        };
        let touched = |pages: usize| {
            let mut memory = memmap2::MmapMut::map_anon(pages * 4096).unwrap();
            (0..pages).for_each(|page| memory[page * 4096] = 1);
        };
        counts.since_last().unwrap();
        touched(64);
        let [ran, faults] = counts.since_last().unwrap();
        assert!(ran > 0 && faults >= 1, "{ran} {faults}");
        assert!(counts.since_last().unwrap()[1] < faults.max(2));
    }
}
