//! Whether the core requests the lines of atomics ahead, as it does those of loads.

use super::chase::SEED;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Words that the first levels do not hold: 32 MiB.
const WORDS: usize = 1 << 22;
const ATOMICS: u64 = 1 << 14;
const ROUNDS: usize = 5;

/// Returns the time of an atomic on a word that the one before did not name, as a share of one on a word that it did:
/// those come one by one.
pub fn share_beside_others() -> f64 {
    let words: Vec<AtomicU64> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
    // A vector of zeros may be memory that nobody has touched, with one page behind all of it.
    words.iter().step_by(512).for_each(|word| word.store(0, Ordering::Relaxed));
    let [one_by_one, side_by_side] = [u64::MAX, 0].map(|named| seconds(&words, named));
    side_by_side / one_by_one
}

/// The least of several rounds. `named`: mask of the value that the next word is chosen by.
fn seconds(words: &[AtomicU64], named: u64) -> f64 {
    let (mut state, mut least) = (SEED, f64::INFINITY);
    let named = black_box(named);
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let mut value = 0;
        for _ in 0..ATOMICS {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            value = words[(state.wrapping_add(value & named) >> 20) as usize % WORDS].fetch_add(0, Ordering::Relaxed);
        }
        black_box(value);
        least = least.min(started.elapsed().as_secs_f64());
    }
    least
}
