//! The page cache, emptied before a cell: the whole machine's, for there is no part of it.

use crate::Error;
use std::fs;
use std::path::Path;

/// File that makes the kernel drop caches.
pub(crate) const DROP: &str = "/proc/sys/vm/drop_caches";

/// Writes back what is dirty, then drops the page cache, and the caches of names and inodes.
pub(crate) fn drop_it() -> Result<(), Error> {
    rustix::fs::sync();
    fs::write(Path::new(DROP), "3").map_err(Error::io(DROP))
}
