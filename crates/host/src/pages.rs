//! Address translation: loads from many pages, each of which waits for the one before. Untouched memory reads as the
//! kernel's page of zeros, so the pages need no memory, and their lines stay in the first level.

use super::settle::{Settled, jump, settled};
use memmap2::{Advice, MmapMut, MmapOptions};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::time::Instant;

/// Figures measured of the second level of translation; none for those that could not be measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TranslationFigures {
    /// Pages that the second level holds.
    pub second_entries: Option<Settled>,
    /// Nanoseconds of a walk to a small page.
    pub walk_ns: Option<Settled>,
    /// Large pages that the first level holds.
    pub large_entries: Option<Settled>,
    /// Nanoseconds of a walk to a large page.
    pub large_walk_ns: Option<Settled>,
}

const SMALL: usize = 4 << 10;
const LARGE: usize = 2 << 20;
/// Pages of a walk that the first level surely holds.
const FEW: u32 = 8;
const ROUNDS: usize = 6;
/// Loads of a round, at least.
const LOADS: usize = 1 << 13;

/// Measures pages of both sizes. If the kernel gives no large pages, the large ones cost the same as small ones.
pub fn measure() -> TranslationFigures {
    const SECOND: [u32; 12] = [256, 384, 512, 768, 1024, 1536, 2048, 2560, 3072, 4096, 6144, 8192];
    const FIRST: [u32; 11] = [8, 12, 16, 24, 32, 40, 48, 64, 96, 128, 160];
    let (Some(small), Some(large)) =
        (Pages::new(SMALL, 8192, Advice::NoHugePage), Pages::new(LARGE, 4096, Advice::HugePage))
    else {
        return TranslationFigures::default();
    };
    let held = |pages: &Pages, sizes: &[u32]| {
        let series: Vec<(u32, f64)> = sizes.iter().map(|count| (*count, pages.nanoseconds(*count))).collect();
        jump(&series, 0.15).map(f64::from)
    };
    let walk = |pages: &Pages, most: u32| Some((pages.nanoseconds(most) - pages.nanoseconds(FEW)).max(0.0));
    TranslationFigures {
        second_entries: settled(|| held(&small, &SECOND)),
        walk_ns: settled(|| walk(&small, 8192)),
        large_entries: settled(|| held(&large, &FIRST)),
        large_walk_ns: settled(|| walk(&large, 4096)),
    }
}

/// Pages without a write.
struct Pages {
    memory: MmapMut,
    words: usize,
    /// Zero, unknown to the compiler.
    no_bit: u64,
}

impl Pages {
    fn new(size: usize, count: usize, advice: Advice) -> Option<Pages> {
        let memory = MmapOptions::new().len(size * (count + 1)).no_reserve_swap().map_anon().ok()?;
        let _ = memory.advise(advice);
        Some(Pages { memory, words: size / 8, no_bit: black_box(0) })
    }

    /// Nanoseconds a load of `count` pages, a line of each, in an order that nothing foresees: the least of some rounds.
    fn nanoseconds(&self, count: u32) -> f64 {
        const LINES_A_PAGE: usize = 64;
        let all: &[u64] = bytemuck::cast_slice(&self.memory);
        // From the first border of a large page on.
        let from = all.as_ptr().align_offset(LARGE) % (self.memory.len() / 8).max(1);
        let from = if self.words * 8 == LARGE { from } else { 0 };
        let place = |page: u32| from + page as usize * self.words + page as usize % LINES_A_PAGE * 8;
        let places: Vec<usize> = super::streams::shuffled(count).into_iter().map(place).collect();
        let passes = (LOADS / places.len().max(1)).max(1);
        let mut least = f64::INFINITY;
        for _ in 0..=ROUNDS {
            let started = Instant::now();
            let mut read = 0;
            for _ in 0..passes {
                for place in &places {
                    read = all[place + (read & self.no_bit) as usize];
                }
            }
            black_box(read);
            least = least.min(started.elapsed().as_secs_f64() * 1e9 / (passes * places.len()) as f64);
        }
        least
    }
}
