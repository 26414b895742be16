//! Wait of a load behind a store to the same offset of another page: a running sum from one buffer into another, once
//! written just behind the read position within the page, and once far from it.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

const PAGE_WORDS: usize = 4096 / 8;
/// Words that are read and written: both buffers fit the first level.
const WORDS: usize = 2 * PAGE_WORDS;
/// Passes of a round: short, so that some rounds are not interrupted.
const PASSES: usize = 16;
const ROUNDS: usize = 300;
/// Words that the sum is written behind, modulo the page: near and far.
const NEAR: [usize; 4] = [1, 2, 4, 8];
const FAR: usize = PAGE_WORDS / 2;

/// Nanoseconds a load, on average over [`NEAR`]; 0 if the rounds show none.
pub fn wait_ns() -> f64 {
    let memory: Vec<AtomicU64> = (0..3 * WORDS + 2 * PAGE_WORDS).map(|_| AtomicU64::new(1)).collect();
    let (read, written) = memory.split_at(WORDS + PAGE_WORDS);
    let read = &read[..WORDS];
    // Both begin alike within their pages, as far as their distance is a whole number of pages. The least of several
    // rounds, as noise only adds; in turn, as it comes and goes.
    let mut far = f64::INFINITY;
    let mut near = NEAR.map(|_| f64::INFINITY);
    for _ in 0..ROUNDS {
        far = far.min(time(read, &written[FAR..][..WORDS]));
        for (least, behind) in near.iter_mut().zip(NEAR) {
            *least = least.min(time(read, &written[behind..][..WORDS]));
        }
    }
    (near.iter().sum::<f64>() / NEAR.len() as f64 - far).max(0.0)
}

/// Nanoseconds a load.
fn time(read: &[AtomicU64], written: &[AtomicU64]) -> f64 {
    let started = Instant::now();
    for _ in 0..PASSES {
        let mut sum = 0u64;
        for (from, to) in read.iter().zip(written) {
            sum = sum.wrapping_add(from.load(Ordering::Relaxed));
            to.store(sum, Ordering::Relaxed);
        }
        black_box(sum);
    }
    started.elapsed().as_secs_f64() * 1e9 / (PASSES * WORDS) as f64
}
