//! Places in tables for keys that mostly lie at equal distances, such as the numbers of lines.

/// Fibonacci hashing (Knuth, TAOCP 6.4): the upper bits depend on all bits of the key, so that such keys spread.
#[inline(always)]
pub(crate) fn mixed(key: u64) -> u64 {
    key.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Returns the place of a key among `1 << places_log2`, of which there are at least two.
#[inline(always)]
pub(crate) fn place(key: u64, places_log2: u32) -> usize {
    (mixed(key) >> (u64::BITS - places_log2)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_equal_spacing_spread() {
        for spacing in [1, 64, 4096, 1 << 21] {
            let mut taken = [0u32; 64];
            (0..256).for_each(|key| taken[place(key * spacing, 6)] += 1);
            assert!(taken.iter().all(|keys| (2..=6).contains(keys)), "{spacing}: {taken:?}");
        }
    }
}
