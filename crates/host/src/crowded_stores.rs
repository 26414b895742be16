//! What a store takes whose line the stores before it push out of the first level: stores in turn to the beginnings of more
//! pages than any first level has ways.

use std::hint::black_box;
use std::time::Instant;

const PAGE_WORDS: usize = 4096 / 8;
/// More than the ways of any first level of data; few enough that the second level holds the lines.
const PAGES: usize = 32;
const TURNS: usize = 200;
const ROUNDS: usize = 50;

/// Nanoseconds a store: the least of several rounds, as noise only adds.
pub fn nanoseconds() -> f64 {
    let mut words = vec![1u64; PAGES * PAGE_WORDS];
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        let started = Instant::now();
        for turn in 0..TURNS {
            for page in words.chunks_exact_mut(PAGE_WORDS) {
                page[0] = turn as u64;
            }
            black_box(&mut words);
        }
        least = least.min(started.elapsed().as_secs_f64() * 1e9 / (TURNS * PAGES) as f64);
    }
    least
}
