//! Turns over the same pages, timed.

use std::time::Instant;

const TURNS: usize = 200;
const ROUNDS: usize = 50;

/// Nanoseconds a page of so many: the least of several rounds, as noise only adds.
pub fn each(pages: usize, mut turn_over_pages: impl FnMut(usize)) -> f64 {
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        let started = Instant::now();
        (0..TURNS).for_each(&mut turn_over_pages);
        least = least.min(started.elapsed().as_secs_f64() * 1e9 / (TURNS * pages) as f64);
    }
    least
}
