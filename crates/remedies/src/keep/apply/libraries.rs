//! The preloaded library and what it counts.

use crate::preload::{Library, Refusals};

pub const KEEPS: &str = "keeps";
pub const MALLOC_ELSEWHERE: &str = "malloc elsewhere";
pub const PAGE_FAULTS: &str = "page faults";

/// Sets the parameters of malloc, as `native/preload/keep/keep.c` counts.
pub static LIBRARY: Library = Library {
    name: "keep",
    file: "nearmiss-keep.so",
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/keep.so")),
    counters: &[KEEPS, MALLOC_ELSEWHERE, PAGE_FAULTS],
};

pub const REFUSALS: Refusals = Refusals {
    go: "its memory is not malloc's; set GOGC, or GOMEMLIMIT with GOGC=off, for a collector that returns less",
    statically_linked: "or call mallopt(M_MMAP_MAX, 0) and mallopt(M_TRIM_THRESHOLD, -1) in the program",
};
