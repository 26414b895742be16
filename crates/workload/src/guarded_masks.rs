//! Affinity masks of tasks that run already, changed for a while and given back however the launcher ends.
//!
//! The table of masks lies in memory that the guardian shares, since tasks come and go after it was forked. A mask is
//! given back only where it still is what was set: a mask that the program set meanwhile is the program's own. Tasks that
//! a task with a changed mask started without our seeing it inherited the mask; they are found through `/proc`.

use crate::guardian::Guardian;
use crate::launch::BlockedSignals;
use crate::proc::{self, Path, each_number_in_directory, each_number_in_file};
use crate::{CpuSet, Error, TaskId};
use memmap2::{MmapOptions, MmapRaw};
use rustix::thread::sched_setaffinity;
use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

/// Tasks at a time; further ones are not touched.
const MOST_TASKS: usize = 4096;
/// Words of the largest mask that the kernel's interface has.
const WORDS: usize = 16;

type Words = [AtomicU64; WORDS];

/// A task's masks. The one that the kernel has is `set` or `set_before` at every instant.
#[repr(C)]
struct Entry {
    /// 0: the entry is free.
    task: AtomicI32,
    process: AtomicI32,
    /// When the task began: its number may be another's by the time at which masks are given back.
    began: AtomicU64,
    original: Words,
    set: Words,
    set_before: Words,
}

/// Table that the guardian reads. Zeroed memory is an empty table.
#[repr(C)]
pub(crate) struct Table {
    used: AtomicU32,
    entries: [Entry; MOST_TASKS],
}

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

impl Entry {
    fn is_of(&self, id: &TaskId) -> bool {
        self.task.load(Ordering::Acquire) == id.task && self.began.load(Ordering::Relaxed) == id.began
    }

    fn is_there(&self) -> bool {
        let (task, process) = (self.task.load(Ordering::Acquire), self.process.load(Ordering::Relaxed));
        task != 0 && proc::began(process, task) == Some(self.began.load(Ordering::Relaxed))
    }
}

impl Table {
    fn used(&self) -> &[Entry] {
        &self.entries[..(self.used.load(Ordering::Acquire) as usize).min(MOST_TASKS)]
    }

    fn entry(&self, task: i32) -> Option<&Entry> {
        self.used().iter().find(|entry| entry.task.load(Ordering::Acquire) == task)
    }

    fn free(&self) -> Option<&Entry> {
        if let Some(free) = self.entry(0) {
            return Some(free);
        }
        let used = self.used.load(Ordering::Relaxed) as usize;
        let entry = self.entries.get(used)?;
        self.used.store(used as u32 + 1, Ordering::Release);
        Some(entry)
    }
}

fn words(cpus: &CpuSet) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    for cpu in cpus.iter().filter(|cpu| *cpu < 64 * WORDS) {
        words[cpu / 64] |= 1 << (cpu % 64);
    }
    words
}

fn store(to: &Words, words: &[u64; WORDS]) {
    to.iter().zip(words).for_each(|(to, word)| to.store(*word, Ordering::Release));
}

fn load(from: &Words) -> [u64; WORDS] {
    std::array::from_fn(|at| from[at].load(Ordering::Acquire))
}

/// Gives all masks back. Allocates nothing and takes no lock: the guardian runs it after a fork.
pub(crate) fn restore(table: &Table) -> u64 {
    let mut restored = 0;
    // A later owner of the number of a task that is gone has nothing of ours.
    for entry in table.used().iter().filter(|entry| entry.is_there()) {
        let task = entry.task.load(Ordering::Acquire);
        restored += u64::from(give_back(task, entry));
        // Tasks that nobody saw begin: a process's threads, once a process, and the processes that a task started.
        let process = entry.process.load(Ordering::Relaxed);
        let is_of_process = |other: &&Entry| other.process.load(Ordering::Relaxed) == process && other.is_there();
        if table.used().iter().find(is_of_process).is_some_and(|first| std::ptr::eq(first, entry)) {
            each_number_in_directory(&Path::of(&[b"/proc/", b"/task"], &[process]), |other| {
                restored += u64::from(give_back_unseen(table, other));
            });
        }
        each_number_in_file(&Path::of(&[b"/proc/", b"/task/", b"/children"], &[process, task]), |other| {
            restored += u64::from(give_back_unseen(table, other));
        });
    }
    table.used().iter().for_each(|entry| entry.task.store(0, Ordering::Release));
    restored
}

fn mask_of(task: i32) -> Option<[u64; WORDS]> {
    let mut mask = [0; WORDS];
    // SAFETY: the kernel writes at most as many bytes as given.
    let got = unsafe { libc::syscall(libc::SYS_sched_getaffinity, task, size_of_val(&mask), mask.as_mut_ptr()) };
    (got > 0).then_some(mask)
}

fn is_ours(mask: &[u64; WORDS], entry: &Entry) -> bool {
    *mask == load(&entry.set) || *mask == load(&entry.set_before)
}

fn give_back(task: i32, entry: &Entry) -> bool {
    let original = load(&entry.original);
    // SAFETY: the kernel reads as many bytes as given.
    let set =
        || unsafe { libc::syscall(libc::SYS_sched_setaffinity, task, size_of_val(&original), original.as_ptr()) == 0 };
    mask_of(task).is_some_and(|mask| mask != original && is_ours(&mask, entry)) && set()
}

fn give_back_unseen(table: &Table, task: i32) -> bool {
    if table.entry(task).is_some() {
        return false;
    }
    let Some(mask) = mask_of(task) else { return false };
    let inherited_from = table.used().iter().find(|e| e.task.load(Ordering::Acquire) != 0 && is_ours(&mask, e));
    inherited_from.is_some_and(|entry| give_back(task, entry))
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
