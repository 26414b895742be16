//! Write-combining, the slow way.

use crate::observer::Effective;
use std::collections::BTreeSet;

/// A write-combining buffer.
pub struct Buffer {
    pub line: u64,
    pub bytes: BTreeSet<u64>,
    pub last: Effective,
    pub home: u8,
}
