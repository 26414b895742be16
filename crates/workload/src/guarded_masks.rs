//! Affinity masks of tasks that run already, changed for a while and given back whatever ends the launcher.
//!
//! The table of masks lies in memory that the guardian shares, since tasks come and go after it was forked. A mask is
//! given back only where it still is what was set: a mask that the program set meanwhile is the program's own. Tasks that
//! a task with a changed mask started without our seeing it inherited the mask; they are found through `/proc`.

use crate::guardian::Guardian;
use crate::launch::BlockedSignals;
use crate::{CpuSet, Error};
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
    original: Words,
    set: Words,
    set_before: Words,
}

/// What the guardian reads. Zeroed memory is an empty table.
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

    /// Gives a task of a process a mask; `original` is what it is to have afterwards. Errors: the kernel refuses, or the
    /// task is gone.
    pub fn set(&self, process: i32, task: i32, original: &CpuSet, wanted: &CpuSet) -> Result<(), Error> {
        let gone = || Error::system("set the affinity of a task", rustix::io::Errno::SRCH);
        let pid = rustix::process::Pid::from_raw(task).ok_or_else(gone)?;
        let table = self.table();
        let full = || Error::system("note the affinity of a task", rustix::io::Errno::NOSPC);
        let entry = table.entry(task).or_else(|| table.free()).ok_or_else(full)?;
        if entry.task.load(Ordering::Relaxed) != task {
            store(&entry.original, &words(original));
            store(&entry.set, &words(original));
            entry.process.store(process, Ordering::Relaxed);
        }
        store(&entry.original, &words(original));
        store(&entry.set_before, &load(&entry.set));
        store(&entry.set, &words(wanted));
        entry.task.store(task, Ordering::Release);
        sched_setaffinity(Some(pid), &wanted.mask()?).map_err(|e| {
            self.forget(task);
            Error::system("set the affinity of a task", e)
        })
    }

    /// The task is gone, or its mask is its program's own from now on.
    pub fn forget(&self, task: i32) {
        if let Some(entry) = self.table().entry(task) {
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
    for entry in table.used() {
        let task = entry.task.load(Ordering::Acquire);
        if task == 0 {
            continue;
        }
        restored += u64::from(give_back(task, entry));
        let process = entry.process.load(Ordering::Relaxed);
        // Tasks that nobody saw begin: a process's threads, and the processes that a task started.
        if task == process {
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
    // SAFETY: the kernel writes at most as many bytes as said.
    let got = unsafe { libc::syscall(libc::SYS_sched_getaffinity, task, size_of_val(&mask), mask.as_mut_ptr()) };
    (got > 0).then_some(mask)
}

fn is_ours(mask: &[u64; WORDS], entry: &Entry) -> bool {
    *mask == load(&entry.set) || *mask == load(&entry.set_before)
}

fn give_back(task: i32, entry: &Entry) -> bool {
    let original = load(&entry.original);
    // SAFETY: the kernel reads as many bytes as said.
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

/// A path with numbers in it, made without allocating.
struct Path {
    bytes: [u8; 64],
}

impl Path {
    /// Parts, with a number between each two; the whole is shorter than the array for numbers of ten digits.
    fn of(parts: &[&[u8]], numbers: &[i32]) -> Self {
        let mut path = Path { bytes: [0; 64] };
        let mut at = 0;
        let mut put = |byte: u8| {
            if at < 63 {
                path.bytes[at] = byte;
                at += 1;
            }
        };
        for (index, part) in parts.iter().enumerate() {
            part.iter().for_each(|byte| put(*byte));
            let Some(number) = numbers.get(index) else { continue };
            let power = (0..9).rev().map(|digits| 10i32.pow(digits));
            power.skip_while(|p| *number < *p && *p > 1).for_each(|p| put(b'0' + (number / p % 10) as u8));
        }
        path
    }

    fn open(&self) -> Option<i32> {
        // SAFETY: the last byte is never written, so the path ends with a NUL.
        let file = unsafe { libc::open(self.bytes.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC) };
        (file >= 0).then_some(file)
    }
}

fn number(digits: &[u8]) -> Option<i32> {
    let digit = |value: i32, byte: &u8| {
        byte.is_ascii_digit().then(|| value.checked_mul(10)?.checked_add(i32::from(byte - b'0'))).flatten()
    };
    (!digits.is_empty()).then(|| digits.iter().try_fold(0, digit)).flatten()
}

/// Entries of a directory that are numbers.
fn each_number_in_directory(path: &Path, mut each: impl FnMut(i32)) {
    /// Bytes ahead of an entry's name (`linux_dirent64`), and where its length is.
    const NAME: usize = 19;
    const LENGTH: usize = 16;
    let Some(directory) = path.open() else { return };
    let mut buffer = [0u8; 4096];
    loop {
        // SAFETY: the kernel writes at most as many bytes as said.
        let got = unsafe { libc::syscall(libc::SYS_getdents64, directory, buffer.as_mut_ptr(), buffer.len()) };
        let Some(mut rest) = usize::try_from(got).ok().and_then(|got| buffer.get(..got)) else { break };
        if rest.is_empty() {
            break;
        }
        while rest.len() > NAME {
            let length = usize::from(u16::from_ne_bytes([rest[LENGTH], rest[LENGTH + 1]]));
            let Some(entry) = rest.get(NAME..length) else { break };
            let name = entry.split(|byte| *byte == 0).next().unwrap_or_default();
            number(name).into_iter().for_each(&mut each);
            rest = &rest[length..];
        }
    }
    // SAFETY: a descriptor of our own.
    unsafe { libc::close(directory) };
}

/// Numbers in a file's first page.
fn each_number_in_file(path: &Path, each: impl FnMut(i32)) {
    let Some(file) = path.open() else { return };
    let mut buffer = [0u8; 4096];
    // SAFETY: the kernel writes at most as many bytes as said; the descriptor is our own.
    let got = unsafe {
        let got = libc::read(file, buffer.as_mut_ptr().cast(), buffer.len());
        libc::close(file);
        got
    };
    let text = buffer.get(..usize::try_from(got).unwrap_or(0)).unwrap_or_default();
    text.split(u8::is_ascii_whitespace).filter_map(number).for_each(each);
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_numbers_need_no_allocation() {
        let path = |numbers: &[i32]| Path::of(&[b"/proc/", b"/task/", b"/children"], numbers).bytes;
        assert!(path(&[1, 4_194_304]).starts_with(b"/proc/1/task/4194304/children\0"));
        assert!(path(&[70, 100]).starts_with(b"/proc/70/task/100/children\0"));
        assert_eq!(
            [number(b"0"), number(b"4194304"), number(b""), number(b"."), number(b"99999999999")],
            [Some(0), Some(4_194_304), None, None, None]
        );
    }

    #[test]
    fn the_threads_of_this_process_are_listed() {
        let (mut seen, own) = (Vec::new(), std::process::id() as i32);
        each_number_in_directory(&Path::of(&[b"/proc/", b"/task"], &[own]), |task| seen.push(task));
        assert!(seen.contains(&own) && seen.len() >= 2, "{seen:?}");
    }
}
