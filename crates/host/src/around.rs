//! Cost of reading what non-temporal stores have just written: the bytes are on their way to memory, and come back from
//! there.

use std::hint::black_box;
use std::time::Instant;

/// Sizes of the rings that are measured: written past the caches, then read, again and again.
pub const KIBIBYTES: [usize; 3] = [1, 4, 16];
const LINE_WORDS: usize = 64 / 8;
/// Bytes written in a round, in so many turns over the ring as it takes.
const BYTES_A_ROUND: usize = 1 << 20;
const ROUNDS: usize = 8;

/// Nanoseconds a line that reading takes more than behind plain stores; none on processors without such stores.
pub fn reread_nanoseconds(kibibytes: usize) -> Option<f64> {
    let mut words = vec![1u64; (kibibytes << 10) / 8 + LINE_WORDS];
    let from = words.as_ptr().align_offset(64).min(LINE_WORDS);
    let ring = &mut words[from..from + (kibibytes << 10) / 8];
    let around = line_nanoseconds(ring, store_around)?;
    Some(around - line_nanoseconds(ring, store)?)
}

/// Nanoseconds of writing and reading a line: the least of several rounds, as noise only adds.
fn line_nanoseconds(ring: &mut [u64], store: impl Fn(&mut [u64], u64) -> Option<()>) -> Option<f64> {
    let turns = (BYTES_A_ROUND / size_of_val(ring)).max(1);
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        let started = Instant::now();
        for turn in 0..turns {
            store(ring, turn as u64)?;
            let ring: &[u64] = black_box(ring);
            black_box(ring.iter().fold(0u64, |sum, word| sum.wrapping_add(*word)));
        }
        let lines = turns * ring.len() / LINE_WORDS;
        least = least.min(started.elapsed().as_secs_f64() * 1e9 / lines as f64);
    }
    Some(least)
}

fn store(ring: &mut [u64], value: u64) -> Option<()> {
    ring.fill(value);
    Some(())
}

#[cfg(target_arch = "x86_64")]
fn store_around(ring: &mut [u64], value: u64) -> Option<()> {
    use std::arch::x86_64::_mm_stream_si64;
    for word in ring {
        // SAFETY: the word is valid for a write of its 8 bytes and aligned; SSE2 is part of x86-64. Only this thread
        // reads it, so the weak order of such stores shows nowhere.
        unsafe { _mm_stream_si64(std::ptr::from_mut(word).cast(), value.cast_signed()) };
    }
    Some(())
}

#[cfg(not(target_arch = "x86_64"))]
fn store_around(_: &mut [u64], _: u64) -> Option<()> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn stores_past_the_caches_write_what_plain_ones_write() {
        let mut words = [0u64; 4 * LINE_WORDS];
        assert_eq!(store_around(&mut words, 7), Some(()));
        assert_eq!(words, [7; 4 * LINE_WORDS]);
    }
}
