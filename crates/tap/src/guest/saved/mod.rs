//! A faster start: a guest is booted once, saved, and restored for every run on an equal machine.
//!
//! A saved guest waits before anything of a run is in it (`native/agent/init/saved.c`). The first run with a machine
//! boots a guest to save it, and restores it like every later run: all runs begin alike. The parts that differ by run
//! come afterwards: the file server is plugged in, the agent gets its files over its port, fresh random numbers and the
//! time of day.
//!
//! The memory is a shared file, so QEMU leaves it out of its state (`x-ignore-shared`). Its blocks are kept beside the
//! state in the cache, checked by a checksum while they are copied into the run's own memory.

mod image;
mod key;
mod make;
mod qmp;
mod restore;

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use super::guardian::Reports;
use super::hardware::Hardware;
use super::kernel::KernelImage;
use image::{Image, Kept};

pub(super) use restore::restore;

/// A file for the agent.
pub(super) struct AgentFile {
    pub(super) path: &'static str,
    pub(super) mode: u32,
    pub(super) content: Vec<u8>,
}

/// Inputs common to all guests of this version and kernel.
pub(super) struct Common<'a> {
    pub(super) kernel: &'a KernelImage,
    /// The archive that the guest boots from.
    pub(super) archive: &'a [u8],
    pub(super) initramfs: &'a OwnedFd,
    /// Set when the user interrupts.
    pub(super) interrupted: &'a AtomicBool,
}

/// A saved guest for this machine.
pub(super) enum Saved {
    Image(Box<Image>),
    /// There is none, and why, if the user should see it.
    None(Option<String>),
}

/// The kernel keeps 64 bytes for every page of 4 KiB; all else fits into this.
const BESIDE_PAGES: u64 = 90 << 20;

/// The saved guest of this machine; made where there is none yet.
pub(super) fn obtain(cache: &Path, hardware: &Hardware<'_>, common: &Common<'_>) -> Saved {
    let total: u64 = hardware.memory.iter().map(|(bytes, _)| bytes).sum();
    if total / 64 + BESIDE_PAGES > image::MOST_OF_ONE {
        return Saved::None(None);
    }
    let key = key::key(hardware, common.kernel, common.archive);
    let path = cache.join(key::name(&key));
    let damaged = match image::open(&path, &key) {
        Kept::Image(image) => return Saved::Image(image),
        Kept::Unfit => return Saved::None(None),
        Kept::Damaged => Some("the saved guest was damaged, and another one was saved".to_owned()),
        Kept::Nothing => None,
    };
    // A cache that cannot be written costs the time of a boot, no more.
    let Ok(file) = image::nameless(cache) else { return Saved::None(None) };
    let Some(_one_at_a_time) = Lock::await_for(cache, common.interrupted) else { return Saved::None(None) };
    if let Kept::Image(image) = image::open(&path, &key) {
        return Saved::Image(image); // saved by another run meanwhile
    }
    let saved = make::boot_and_save(hardware, common);
    if let Err(why) = &saved
        && !common.interrupted.load(Ordering::Acquire)
    {
        // Without it the next run tries in vain as this one did.
        let _ = image::nameless(cache).and_then(|file| image::keep_unfit(file, &path, &key, why));
    }
    let kept = saved
        .and_then(|made| image::keep(file, &path, &key, made.boot.as_nanos() as u64, &made.state, hardware.memory));
    empty(hardware.memory);
    match (kept, image::open(&path, &key)) {
        (Ok(()), Kept::Image(mut image)) => {
            image.note = damaged;
            Saved::Image(image)
        }
        _ if common.interrupted.load(Ordering::Acquire) => Saved::None(None),
        (Err(why), _) => Saved::None(Some(format!("the booted guest could not be saved: {why}"))),
        _ => Saved::None(None),
    }
}

/// A lock on the cache: one process at a time saves a guest.
struct Lock(File);

impl Lock {
    /// Waits for the lock, for no longer than a boot takes on a busy machine. None: the wait was in vain.
    fn await_for(cache: &Path, interrupted: &AtomicBool) -> Option<Self> {
        const LOOK: Duration = Duration::from_millis(50);
        let (directory, begun) = (File::open(cache).ok()?, Instant::now());
        while flock(&directory, FlockOperation::NonBlockingLockExclusive).is_err() {
            if interrupted.load(Ordering::Acquire) || begun.elapsed() > LONGEST_WAIT {
                return None;
            }
            std::thread::sleep(LOOK);
        }
        Some(Lock(directory))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A child that was forked meanwhile has the directory open, too: closing it here would unlock nothing.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// Makes a guest's memory all zero again.
pub(super) fn empty(memory: &[(u64, OwnedFd)]) {
    for (bytes, file) in memory {
        // Memory files can be cut and lengthened; a guest on others would not boot and would report it.
        let _ = rustix::fs::ftruncate(file, 0).and_then(|()| rustix::fs::ftruncate(file, *bytes));
    }
}

/// The last line of what QEMU printed, for an error.
fn last_words(reports: Reports, why: String) -> String {
    use std::io::Read;
    let mut text = String::new();
    // The guardian is gone, and the pipe has an end.
    let _ = { reports.log }.read_to_string(&mut text);
    match text.lines().rev().find(|line| !line.trim().is_empty() && !line.contains("warning:")) {
        Some(line) => format!("{why}: {}", super::channel::printable(line.trim())),
        None => why,
    }
}

/// Machines with much else to do get more than the second that it takes.
const LONGEST_RESTORE: Duration = Duration::from_secs(60);
/// Another process may save a guest before this one, and its boot takes as long as one without the cache.
const LONGEST_WAIT: Duration = Duration::from_secs(20);
/// Limit of a boot, which takes two seconds.
const LONGEST_BOOT: Duration = Duration::from_secs(180);

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_ends_with_its_saver_though_a_child_has_the_directory_open() {
        let cache = tempfile::tempdir().unwrap();
        let interrupted = AtomicBool::new(true);
        let wait = || Lock::await_for(cache.path(), &interrupted);
        let lock = wait().unwrap();
        let _of_a_child = lock.0.try_clone().unwrap();
        assert!(wait().is_none());
        drop(lock);
        assert!(wait().is_some());
    }
}
