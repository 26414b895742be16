//! The preloaded library and what it counts.

use crate::preload::{Library, Refusals};

pub const REQUESTED: &str = "requested";
pub const REQUESTED_BYTES: &str = "requested bytes";
pub const REFUSED: &str = "refused";
pub const LARGE_BYTES: &str = "large bytes";
pub const OLD_LIBC: &str = "old libc";

/// Requests large pages where memory is allocated, as `native/preload/huge/huge.c` counts.
pub static LIBRARY: Library = Library {
    name: "huge",
    file: "nearmiss-huge.so",
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/huge.so")),
    counters: &[REQUESTED, REQUESTED_BYTES, REFUSED, LARGE_BYTES, OLD_LIBC],
};

pub const REFUSALS: Refusals = Refusals {
    go: "no library can request large pages for its heap; set /sys/kernel/mm/transparent_hugepage/enabled to `always`, \
         which reaches it",
    statically_linked: "or call madvise(MADV_HUGEPAGE) in the program",
};
