//! Bytes of a line as a mask, one bit each.

/// The bytes of `[address, address + size)` inside the line at `line`, as a mask.
#[inline]
pub(crate) fn mask_within(line: u64, line_log2: u32, address: u64, size: u32) -> u128 {
    let (from, to) = (address.max(line), (address + u64::from(size)).min(line + (1 << line_log2)));
    if from >= to {
        return 0;
    }
    let count = (to - from) as u32;
    let bits = if count >= 128 { u128::MAX } else { (1 << count) - 1 };
    bits << (from - line)
}
