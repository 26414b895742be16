//! Affinity masks of tasks that run already, changed for a while and given back however the launcher ends.
//!
//! A mask is given back only where it still is what was set: a mask that the program set meanwhile is the program's own. Tasks that
//! a task with a changed mask started without our seeing it inherited the mask; they are found through `/proc`.

use crate::blocked_signals::BlockedSignals;
use crate::guardian::Guardian;
use crate::mask_table::{Table, load, restore, store, words};
use crate::{CpuSet, Error, TaskId};
use memmap2::{MmapOptions, MmapRaw};
use rustix::thread::sched_setaffinity;
use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;
use std::sync::atomic::Ordering;

/// Changed masks. Dropping it gives all of them back; so does a guardian, should this process be killed.
#[derive(Debug)]
pub struct GuardedMasks {
    pages: MmapRaw,
    _guardian: Guardian,
}

impl GuardedMasks {
    /// Changes nothing yet.
    pub fn new() -> Result<Self, Error> {
        let pages = shared(size_of::<Table>()).map_err(|e| Error::system("share memory with the guardian", e))?;
        let blocked = BlockedSignals::new();
        // SAFETY: the mapping is as large as the table, page-aligned and zeroed, which is a valid table; it is shared,
        // so the guardian's copy of it lives as long as the guardian.
        let guardian = Guardian::of_masks(unsafe { &*pages.as_ptr().cast::<Table>() })?;
        drop(blocked);
        Ok(GuardedMasks { pages, _guardian: guardian })
    }

    fn table(&self) -> &Table {
        // SAFETY: as above, and it is never changed but through atomics.
        unsafe { &*self.pages.as_ptr().cast() }
    }

    /// Gives a task a mask; `original` is what it is to have afterwards. Errors: the kernel refuses, or the task is gone,
    /// even if another one has its number.
    pub fn set(&self, id: &TaskId, original: &CpuSet, wanted: &CpuSet) -> Result<(), Error> {
        let refused = |errno| Error::system("set the affinity of a task", errno);
        let pid = rustix::process::Pid::from_raw(id.task).ok_or_else(|| refused(rustix::io::Errno::SRCH))?;
        let wanted_mask = wanted.mask()?;
        let table = self.table();
        let full = || Error::system("note the affinity of a task", rustix::io::Errno::NOSPC);
        let entry = table.entry(id.task).or_else(|| table.free()).ok_or_else(full)?;
        let is_known = entry.is_of(id);
        if !is_known {
            entry.task.store(0, Ordering::Release);
            store(&entry.set, &words(original));
            entry.process.store(id.process, Ordering::Relaxed);
            entry.began.store(id.began, Ordering::Relaxed);
        }
        store(&entry.original, &words(original));
        store(&entry.set_before, &load(&entry.set));
        store(&entry.set, &words(wanted));
        entry.task.store(id.task, Ordering::Release);
        // The kernel takes no descriptor of a task here. Between this look and the call, its numbers do not come round.
        let there = if id.is_there() { Ok(()) } else { Err(rustix::io::Errno::SRCH) };
        there.and_then(|()| sched_setaffinity(Some(pid), &wanted_mask)).map_err(|errno| {
            match is_known {
                true => store(&entry.set, &load(&entry.set_before)),
                false => self.forget(id),
            }
            refused(errno)
        })
    }

    /// The task is gone, or its mask is its program's own from now on.
    pub fn forget(&self, id: &TaskId) {
        if let Some(entry) = self.table().entry(id.task).filter(|entry| entry.is_of(id)) {
            entry.task.store(0, Ordering::Release);
        }
    }

    /// Gives back what is still as it was set. How many tasks that were.
    pub fn restore(&self) -> u64 {
        restore(self.table())
    }
}

/// Zeroed memory that a forked child shares; what is mapped without a file, it would get a copy of.
fn shared(bytes: usize) -> io::Result<MmapRaw> {
    // SAFETY: the name ends with a NUL.
    let descriptor = unsafe { libc::memfd_create(c"nearmiss-masks".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a fresh descriptor that nobody else owns.
    let file = unsafe { File::from_raw_fd(descriptor) };
    file.set_len(bytes as u64)?;
    MmapOptions::new().len(bytes).map_raw(&file)
}

impl Drop for GuardedMasks {
    fn drop(&mut self) {
        self.restore();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_set_and_given_back_and_one_that_is_gone_is_neither() {
        let all = CpuSet::allowed().unwrap();
        let one: CpuSet = all.iter().take(1).collect();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let (there, masks) = (TaskId::of(child.id() as i32).unwrap(), GuardedMasks::new().unwrap());
        // Another task had the number, and it has come round.
        let gone = TaskId { began: there.began - 1, ..there };
        assert!(masks.set(&gone, &all, &one).is_err());
        assert_eq!(CpuSet::of_task(there.task).unwrap(), all);
        masks.set(&there, &all, &one).unwrap();
        masks.forget(&gone);
        assert_eq!(CpuSet::of_task(there.task).unwrap(), one);
        // A mask that the kernel refuses leaves the one set before, which is given back.
        assert!(masks.set(&there, &all, &CpuSet::default()).is_err());
        assert_eq!(masks.restore(), u64::from(all != one));
        assert_eq!(CpuSet::of_task(there.task).unwrap(), all);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
