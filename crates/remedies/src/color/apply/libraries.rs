//! The two preloaded libraries and what they count, as `native/preload/color/parameters.h` has it.

use crate::preload::Library;

pub const COLORED: &str = "colored";
pub const LEFT: &str = "left";
pub const ADDED_BYTES: &str = "added bytes";
pub const MALLOC_ELSEWHERE: &str = "malloc elsewhere";

/// Threads start on a shifted stack.
pub static STACKS: Library = Library {
    name: "stacks",
    file: "nearmiss-color-stacks.so",
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/color-stacks.so")),
    counters: &[COLORED, LEFT],
};

/// Blocks of malloc are made longer, so that the next one begins on another color.
pub static BLOCKS: Library = Library {
    name: "blocks",
    file: "nearmiss-color-blocks.so",
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/color-blocks.so")),
    counters: &[COLORED, LEFT, ADDED_BYTES, MALLOC_ELSEWHERE],
};
