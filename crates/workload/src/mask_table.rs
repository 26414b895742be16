//! The table of changed affinity masks, and how masks are given back from it. It lies in memory that the guardian
//! shares, since tasks come and go after it was forked.

use crate::proc::{self, Path, each_number_in_directory, each_number_in_file};
use crate::{CpuSet, TaskId};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

/// Tasks at a time; further ones are not touched.
const MOST_TASKS: usize = 4096;
/// Words of the largest mask that the kernel's interface has.
const WORDS: usize = 16;

pub(crate) type Words = [AtomicU64; WORDS];

/// A task's masks. The one that the kernel has is `set` or `set_before` at every instant.
#[repr(C)]
pub(crate) struct Entry {
    /// 0: the entry is free.
    pub(crate) task: AtomicI32,
    pub(crate) process: AtomicI32,
    /// When the task began: its number may be another's by the time at which masks are given back.
    pub(crate) began: AtomicU64,
    pub(crate) original: Words,
    pub(crate) set: Words,
    pub(crate) set_before: Words,
}

/// Table that the guardian reads. Zeroed memory is an empty table.
#[repr(C)]
pub(crate) struct Table {
    used: AtomicU32,
    entries: [Entry; MOST_TASKS],
}

impl Entry {
    pub(crate) fn is_of(&self, id: &TaskId) -> bool {
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

    pub(crate) fn entry(&self, task: i32) -> Option<&Entry> {
        self.used().iter().find(|entry| entry.task.load(Ordering::Acquire) == task)
    }

    pub(crate) fn free(&self) -> Option<&Entry> {
        if let Some(free) = self.entry(0) {
            return Some(free);
        }
        let used = self.used.load(Ordering::Relaxed) as usize;
        let entry = self.entries.get(used)?;
        self.used.store(used as u32 + 1, Ordering::Release);
        Some(entry)
    }
}

pub(crate) fn words(cpus: &CpuSet) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    for cpu in cpus.iter().filter(|cpu| *cpu < 64 * WORDS) {
        words[cpu / 64] |= 1 << (cpu % 64);
    }
    words
}

pub(crate) fn store(to: &Words, words: &[u64; WORDS]) {
    to.iter().zip(words).for_each(|(to, word)| to.store(*word, Ordering::Release));
}

pub(crate) fn load(from: &Words) -> [u64; WORDS] {
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
