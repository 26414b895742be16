//! Which files lie in the page cache, before and after: those that the target opens, and those that others have open
//! and that its pages may push out. Nothing is read, dropped or brought in to find out: the kernel reports it
//! (`cachestat`).

use nearmiss_record::observed::CachedFile;
use nearmiss_workload::Tree;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often the target's open files are listed.
const EVERY: Duration = Duration::from_millis(250);
/// Smaller files are left out: thousands are open, and hold little.
const LEAST_BYTES: u64 = 1 << 20;
/// Most files that are followed.
const MOST_FILES: usize = 4096;
/// Unit of `cachestat`: the pages of this machine.
const PAGE_BYTES: u64 = 4096;

/// A file by its device and inode.
type Key = (u64, u64);

/// Kernel counts of one file's pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pages {
    cached: u64,
    recently_evicted: u64,
}

#[derive(Debug)]
struct FollowedFile {
    path: PathBuf,
    process: i32,
    name: String,
    of_target: bool,
    before: Pages,
    /// The file was open before the window.
    at_start: bool,
}

/// Files followed through an observation.
#[derive(Debug)]
pub(super) struct CachedFiles {
    roots: Vec<i32>,
    files: HashMap<Key, FollowedFile>,
    read_before: HashMap<i32, u64>,
    looked: Instant,
    has_begun: bool,
}

impl CachedFiles {
    /// Looks at all files that are open now. `None` where the kernel has no `cachestat` (before Linux 6.5).
    pub(super) fn begin(roots: Vec<i32>) -> Option<Self> {
        pages_of(&File::open("/proc/self/exe").ok()?)?;
        let mut followed = CachedFiles {
            roots,
            files: HashMap::new(),
            read_before: HashMap::new(),
            looked: Instant::now(),
            has_begun: false,
        };
        let target = followed.target();
        let own = std::process::id().cast_signed();
        for process in processes().into_iter().filter(|process| *process != own) {
            followed.list(process, target.contains(&process));
            if !target.contains(&process) {
                followed.read_before.extend(read_bytes(process).map(|bytes| (process, bytes)));
            }
        }
        followed.has_begun = true;
        Some(followed)
    }

    /// Looks at what the target has opened since, if it is time.
    pub(super) fn step(&mut self) {
        if self.looked.elapsed() >= EVERY {
            self.looked = Instant::now();
            self.target().into_iter().for_each(|process| self.list(process, true));
        }
    }

    /// Returns the fate of the files, most pages lost first.
    pub(super) fn finish(self) -> Vec<CachedFile> {
        let mut read = HashMap::new();
        for (process, before) in &self.read_before {
            read.extend(read_bytes(*process).map(|now| (*process, now.saturating_sub(*before))));
        }
        let mut rows: Vec<CachedFile> = self.files.iter().filter_map(|(key, seen)| row(*key, seen, &read)).collect();
        rows.sort_by(|a, b| (b.lost(), b.after_bytes, &a.path).cmp(&(a.lost(), a.after_bytes, &b.path)));
        rows
    }

    fn target(&self) -> HashSet<i32> {
        self.roots.iter().flat_map(|root| Tree::of(*root).processes()).collect()
    }

    fn list(&mut self, process: i32, of_target: bool) {
        // A process may end meanwhile, or be another user's.
        let open = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
        for link in open.map(|entry| entry.path()) {
            self.note(&link, process, of_target);
        }
    }

    fn note(&mut self, link: &Path, process: i32, of_target: bool) {
        let Ok(path) = fs::read_link(link) else { return };
        let outside = ["/proc/", "/sys/", "/dev/"].iter().any(|place| path.starts_with(place));
        let Some(about) = fs::metadata(link).ok().filter(|about| about.is_file() && !outside) else { return };
        let key = (about.dev(), about.ino());
        if let Some(known) = self.files.get_mut(&key) {
            known.of_target |= of_target;
            return;
        }
        if self.files.len() >= MOST_FILES || (about.len() < LEAST_BYTES && !of_target) {
            return;
        }
        if let Some(before) = File::open(link).ok().and_then(|file| pages_of(&file)) {
            let name = name_of(process);
            self.files.insert(key, FollowedFile { path, process, name, of_target, before, at_start: !self.has_begun });
        }
    }
}

/// `None` for files that are gone, and for those that held and hold little.
fn row(key: Key, seen: &FollowedFile, read: &HashMap<i32, u64>) -> Option<CachedFile> {
    let file = File::open(&seen.path).ok()?;
    let about = file.metadata().ok().filter(|about| (about.dev(), about.ino()) == key)?;
    let after = pages_of(&file)?;
    let bytes = |pages: u64| pages * PAGE_BYTES;
    let row = CachedFile {
        path: seen.path.to_string_lossy().into_owned(),
        process: seen.process,
        name: seen.name.clone(),
        of_target: seen.of_target,
        size_bytes: about.len(),
        before_bytes: seen.at_start.then_some(bytes(seen.before.cached)),
        after_bytes: bytes(after.cached),
        recently_evicted_bytes: bytes(after.recently_evicted.saturating_sub(seen.before.recently_evicted)),
        read_bytes: read.get(&seen.process).copied().filter(|_| !seen.of_target),
    };
    (row.after_bytes.max(row.before_bytes.unwrap_or(0)) >= LEAST_BYTES).then_some(row)
}

fn processes() -> Vec<i32> {
    let listed = fs::read_dir("/proc").into_iter().flatten().flatten();
    listed.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn name_of(process: i32) -> String {
    fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default().trim_end().to_owned()
}

/// Returns the bytes that a process has had read from storage.
fn read_bytes(process: i32) -> Option<u64> {
    let counts = fs::read_to_string(format!("/proc/{process}/io")).ok()?;
    counts.lines().find_map(|line| line.strip_prefix("read_bytes: ")?.parse().ok())
}

fn pages_of(file: &File) -> Option<Pages> {
    const CACHESTAT: libc::c_long = 451;
    let whole = [0u64; 2];
    let mut counts = [0u64; 5];
    // SAFETY: the call reads the two words of the range and writes the five words of the counts.
    let failed = unsafe { libc::syscall(CACHESTAT, file.as_raw_fd(), whole.as_ptr(), counts.as_mut_ptr(), 0) } != 0;
    let [cached, _, _, _, recently_evicted] = counts;
    (!failed).then_some(Pages { cached, recently_evicted })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_file_is_followed_by_the_kernels_counts_of_its_pages() {
        let file = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        file.as_file().write_all(&vec![1; 3 << 20]).unwrap();
        file.as_file().sync_all().unwrap();
        let own = std::process::id().cast_signed();
        let Some(mut followed) = CachedFiles::begin(vec![own]) else {
            println!("skipped: this kernel has no cachestat");
            return;
        };
        // Its own files are nobody's business, except here.
        followed.has_begun = false;
        followed.list(own, true);
        followed.has_begun = true;
        let later = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        later.as_file().write_all(&vec![1; 1 << 20]).unwrap();
        followed.list(own, true);
        // All of it: a part may lie in one large folio with the rest.
        // SAFETY: a number of a descriptor that is open.
        unsafe { libc::posix_fadvise(file.as_file().as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        let rows = followed.finish();
        let row = |of: &Path| rows.iter().find(|row| Path::new(&row.path) == of).cloned().unwrap();
        let first = row(file.path());
        assert_eq!((first.before_bytes, first.after_bytes, first.of_target), (Some(3 << 20), 0, true));
        assert_eq!((first.size_bytes, first.read_bytes, first.lost()), (3 << 20, None, 3 << 20));
        assert_eq!((row(later.path()).before_bytes, row(later.path()).after_bytes), (None, 1 << 20));
    }
}
