//! Block requests: totals by device, operation and submitter.

use super::row::{Sound, rows};
use crate::observed::BlockIo;

rows! {
    /// The block requests of one submitter to one device, summed.
    IoTotals in "io.parquet" as "nearmiss/io/1" {
        /// `vda`, `loop0`, …; `major:minor` where it has no name.
        device: String,
        /// `read`, `write`, `flush`, `discard`, ….
        operation: String,
        /// Process that submitted.
        process: u32,
        /// Name of the thread that submitted.
        name: String,
        /// Requests completed.
        requests: u64,
        /// Bytes.
        bytes: u64,
        /// Requests that failed.
        errors: u64,
        /// Time from start to issue.
        queue_ns: u64,
        /// Time from issue to completion.
        device_ns: u64,
        /// Shortest, start to completion.
        min_ns: u64,
        /// Longest, start to completion.
        max_ns: u64,
    }
}

impl Sound for IoTotals {}

impl From<&BlockIo> for IoTotals {
    fn from(io: &BlockIo) -> Self {
        IoTotals {
            device: io.device.clone(),
            operation: io.operation.clone(),
            process: io.process.max(0).cast_unsigned(),
            name: io.name.clone(),
            requests: io.count,
            bytes: io.bytes,
            errors: io.errors,
            queue_ns: io.queue_ns,
            device_ns: io.device_ns,
            min_ns: io.min_ns,
            max_ns: io.max_ns,
        }
    }
}
