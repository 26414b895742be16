//! The preloaded libraries and what they count, and the allocator with pools.

use crate::preload::{Library, Refusals};
use nearmiss_analysis::CannotEngage;
use std::path::{Path, PathBuf};

pub const BOUND: &str = "bound";
pub const UNBOUND: &str = "unbound";
pub const POOLED: &str = "pooled";
const TURNS: &str = "turns";
pub const HOMED: &str = "homed";
pub const HOMED_BYTES: &str = "homed bytes";
pub const REFUSED: &str = "refused";

/// New tasks are bound as they begin, as `native/preload/local/tasks.c` counts.
pub static TASKS: Library = Library {
    name: "tasks",
    file: "nearmiss-local-tasks.so",
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/local-tasks.so")),
    counters: &[BOUND, UNBOUND, POOLED, TURNS],
};

/// Memory gets its node where it is requested, as `native/preload/local/homes.c` counts.
pub static HOMES: Library = Library {
    name: "homes",
    file: "nearmiss-local-homes.so",
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/local-homes.so")),
    counters: &[HOMED, HOMED_BYTES, REFUSED],
};

pub const REFUSALS: Refusals = Refusals {
    go: "no library can choose the nodes of its memory or replace its allocator; --bind and --home all=… reach it",
    statically_linked: "or use --bind and --home all=…, which reach it",
};

/// Allocators with pools by thread that hand a block out again where it was freed, the best one first
/// (experiments/local/pools.txt).
const POOLS: [&str; 2] = ["libtcmalloc_minimal.so.4", "libjemalloc.so.2"];
pub const INSTALL_POOLS: &str = "apt-get install libtcmalloc-minimal4";
const DIRECTORIES: [&str; 4] = ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib"];

/// The allocator that was named, or the best one that is installed.
pub fn pool(named: &str) -> Result<PathBuf, CannotEngage> {
    if !named.is_empty() {
        let file = PathBuf::from(named);
        let no_file = || CannotEngage::Parameters(format!("--pools={named}: no absolute path of a library"));
        return Some(file).filter(|file| file.is_absolute() && file.is_file()).ok_or_else(no_file);
    }
    let all = POOLS.iter().flat_map(|name| DIRECTORIES.map(|directory| Path::new(directory).join(name)));
    all.into_iter().find(|file| file.is_file()).ok_or_else(|| {
        CannotEngage::Parameters(format!(
            "--pools: neither {} in {}: {INSTALL_POOLS}",
            POOLS.join(" nor "),
            DIRECTORIES.join(", ")
        ))
    })
}
