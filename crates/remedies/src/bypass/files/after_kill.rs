//! Pages that a killed program leaves in the page cache: its library had no time to give them back, so we do.

use crate::preload::Rest;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::time::{Duration, Instant};

const PAGE_BYTES: u64 = 4096;
/// How long the disk may take to write what the programs left.
const PATIENCE: Duration = Duration::from_secs(5);
const NAP: Duration = Duration::from_millis(2);

/// Result of giving back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AfterKill {
    /// Bytes dropped.
    pub given_back_bytes: u64,
    /// Bytes still in the page cache.
    pub left_bytes: u64,
}

/// Pages of a stretch in the page cache, and of those the ones that the disk has not written.
struct Cached {
    pages: u64,
    unwritten: u64,
}

/// Gives back the pages that were not in the page cache before their program came. If some were, which ones is no
/// longer known, and all stay.
pub(super) fn give_back(rests: &[Rest]) -> AfterKill {
    let begun = Instant::now();
    let mut all = AfterKill::default();
    for rest in rests {
        let Some(file) = open(rest) else { continue };
        let Some(before) = cached(&file, rest) else { continue };
        let after = if rest.mixed { before.pages } else { drop_pages(&file, rest, begun) };
        all.given_back_bytes += before.pages.saturating_sub(after) * PAGE_BYTES;
        all.left_bytes += after * PAGE_BYTES;
    }
    all
}

/// The file, unless its name is another's by now.
fn open(rest: &Rest) -> Option<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    // A name that leads to a device is not opened: opening one may act.
    let about = std::fs::symlink_metadata(&rest.name).ok()?;
    let is_it = |about: &std::fs::Metadata| about.is_file() && (about.dev(), about.ino()) == (rest.device, rest.inode);
    let file = is_it(&about).then(|| File::options().read(true).custom_flags(flags).open(&rest.name))?.ok()?;
    is_it(&file.metadata().ok()?).then_some(file)
}

/// Drops them when the disk has them; how many stay.
fn drop_pages(file: &File, rest: &Rest, begun: Instant) -> u64 {
    loop {
        let Some(now) = cached(file, rest) else { return 0 };
        if now.unwritten > 0 {
            begin_writing(file, rest);
        }
        // Also where nothing is seen: for an overlay the kernel reports nothing, and drops.
        advise_dont_need(file, rest);
        if now.pages == 0 || begun.elapsed() > PATIENCE {
            return now.pages;
        }
        match cached(file, rest) {
            // Pages that others use stay.
            Some(after) if after.pages > 0 && after.unwritten == 0 && now.unwritten == 0 => return after.pages,
            _ => std::thread::sleep(NAP),
        }
    }
}

fn stretch(rest: &Rest) -> (u64, u64) {
    (rest.pages.start * PAGE_BYTES, (rest.pages.end - rest.pages.start.min(rest.pages.end)) * PAGE_BYTES)
}

/// Returns none where the kernel has no counts (before Linux 6.5, and on an overlay).
fn cached(file: &File, rest: &Rest) -> Option<Cached> {
    const CACHESTAT: libc::c_long = 451;
    let (offset, length) = stretch(rest);
    // A length of zero would mean the whole file.
    let range = (length > 0).then_some([offset, length])?;
    let mut counts = [0u64; 5];
    // SAFETY: both structures are laid out as the call requires: two words in, five words out.
    let failed = unsafe { libc::syscall(CACHESTAT, file.as_raw_fd(), range.as_ptr(), counts.as_mut_ptr(), 0) } != 0;
    (!failed).then_some(Cached { pages: counts[0], unwritten: counts[1] + counts[2] })
}

fn begin_writing(file: &File, rest: &Rest) {
    let (offset, length) = stretch(rest);
    // SAFETY: numbers alone. A refusal shows in what is looked at next.
    unsafe { libc::sync_file_range(file.as_raw_fd(), offset as i64, length as i64, libc::SYNC_FILE_RANGE_WRITE) };
}

fn advise_dont_need(file: &File, rest: &Rest) {
    let (offset, length) = stretch(rest);
    // SAFETY: as above.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), offset as i64, length as i64, libc::POSIX_FADV_DONTNEED) };
}
