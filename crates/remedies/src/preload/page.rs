//! The page shared with the preloaded libraries: they report that they are in place, and count.

use super::Library;
use memmap2::{MmapOptions, MmapRaw};
use nearmiss_analysis::CannotEngage;
use rustix::fs::{MemfdFlags, SealFlags};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::mem::offset_of;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

const MAGIC: u64 = 0x3272_6c6f_636d_6e21;
const PIDS: usize = 248;
const COUNTERS: usize = 64;
const PARTS: usize = 8;
const NOTES: usize = 32;
const RESTS: usize = 64;
const REST_NAME_WORDS: usize = 26;
/// State of a whole rest, as `NEARMISS_REST_WHOLE`.
const REST_WHOLE: u32 = 2;
const NOTE_WORDS: usize = 15;

/// A few words of a library. Mirrors `struct nearmiss_note`.
#[repr(C)]
struct RawNote {
    about: AtomicU64,
    text: [AtomicU64; NOTE_WORDS],
}

/// One library's. Mirrors `struct nearmiss_part` in `nearmiss-preload.h`.
#[repr(C)]
struct RawPart {
    programs: AtomicU64,
    pids: [AtomicI32; PIDS],
    counters: [AtomicU64; COUNTERS],
    notes_begun: AtomicU64,
    notes: [RawNote; NOTES],
}

/// Mirrors `struct nearmiss_page`.
#[repr(C)]
struct RawPage {
    magic: AtomicU64,
    token: AtomicU64,
    parts: [RawPart; PARTS],
    rests: [RawRest; RESTS],
}

/// Mirrors `struct nearmiss_rest`.
#[repr(C)]
struct RawRest {
    state: AtomicU32,
    pid: AtomicI32,
    device: AtomicU64,
    inode: AtomicU64,
    from: AtomicU64,
    to: AtomicU64,
    mixed: AtomicU64,
    name: [AtomicU64; REST_NAME_WORDS],
}

const _: () = assert!(offset_of!(RawPage, parts) == 16);
const _: () = assert!(size_of::<RawPart>() == 5616);
const _: () = assert!(size_of::<RawRest>() == 256);
const _: () = assert!(size_of::<RawPage>() == 61328);

/// Our side of the page.
#[derive(Debug)]
pub(super) struct Page {
    page: MmapRaw,
    descriptor: Arc<OwnedFd>,
    token: u64,
}

/// Report and counts of one library.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LibraryCounts {
    /// The library's name.
    pub library: &'static str,
    /// Programs in which the library was in place, the command's children included.
    pub programs: u64,
    pids: Vec<i32>,
    counters: Vec<(&'static str, u64)>,
    notes: Vec<(u64, String)>,
}

impl LibraryCounts {
    pub(super) fn has(&self, pid: i32) -> bool {
        self.pids.contains(&pid)
    }

    /// A counter by its name; 0 for one that the library does not declare.
    pub fn counter(&self, name: &str) -> u64 {
        self.counters.iter().find(|(known, _)| *known == name).map_or(0, |(_, count)| *count)
    }

    /// Returns the library's notes on a subject, each text once, in order.
    pub fn notes(&self, about: u64) -> Vec<String> {
        let texts: BTreeSet<&String> = self.notes.iter().filter(|(of, _)| *of == about).map(|(_, text)| text).collect();
        texts.into_iter().cloned().collect()
    }
}

impl RawNote {
    /// Takes the note; none: there is no note, or not all of it yet.
    fn take(&self) -> Option<(u64, String)> {
        let about = self.about.swap(0, Ordering::SeqCst).checked_sub(1)?;
        let bytes = text(&self.text);
        // The command can write what it likes here.
        let text = String::from_utf8_lossy(&bytes).replace(char::is_control, "?");
        Some((about, text))
    }
}

/// The bytes of a text, which ends with a zero or where its place does.
fn text(words: &[AtomicU64]) -> Vec<u8> {
    let bytes = words.iter().flat_map(|word| word.load(Ordering::SeqCst).to_le_bytes());
    bytes.take_while(|byte| *byte != 0).collect()
}

/// Pages of a file that a process had still to give back when it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rest {
    /// The file's device. The file is matched by device and inode: another one may have its name by now.
    pub device: u64,
    /// The file's inode.
    pub inode: u64,
    /// Name of the file.
    pub name: PathBuf,
    /// The pages.
    pub pages: Range<u64>,
    /// Some of them were in the page cache before the process came.
    pub mixed: bool,
}

impl RawRest {
    /// Takes the pages; none: nothing is written there, or the process is there still.
    fn take(&self) -> Option<Rest> {
        let number = |of: &AtomicU64| of.load(Ordering::SeqCst);
        let runs = Path::new("/proc").join(self.pid.load(Ordering::SeqCst).to_string()).join("exe").exists();
        let state = if runs { 0 } else { self.state.swap(0, Ordering::SeqCst) };
        (state == REST_WHOLE).then(|| Rest {
            device: number(&self.device),
            inode: number(&self.inode),
            name: PathBuf::from(OsString::from_vec(text(&self.name))),
            pages: number(&self.from)..number(&self.to),
            mixed: number(&self.mixed) > 0,
        })
    }
}

/// Parts by library, in the order in which they were declared.
pub type LibraryCountsList = Vec<LibraryCounts>;

impl Page {
    /// Makes the page for so many libraries.
    pub(super) fn create(libraries: usize) -> Result<Self, CannotEngage> {
        if libraries > PARTS {
            return Err(CannotEngage::Parameters(format!("{libraries} libraries: the page has room for {PARTS}")));
        }
        let failed = |e: rustix::io::Errno| CannotEngage::system("make the shared page", e);
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let low = rustix::fs::memfd_create("nearmiss-preload", flags).map_err(failed)?;
        rustix::fs::ftruncate(&low, size_of::<RawPage>() as u64).map_err(failed)?;
        // A command that truncates it would take the page from under all the others.
        rustix::fs::fcntl_add_seals(&low, SealFlags::SHRINK | SealFlags::GROW).map_err(failed)?;
        // A number out of the way of those that shells and scripts choose by hand.
        let high = rustix::io::fcntl_dupfd_cloexec(&low, 200).unwrap_or(low);
        let page = MmapOptions::new()
            .len(size_of::<RawPage>())
            .map_raw(&high)
            .map_err(|e| CannotEngage::system("map the shared page", e))?;
        let shared = Page { page, descriptor: Arc::new(high), token: random()? };
        shared.raw().token.store(shared.token, Ordering::SeqCst);
        shared.raw().magic.store(MAGIC, Ordering::SeqCst);
        Ok(shared)
    }

    pub(super) fn descriptor(&self) -> Arc<OwnedFd> {
        self.descriptor.clone()
    }

    /// Returns the parameters by which the libraries find the page.
    pub(super) fn parameters(&self) -> String {
        format!("fd={},pid={},token={:x}", self.descriptor.as_raw_fd(), std::process::id(), self.token)
    }

    fn raw(&self) -> &RawPage {
        // SAFETY: the mapping is page-aligned, as large as `RawPage`, lives as long as `self`,
        // and every field is an atomic, for which any bytes are a value.
        unsafe { &*self.page.as_ptr().cast::<RawPage>() }
    }

    /// The counts since the last call, which start again from zero.
    pub(super) fn take(&self, libraries: &[&'static Library]) -> LibraryCountsList {
        let zero = |counter: &AtomicU64| counter.swap(0, Ordering::SeqCst);
        let part = |(library, raw): (&&'static Library, &RawPart)| LibraryCounts {
            library: library.name,
            pids: raw.pids.iter().map(|pid| pid.swap(0, Ordering::SeqCst)).filter(|&pid| pid != 0).collect(),
            programs: zero(&raw.programs),
            counters: library.counters.iter().copied().zip(raw.counters.iter().map(zero)).collect(),
            notes: {
                let notes = raw.notes.iter().filter_map(RawNote::take).collect();
                zero(&raw.notes_begun);
                notes
            },
        };
        libraries.iter().zip(&self.raw().parts).map(part).collect()
    }
}

impl Page {
    /// Returns once what ended processes had still to give back.
    pub(super) fn rests(&self) -> Vec<Rest> {
        self.raw().rests.iter().filter_map(RawRest::take).collect()
    }
}

fn random() -> Result<u64, CannotEngage> {
    let mut token = [0u8; 8];
    // SAFETY: fills the eight bytes given; so few are never given in part.
    if unsafe { libc::getrandom(token.as_mut_ptr().cast(), token.len(), 0) } != 8 {
        return Err(CannotEngage::system("draw a random number", std::io::Error::last_os_error()));
    }
    Ok(u64::from_ne_bytes(token))
}
