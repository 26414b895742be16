//! A record that cannot be: what the validator returns, and what a reader adds its file to.

/// Position and reason of a bad record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    /// vCPU of the stream.
    pub vcpu: u32,
    /// Position in that stream, from 0.
    pub record: u64,
    /// Sequence number of the chunk.
    pub chunk: u64,
    /// Error in the record.
    pub what: String,
}
