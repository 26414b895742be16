//! CRIU's own figures of a dump: the image `stats-dump`, a `StatsEntry` with a `DumpStatsEntry` (`images/stats.proto`).

use crate::wire::{Value, fields, messages};
use std::time::Duration;

/// Two magic numbers.
const HEAD: usize = 8;
/// `StatsEntry.dump`.
const DUMP: u64 = 1;
/// `DumpStatsEntry.freezing_time` and `frozen_time`, in µs.
const FREEZING: u64 = 1;
const FROZEN: u64 = 2;

/// How long the process stood still, *measured* by CRIU: from the first thread's stop to the last one's start.
pub(crate) fn pause(image: &[u8]) -> Option<Duration> {
    let entry = messages(image, HEAD).next()?;
    let dump = fields(entry).find_map(|field| match field.value {
        Value::Bytes(dump) if field.number == DUMP => Some(dump),
        _ => None,
    })?;
    let time = |wanted| {
        fields(dump).find_map(|field| match field.value {
            Value::Number(time) if field.number == wanted => Some(time),
            _ => None,
        })
    };
    Some(Duration::from_micros(time(FREEZING)? + time(FROZEN)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written by CRIU 4.2.1.
    const IMAGE: [u8; 47] = [
        0x40, 0x59, 0x10, 0x55, 0x06, 0x33, 0x09, 0x57, 0x23, 0x00, 0x00, 0x00, 0x0a, 0x21, 0x08, 0x62, 0x10, 0xae,
        0x51, 0x18, 0xbd, 0x19, 0x20, 0xc9, 0x13, 0x28, 0xac, 0x10, 0x30, 0x00, 0x38, 0x9d, 0x10, 0x40, 0x00, 0x48,
        0x00, 0x50, 0x08, 0x58, 0x08, 0x60, 0x00, 0x68, 0x00, 0x70, 0x00,
    ];

    #[test]
    fn the_pause_is_freezing_and_frozen_time() {
        assert_eq!(pause(&IMAGE), Some(Duration::from_micros(98 + 10_414)));
        assert_eq!(pause(&IMAGE[..20]), None);
    }
}
