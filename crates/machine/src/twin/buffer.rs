//! Write-combining, the slow way.

use nearmiss_record::reference::Record;
use std::collections::BTreeSet;

/// A write-combining buffer.
pub struct Buffer {
    pub line: u64,
    pub bytes: BTreeSet<u64>,
    pub last: Record,
    pub cpu: u32,
    pub home: u8,
}
