//! How the second level gives its lines: consecutive lines from different banks, each with a turn of its own.

use super::turns::each;
use std::hint::black_box;

const PAGE_WORDS: usize = 4096 / 8;
const LINE_WORDS: usize = 64 / 8;
/// More pages than the ways of any first level of data, few enough for the second one.
const PAGES: usize = 40;
/// Distances in lines; no second level is known to have more banks than the largest.
pub const DISTANCES: [usize; 4] = [1, 2, 4, 8];

/// Nanoseconds from one line to the next with loads of lines at this distance, in all pages.
pub fn loads_nanoseconds(distance: usize) -> f64 {
    let words = vec![1u64; PAGES * PAGE_WORDS];
    let nanoseconds = each(PAGES, |_| {
        let lines = black_box(&words).chunks_exact(LINE_WORDS * distance);
        black_box(lines.fold(0u64, |sum, line| sum.wrapping_add(line[0])));
    });
    nanoseconds / (PAGE_WORDS / LINE_WORDS / distance) as f64
}

/// Nanoseconds from one line to the next with additions to lines at this distance, in all pages.
pub fn additions_nanoseconds(distance: usize) -> f64 {
    let mut words = vec![1u64; PAGES * PAGE_WORDS];
    let nanoseconds = each(PAGES, |turn| {
        for line in words.chunks_exact_mut(LINE_WORDS * distance) {
            line[0] = line[0].wrapping_add(turn as u64);
        }
        black_box(&mut words);
    });
    nanoseconds / (PAGE_WORDS / LINE_WORDS / distance) as f64
}
