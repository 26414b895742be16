//! A write-combining buffer.

use crate::observer::Effective;
use std::collections::BTreeSet;

/// Bytes of one line that wait to be sent together.
pub struct Buffer {
    pub line: u64,
    pub bytes: BTreeSet<u64>,
    pub last: Effective,
    pub home: u8,
}
