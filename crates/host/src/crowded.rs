//! Cost of stores and loads to lines that push one another out of the first level: they go in turn to the beginnings of
//! more pages than any first level has ways.

use super::turns::each;
use std::hint::black_box;

const PAGE_WORDS: usize = 4096 / 8;
const LINE_WORDS: usize = 64 / 8;
/// So many more pages than the ways of any first level of data that no line is requested again while it is on its way:
/// of 32 lines a third came for nothing on a Zen 5, from 64 on none. Few enough that the second level holds the lines,
/// and the first level of translation the pages.
const PAGES: usize = 64;
/// Lines of one set that every first level of data holds.
const FEWEST: usize = 8;
/// Sets that take turns.
const SETS: usize = 16;

/// Nanoseconds a store to an evicted line.
pub fn store_nanoseconds() -> f64 {
    stores_to(PAGES, &mut vec![1u64; PAGES * PAGE_WORDS])
}

/// Nanoseconds a store to an evicted line, by the stores to the first of these pages in turn.
fn stores_to(pages: usize, words: &mut [u64]) -> f64 {
    let nanoseconds = each(PAGES, |turn| {
        for page in words.chunks_exact_mut(PAGE_WORDS).take(pages) {
            page[0] = turn as u64;
        }
        black_box(&mut *words);
    });
    nanoseconds * PAGES as f64 / pages as f64
}

/// Returns the lines of one set at which a store takes half of its cost at the most lines.
pub fn half_lines() -> f64 {
    let mut words = vec![1u64; PAGES * PAGE_WORDS];
    let half = stores_to(PAGES, &mut words) / 2.0;
    let takes_half = (FEWEST..PAGES).step_by(2).find(|lines| stores_to(*lines, &mut words) >= half);
    takes_half.unwrap_or(PAGES) as f64
}

/// Nanoseconds a store to an evicted line, with the stores to sixteen sets in turn.
pub fn store_beside_nanoseconds() -> f64 {
    let mut words = vec![1u64; PAGES * PAGE_WORDS];
    let nanoseconds = each(PAGES, |turn| {
        for page in words.chunks_exact_mut(PAGE_WORDS) {
            for first in page.iter_mut().step_by(PAGE_WORDS / SETS) {
                *first = turn as u64;
            }
        }
        black_box(&mut words);
    });
    nanoseconds / SETS as f64
}

/// Nanoseconds an addition to memory on an evicted line.
pub fn addition_nanoseconds() -> f64 {
    let mut words = vec![1u64; PAGES * PAGE_WORDS];
    each(PAGES, |turn| {
        for page in words.chunks_exact_mut(PAGE_WORDS) {
            page[0] = page[0].wrapping_add(turn as u64);
        }
        black_box(&mut words);
    })
}

/// Nanoseconds that a load takes more than a hit, if nothing waits for its value.
pub fn fill_nanoseconds() -> f64 {
    loaded(PAGE_WORDS) - loaded(PAGE_WORDS + LINE_WORDS)
}

fn loaded(pitch_words: usize) -> f64 {
    let words = vec![1u64; PAGES * pitch_words];
    each(PAGES, |_| {
        let words = black_box(&words);
        black_box(words.chunks_exact(pitch_words).fold(0u64, |sum, page| sum.wrapping_add(page[0])));
    })
}
