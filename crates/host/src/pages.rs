//! Address translation: loads from many pages. Untouched memory reads as the kernel's page of zeros, so that very many
//! pages need no memory, and their lines stay in the first level. Walks are measured on pages that were written to.

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
    /// Nanoseconds from a walk to a small page to the next one, where neither waits for the other.
    #[serde(default)]
    pub apart_walk_ns: Option<Settled>,
    /// Nanoseconds from one small piece of a large page to the next, where neither waits for the other.
    #[serde(default)]
    pub large_apart_walk_ns: Option<Settled>,
    /// Nanoseconds of a walk to a small page of so many tables that the levels above them are walked too.
    #[serde(default)]
    pub far_walk_ns: Option<Settled>,
    /// Nanoseconds from such a walk to the next one, where neither waits for the other.
    #[serde(default)]
    pub far_apart_walk_ns: Option<Settled>,
    /// Large pages that the first level holds.
    pub large_entries: Option<Settled>,
    /// Nanoseconds of a walk to a large page.
    pub large_walk_ns: Option<Settled>,
    /// What a small piece of a large page takes, as a share of a walk to a small page.
    #[serde(default)]
    pub large_pages_split: Option<Settled>,
}

const LINE: usize = 64;
const SMALL: usize = 4 << 10;
const LARGE: usize = 2 << 20;
/// Pages of a walk that the first level surely holds.
const FEW: u32 = 8;
/// Pages that are written to and hold no other data: more than a second level holds.
const WRITTEN: u32 = 8192;
/// Far pages in a row: their entries share a line of the page table.
const IN_A_ROW: usize = 8;
/// Far pages of one table: 8,192 pages have 128 tables, several times as many as a core holds the way to.
const OF_A_TABLE: usize = 64;
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
    let of_zeros = |pages: &Pages, most: u32| Some((pages.nanoseconds(most) - pages.nanoseconds(FEW)).max(0.0));
    let second_entries = settled(|| held(&small, &SECOND));
    let large_entries = settled(|| held(&large, &FIRST));
    let [pages, pieces] = [Advice::NoHugePage, Advice::HugePage].map(|advice| Written::new(advice, SMALL));
    let (packed, far) = (Written::new(Advice::NoHugePage, LINE), Written::far());
    let (Some(pages), Some(pieces), Some(packed)) = (pages, pieces, packed) else {
        return TranslationFigures { second_entries, large_entries, ..TranslationFigures::default() };
    };
    let walk = |written: &Written| (written.one_by_one() - packed.one_by_one()).max(0.0);
    let apart = |written: &Written| Some((written.side_by_side() - packed.side_by_side()).max(0.0));
    let walk_ns = settled(|| Some(walk(&pages)));
    let of_a_walk = |ns: f64| walk_ns.map(|walk| ns / walk.value.max(f64::MIN_POSITIVE));
    TranslationFigures {
        second_entries,
        walk_ns,
        apart_walk_ns: settled(|| apart(&pages)),
        large_apart_walk_ns: settled(|| apart(&pieces)),
        far_walk_ns: settled(|| far.as_ref().map(walk)),
        far_apart_walk_ns: settled(|| far.as_ref().and_then(apart)),
        large_entries,
        large_walk_ns: settled(|| of_zeros(&large, 4096)),
        large_pages_split: settled(|| of_a_walk(walk(&pieces))),
    }
}

/// Lines that were written to, at one distance. A hypervisor translates their addresses once more, and has an entry for
/// each page: for a page of zeros, which all untouched memory shares, it has one.
struct Written {
    memory: MmapMut,
    /// Words of the lines, in an order that nothing foresees.
    words: Vec<usize>,
    /// Zero, unknown to the compiler.
    no_bit: u64,
}

impl Written {
    /// A line of each `distance` bytes, and never at one offset of its page.
    fn new(advice: Advice, distance: usize) -> Option<Written> {
        let line = |number: usize| number * distance + number * LINE % distance;
        Self::at(advice, WRITTEN as usize * distance, line)
    }

    /// A line of each page of rows that are far apart.
    fn far() -> Option<Written> {
        let rows = OF_A_TABLE / IN_A_ROW;
        let page = |number: usize| {
            let (table, row) = (number / OF_A_TABLE, number / IN_A_ROW % rows);
            table * LARGE + row * (LARGE / rows) + number % IN_A_ROW * SMALL
        };
        let bytes = WRITTEN as usize / OF_A_TABLE * LARGE;
        Self::at(Advice::NoHugePage, bytes, |number| page(number) + number * LINE % SMALL)
    }

    /// Lines at these places of so many bytes.
    fn at(advice: Advice, bytes: usize, line: impl Fn(usize) -> usize) -> Option<Written> {
        let memory = MmapOptions::new().len(bytes + LARGE).no_reserve_swap().map_anon().ok()?;
        let _ = memory.advise(advice);
        let from = memory.as_ptr().align_offset(LARGE).min(LARGE);
        let word = |number: u32| (from + line(number as usize)) / 8;
        let words = super::streams::shuffled(WRITTEN).into_iter().map(word).collect();
        let mut written = Written { memory, words, no_bit: black_box(0) };
        let all: &mut [u64] = bytemuck::cast_slice_mut(&mut written.memory);
        written.words.iter().for_each(|word| all[*word] = written.no_bit);
        Some(written)
    }

    /// Nanoseconds a load that waits for the one before.
    fn one_by_one(&self) -> f64 {
        chained(bytemuck::cast_slice(&self.memory), &self.words, self.no_bit)
    }

    /// Nanoseconds a load that waits for no other.
    fn side_by_side(&self) -> f64 {
        let all: &[u64] = bytemuck::cast_slice(&self.memory);
        least(&self.words, || self.words.iter().fold(0, |sum: u64, word| sum.wrapping_add(all[*word])))
    }
}

/// Nanoseconds a load of these words, each of which waits for the one before. `no_bit` is zero, unknown to the compiler.
fn chained(all: &[u64], words: &[usize], no_bit: u64) -> f64 {
    least(words, || words.iter().fold(0, |read, word| all[word + (read & no_bit) as usize]))
}

/// Nanoseconds a load, the least of some rounds of passes over these words.
fn least(words: &[usize], pass: impl Fn() -> u64) -> f64 {
    let passes = (LOADS / words.len().max(1)).max(1);
    let round = |_| {
        let started = Instant::now();
        (0..passes).for_each(|_| _ = black_box(pass()));
        started.elapsed().as_secs_f64() * 1e9 / (passes * words.len()) as f64
    };
    (0..=ROUNDS).map(round).fold(f64::INFINITY, f64::min)
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
        chained(all, &places, self.no_bit)
    }
}
