use super::super::colors::step;
use super::Options;
use crate::CannotEngage;
use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{MemfdFlags, SealFlags};
use serde::Serialize;
use std::fmt;
use std::mem::offset_of;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

const MAGIC: u64 = 0x3172_6c6f_636d_6e21;
const PIDS: usize = 248;

/// One library's handshakes. Mirrors `struct nearmiss_part` in `nearmiss-preload.h`.
#[repr(C)]
struct Part {
    processes: AtomicU64,
    pids: [AtomicI32; PIDS],
}

/// The page shared with the preloaded libraries. Mirrors `struct nearmiss_report`.
#[repr(C)]
struct Page {
    magic: AtomicU64,
    token: AtomicU64,
    stacks_colored: AtomicU64,
    stacks_plain: AtomicU64,
    blocks_colored: AtomicU64,
    blocks_plain: AtomicU64,
    blocks_bytes: AtomicU64,
    deepbind_dropped: AtomicU64,
    malloc_elsewhere: AtomicU64,
    parts: [Part; 2],
}

const _: () = assert!(offset_of!(Page, parts) == 72);
const _: () = assert!(size_of::<Part>() == 1000);
const _: () = assert!(size_of::<Page>() == 2072);

/// Our side of the shared page.
#[derive(Debug)]
pub(super) struct SharedReport {
    page: MmapRaw,
    descriptor: Arc<OwnedFd>,
    token: u64,
}

/// What one library said.
pub(super) struct Handshakes {
    programs: u64,
    pids: Vec<i32>,
}

impl Handshakes {
    pub(super) fn has(&self, pid: i32) -> bool {
        self.pids.contains(&pid)
    }
}

/// The page's counts at one moment.
pub(super) struct Snapshot {
    pub(super) stacks: Handshakes,
    pub(super) blocks: Handshakes,
    stacks_colored: u64,
    stacks_plain: u64,
    blocks_colored: u64,
    blocks_plain: u64,
    blocks_bytes: u64,
    deepbind_dropped: u64,
    malloc_elsewhere: u64,
}

impl SharedReport {
    pub(super) fn create() -> Result<Self, CannotEngage> {
        let failed = |e: rustix::io::Errno| CannotEngage::system("make the shared report", e);
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let low = rustix::fs::memfd_create("nearmiss-color", flags).map_err(failed)?;
        rustix::fs::ftruncate(&low, size_of::<Page>() as u64).map_err(failed)?;
        // A command that truncates it would take the page from under all the others.
        rustix::fs::fcntl_add_seals(&low, SealFlags::SHRINK | SealFlags::GROW).map_err(failed)?;
        // A number out of the way of those that shells and scripts choose by hand.
        let high = rustix::io::fcntl_dupfd_cloexec(&low, 200).unwrap_or(low);
        let page = MmapOptions::new()
            .len(size_of::<Page>())
            .map_raw(&high)
            .map_err(|e| CannotEngage::system("map the shared report", e))?;
        let mut token = [0u8; 8];
        // SAFETY: fills the eight bytes given; so few are never given in part.
        if unsafe { libc::getrandom(token.as_mut_ptr().cast(), token.len(), 0) } != 8 {
            return Err(CannotEngage::system("draw a random number", std::io::Error::last_os_error()));
        }
        let shared = SharedReport { page, descriptor: Arc::new(high), token: u64::from_ne_bytes(token) };
        shared.page().token.store(shared.token, Ordering::SeqCst);
        shared.page().magic.store(MAGIC, Ordering::SeqCst);
        Ok(shared)
    }

    pub(super) fn descriptor(&self) -> Arc<OwnedFd> {
        self.descriptor.clone()
    }

    /// The value of `NEARMISS_COLOR_PRELOAD`.
    pub(super) fn parameters(&self, options: &Options) -> String {
        format!(
            "colors={},step={},line={},blocks={},fd={},pid={},token={:x}",
            options.colors,
            step(options.colors.into()),
            options.line_bytes,
            options.block_bytes.unwrap_or(0),
            self.descriptor.as_raw_fd(),
            std::process::id(),
            self.token
        )
    }

    fn page(&self) -> &Page {
        // SAFETY: the mapping is page-aligned, as large as `Page`, lives as long as `self`,
        // and every field is an atomic, for which any bytes are a value.
        unsafe { &*self.page.as_ptr().cast::<Page>() }
    }

    /// The counts since the last call, which start again from zero.
    pub(super) fn take(&self) -> Snapshot {
        let page = self.page();
        let zero = |counter: &AtomicU64| counter.swap(0, Ordering::SeqCst);
        let handshakes = |part: &Part| Handshakes {
            pids: part.pids.iter().map(|pid| pid.swap(0, Ordering::SeqCst)).filter(|&pid| pid != 0).collect(),
            programs: zero(&part.processes),
        };
        let [stacks, blocks] = &page.parts;
        Snapshot {
            stacks: handshakes(stacks),
            blocks: handshakes(blocks),
            stacks_colored: zero(&page.stacks_colored),
            stacks_plain: zero(&page.stacks_plain),
            blocks_colored: zero(&page.blocks_colored),
            blocks_plain: zero(&page.blocks_plain),
            blocks_bytes: zero(&page.blocks_bytes),
            deepbind_dropped: zero(&page.deepbind_dropped),
            malloc_elsewhere: zero(&page.malloc_elsewhere),
        }
    }
}

/// What coloring did to a command: counted by the libraries inside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// `nearmiss/color-applied/1`.
    pub schema: &'static str,
    /// Number of colors.
    pub colors: u32,
    /// Bytes a color.
    pub line_bytes: u32,
    /// Thread stacks, if they were to be colored.
    pub stacks: Option<Stacks>,
    /// Blocks, if they were to be colored.
    pub blocks: Option<Blocks>,
}

/// What happened to thread stacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stacks {
    /// Programs in which the library was in place, the command's children included.
    pub programs: u64,
    /// Threads started on a colored stack.
    pub colored: u64,
    /// Threads left as they were: their stack was too small for the shift.
    pub left: u64,
}

/// What happened to blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Blocks {
    /// Least size in bytes from which any block is colored.
    pub least_bytes: u64,
    /// Programs in which the library was in place, the command's children included.
    pub programs: u64,
    /// Of those, the ones whose own `malloc` comes first, so that nothing was colored.
    pub programs_with_own_malloc: u64,
    /// Blocks shifted.
    pub colored: u64,
    /// Blocks left as they were for lack of memory.
    pub left: u64,
    /// Bytes that the shifts added in all, freed blocks included.
    pub added_bytes: u64,
    /// `dlopen` calls from which `RTLD_DEEPBIND` was taken.
    pub deepbind_dropped: u64,
}

impl Report {
    pub(super) fn new(options: &Options, s: &Snapshot) -> Self {
        Report {
            schema: "nearmiss/color-applied/1",
            colors: options.colors,
            line_bytes: options.line_bytes,
            stacks: options.stacks.then_some(Stacks {
                programs: s.stacks.programs,
                colored: s.stacks_colored,
                left: s.stacks_plain,
            }),
            blocks: options.block_bytes.map(|least_bytes| Blocks {
                least_bytes,
                programs: s.blocks.programs,
                programs_with_own_malloc: s.malloc_elsewhere,
                colored: s.blocks_colored,
                left: s.blocks_plain,
                added_bytes: s.blocks_bytes,
                deepbind_dropped: s.deepbind_dropped,
            }),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "color (measured): engaged, {} colors of {} bytes", self.colors, self.line_bytes)?;
        if let Some(stacks) = &self.stacks {
            write!(out, "; {} thread stacks colored", stacks.colored)?;
            if stacks.left > 0 {
                write!(out, ", {} left (too small)", stacks.left)?;
            }
        }
        if let Some(blocks) = &self.blocks {
            write!(out, "; {} blocks colored, {} bytes added", blocks.colored, blocks.added_bytes)?;
            if blocks.left > 0 {
                write!(out, ", {} left (no memory)", blocks.left)?;
            }
            if blocks.programs_with_own_malloc > 0 {
                write!(
                    out,
                    "; {} of {} programs bring their own malloc, whose blocks cannot be reached from outside",
                    blocks.programs_with_own_malloc, blocks.programs
                )?;
            }
            if blocks.deepbind_dropped > 0 {
                write!(out, "; RTLD_DEEPBIND taken from {} dlopen calls", blocks.deepbind_dropped)?;
            }
        }
        Ok(())
    }
}
