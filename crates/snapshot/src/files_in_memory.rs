//! The parts of mapped files that a process has in its memory.
//!
//! A restored process finds its own memory there, and none of its files: the guest would spend its first seconds on
//! reading its program's pages, which a process that runs for long has long read. So they are read ahead.

use crate::process::Process;
use crate::{SnapshotError, memory};
use rustix::fs::{Advice, FileType, Mode, OFlags};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The list among a snapshot's images: a line `OFFSET BYTES PATH` for each part.
const LIST: &str = "files-in-memory";
const PAGE: u64 = 4096;
/// A page's entry in `/proc/PID/pagemap` (`Documentation/admin-guide/mm/pagemap.rst`) is so long, and has this bit if the
/// page is present.
const ENTRY: u64 = 8;
const PRESENT: u64 = 1 << 63;
/// Pages that are looked at, of all mappings: those of 4 GiB.
const MOST_PAGES: u64 = 1 << 20;
/// Absent pages between two present ones that are read with them.
const GAP: u64 = 16;
/// Bytes that are read at once: the kernel reads no more ahead for one call.
const CHUNK: u64 = 128 << 10;
/// Share of the guest's free memory that may be read.
const MOST_OF_FREE: u64 = 4;

/// A part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    path: PathBuf,
    offset: u64,
    bytes: u64,
}

/// Writes the list of these processes among the images.
pub(crate) fn list(processes: &[Process], images: &Path) -> Result<(), SnapshotError> {
    let mut pages = MOST_PAGES;
    let mut parts: Vec<Part> = processes.iter().flat_map(|process| parts_of(process, &mut pages)).collect();
    parts.sort_by(|a, b| (&a.path, a.offset, a.bytes).cmp(&(&b.path, b.offset, b.bytes)));
    parts.dedup();
    let mut text = Vec::new();
    for Part { path, offset, bytes } in &parts {
        // Writing to memory cannot fail.
        let _ = writeln!(text, "{offset} {bytes} {}", path.display());
    }
    fs::write(images.join(LIST), text).map_err(SnapshotError::io("list the files in memory"))
}

fn parts_of(process: &Process, pages: &mut u64) -> Vec<Part> {
    let maps = fs::read_to_string(process.file("maps")).unwrap_or_default();
    let Ok(pagemap) = File::open(process.file("pagemap")) else { return Vec::new() };
    let mut parts = Vec::new();
    for (start, bytes, offset, path) in maps.lines().filter_map(of_file) {
        let count = (bytes / PAGE).min(*pages);
        *pages -= count;
        let mut entries = vec![0; (count * ENTRY) as usize];
        if pagemap.read_exact_at(&mut entries, start / PAGE * ENTRY).is_err() {
            continue;
        }
        let present = entries
            .chunks_exact(ENTRY as usize)
            .map(|entry| entry.try_into().is_ok_and(|entry| u64::from_le_bytes(entry) & PRESENT != 0));
        let runs = runs(present);
        parts.extend(runs.into_iter().map(|(from, count)| Part {
            path: path.into(),
            offset: offset + from * PAGE,
            bytes: count * PAGE,
        }));
    }
    parts
}

/// Start, bytes, offset and path of a mapping of a file.
fn of_file(line: &str) -> Option<(u64, u64, u64, &str)> {
    let path =
        line.get(line.find('/')?..).filter(|path| !path.ends_with(" (deleted)") && !path.starts_with("/dev/"))?;
    let mut fields = line.split(' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end, offset) = (hex(start)?, hex(end)?, hex(fields.nth(1)?)?);
    Some((start, end.checked_sub(start)?, offset, path))
}

/// First page and number of pages of each run, with small gaps in it.
fn runs(present: impl Iterator<Item = bool>) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for (page, _) in (0..).zip(present).filter(|(_, present)| *present) {
        match runs.last_mut().filter(|(from, count)| page - (*from + *count) <= GAP) {
            Some((from, count)) => *count = page + 1 - *from,
            None => runs.push((page, 1)),
        }
    }
    runs
}

/// Reads the listed parts into the guest's page cache, as far as its memory goes. A file that is not there is left out.
pub(crate) fn read_ahead(images: &Path) {
    let text = fs::read_to_string(images.join(LIST)).unwrap_or_default();
    let mut left = memory::available().unwrap_or(0) / MOST_OF_FREE;
    for Part { path, offset, bytes } in text.lines().filter_map(part) {
        if bytes > left {
            return;
        }
        left -= bytes;
        read_part(&path, offset, bytes);
    }
}

fn part(line: &str) -> Option<Part> {
    let mut fields = line.splitn(3, ' ');
    let mut number = || fields.next()?.parse().ok();
    let (offset, bytes) = (number()?, number()?);
    Some(Part { path: fields.next()?.into(), offset, bytes })
}

fn read_part(path: &Path, offset: u64, bytes: u64) {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let Ok(file) = rustix::fs::open(path, flags, Mode::empty()) else { return };
    if !rustix::fs::fstat(&file).is_ok_and(|status| FileType::from_raw_mode(status.st_mode).is_file()) {
        return;
    }
    let file = File::from(file);
    for at in (offset..offset + bytes).step_by(CHUNK as usize) {
        let length = CHUNK.min(offset + bytes - at);
        // Who does not read ahead reads later.
        let _ = rustix::fs::fadvise(&file, at, std::num::NonZeroU64::new(length), Advice::WillNeed);
        // Waits for the last page, so that no more than a chunk is under way.
        let _ = file.read_at(&mut [0], at + length - 1);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn runs_have_small_gaps() {
        let present = |pages: &[u64]| {
            let pages = pages.to_vec();
            (0..200).map(move |page| pages.contains(&page))
        };
        assert_eq!(runs(present(&[])), []);
        assert_eq!(runs(present(&[3, 4, 21, 39])), [(3, 19), (39, 1)]);
    }

    #[test]
    fn what_this_process_runs_is_listed_and_read_back() {
        let place = tempfile::tempdir().unwrap();
        let this = Process::of(std::process::id() as i32).unwrap();
        list(&[this], place.path()).unwrap();
        let text = fs::read_to_string(place.path().join(LIST)).unwrap();
        let parts: Vec<Part> = text.lines().map(|line| part(line).unwrap()).collect();
        let own = std::env::current_exe().unwrap();
        assert!(parts.iter().any(|part| part.path == own && part.bytes >= PAGE), "{text}");
        assert!(parts.iter().all(|part| part.offset % PAGE == 0 && part.bytes % PAGE == 0), "{text}");
        fs::write(place.path().join(LIST), format!("{text}\nno line\n0 4096 /nowhere\n")).unwrap();
        read_ahead(place.path());
    }
}
