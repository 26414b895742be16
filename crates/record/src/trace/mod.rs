//! `trace.nmt`: a recorded stream on disk.
//!
//! ```text
//! file    = head  block*  tables  index  tail
//! head    = "NMTRACE1"  u32 length  JSON (TraceHeader)
//! block   = u32 compressed length, u32 raw length, u32 chunks, u32 records, zstd frame with checksum (see `columns`)
//! tables  = zstd frame with checksum: SideTables
//! index   = zstd frame with checksum: u64 offset of each block
//! tail    = u64 tables offset, u64 index offset, u64 blocks, "NMTRACEE"
//! ```
//!
//! All numbers are little endian. Each block decodes by itself, so a reader can start anywhere and a file that was cut
//! short is good up to its last whole block. Readers trust nothing: lengths are bounded before memory is taken.

mod bad;
mod columns;
mod reader;
mod validate;
mod writer;

pub use bad::Bad;
pub use reader::{Block, TraceReader};
pub use validate::{Validator, each_block, each_chunk, first_blocks, validate};
pub use writer::{TraceSummary, TraceWriter};

use crate::run::Filter;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;

const MAGIC: [u8; 8] = *b"NMTRACE1";
const END_MAGIC: [u8; 8] = *b"NMTRACEE";
const TAIL_BYTES: u64 = 32;
const BLOCK_HEAD_BYTES: usize = 16;

/// Records after which a block is closed.
pub const BLOCK_RECORDS: usize = 256 << 10;
/// Most records a block may claim: one chunk more than [`BLOCK_RECORDS`].
const MAX_BLOCK_RECORDS: usize = BLOCK_RECORDS + (64 << 10);
/// Most bytes a block may unpack to.
const MAX_RAW_BYTES: usize = 48 * MAX_BLOCK_RECORDS;
/// Most bytes the head's JSON may have.
const MAX_HEAD_BYTES: u32 = 1 << 20;

/// `nearmiss/trace/1`.
pub const SCHEMA: &str = "nearmiss/trace/1";

/// Header of a trace, before its first block.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceHeader {
    /// [`SCHEMA`].
    pub schema: String,
    /// vCPUs of the guest.
    pub cpus: u32,
    /// Bytes of guest memory by node.
    pub node_bytes: Vec<u64>,
    /// Only the command's user-mode references.
    pub only_user: bool,
    /// Filter of the dropped references.
    pub filter: Filter,
    /// A recording of parts that begins when the program has run for a while.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub starts_late: bool,
}

/// A trace that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file system's word.
    #[error("{path}: {source}")]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Not a trace.
    #[error("{path}: not a nearmiss trace (it does not begin with NMTRACE1)")]
    NotATrace {
        /// Path of the file.
        path: PathBuf,
    },
    /// A trace, but damaged outside its records.
    #[error("{path}: damaged at byte {offset}: {what}; record the run again")]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Byte offset of the damage.
        offset: u64,
        /// Error in the trace.
        what: String,
    },
    /// A record that cannot be.
    #[error("{path}: vCPU {vcpu}, record {record} (block {block}, chunk {chunk}): {what}")]
    BadRecord {
        /// Path of the file.
        path: PathBuf,
        /// vCPU of the stream.
        vcpu: u32,
        /// Position in that vCPU's stream, from 0.
        record: u64,
        /// Block of the file, from 0.
        block: u64,
        /// Sequence number of the chunk.
        chunk: u64,
        /// Error in the record.
        what: String,
    },
}
