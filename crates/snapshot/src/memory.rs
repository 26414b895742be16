//! Memory of this machine.

use std::fs;

/// Bytes of memory that programs may still have here.
pub(crate) fn available() -> Option<u64> {
    let info = fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().split(' ').next()?.parse::<u64>().ok().map(|kib| kib << 10)
}
