//! Streams that a core fetches ahead: walks in which each load waits for the one before, in a predictable order. A
//! walk's order is fixed, not read from memory; a loaded value only delays the next load.

use super::chase::{Cycle, SEED, shuffle};
use super::settle::{Settled, settled};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::hint::black_box;
use std::time::Instant;

/// Figures measured of streams; none for those that could not be measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamFigures {
    /// Nanoseconds a line of a walk along memory, by where the lines lie: levels from the second on, then memory.
    pub line_ns: Vec<Settled>,
    /// Nanoseconds a line if each load waits for the one before.
    pub chained_line_ns: Vec<Settled>,
    /// Nanoseconds of each line of a walk that leaves lines out, if no load waits for another, by place.
    pub apart_line_ns: Vec<Settled>,
    /// Accesses after which the next line was fetched.
    pub trained_by: Option<Settled>,
    /// Longest distance, in lines, at which a load costs less than half of a random one.
    pub longest_stride_lines: Option<Settled>,
    /// Streams in turn of which a load costs less than half of a random one.
    pub followed: Option<Settled>,
    /// Longest distance, in lines, of a second load that costs less than half of a random one, behind the first at a random
    /// place: none where no such distance does.
    #[serde(default)]
    pub region_lines: Option<Settled>,
    /// Nanoseconds that a second load takes behind the first one at such distances.
    #[serde(default)]
    pub region_wait_ns: Option<Settled>,
    /// Remaining cost, at the border of a small page, of a stream's beginning.
    pub border: Option<Settled>,
}

const WORDS: usize = 8;
const LINES_A_PAGE: u32 = 64;
const ROUNDS: usize = 3;
/// Lines of a walk through memory.
const FAR_LINES: u32 = (2 << 20) / 64;
/// A load that costs less than this share of a random one was fetched ahead.
const FORESEEN: f64 = 0.5;

/// Walks through a buffer that is larger than all caches, each at a place of its own, and through small ones again and
/// again.
struct Walks<'a> {
    words: &'a [u64],
    next: Cell<usize>,
    /// Zero, unknown to the compiler.
    no_bit: u64,
}

impl<'a> Walks<'a> {
    fn new(cycle: &'a Cycle) -> Self {
        Walks { words: cycle.words(), next: Cell::new(0), no_bit: black_box(0) }
    }

    /// Nanoseconds a load through these lines, at a place that was not walked for long.
    fn chained(&self, lines: &[u32]) -> f64 {
        let words = self.place(lines);
        let started = Instant::now();
        let mut read = 0;
        for line in lines {
            read = words[*line as usize * WORDS + (read & self.no_bit) as usize];
        }
        let elapsed = started.elapsed();
        black_box(read);
        elapsed.as_secs_f64() * 1e9 / lines.len() as f64
    }

    /// Nanoseconds a line if no load waits for another.
    fn free(&self, lines: &[u32]) -> f64 {
        let words = self.place(lines);
        let started = Instant::now();
        let mut sum = 0u64;
        for line in lines {
            sum = sum.wrapping_add(words[*line as usize * WORDS]);
        }
        let elapsed = started.elapsed();
        black_box(sum);
        elapsed.as_secs_f64() * 1e9 / lines.len() as f64
    }

    /// Nanoseconds of a load through each of these lines and of one through the line `apart` from it, each of which waits
    /// for the one before.
    fn pairs(&self, lines: &[u32], apart: i32) -> f64 {
        let words = self.place(lines);
        let started = Instant::now();
        let mut read = 0;
        for line in lines {
            let word = |line: u32, read: u64| words[line as usize * WORDS + (read & self.no_bit) as usize];
            read = word(line.wrapping_add_signed(apart), word(*line, read));
        }
        let elapsed = started.elapsed();
        black_box(read);
        elapsed.as_secs_f64() * 1e9 / lines.len() as f64
    }

    /// As many words as the lines need, behind those that the walk before had.
    fn place(&self, lines: &[u32]) -> &'a [u64] {
        const LARGE_PAGE_WORDS: usize = (2 << 20) / 8;
        let most = lines.iter().copied().max().unwrap_or(0) as usize;
        let needed = ((most + 1) * WORDS).next_multiple_of(LARGE_PAGE_WORDS).min(self.words.len());
        let from = if self.next.get() + needed > self.words.len() { 0 } else { self.next.get() };
        self.next.set(from + needed);
        &self.words[from..]
    }

    /// The least of some rounds.
    fn least(&self, lines: &[u32]) -> f64 {
        (0..ROUNDS).map(|_| self.chained(lines)).fold(f64::INFINITY, f64::min)
    }
}

/// Measures streams. `near`: buffers that levels from the second on hold; `far`: one that no cache holds.
pub fn measure(near: &[Cycle], far: &Cycle) -> StreamFigures {
    let walks = Walks::new(far);
    let (line_ns, chained_line_ns) = lines(near, &walks).into_iter().unzip();
    StreamFigures {
        line_ns,
        chained_line_ns,
        apart_line_ns: apart(near, &walks),
        trained_by: settled(|| trained_by(&walks)),
        longest_stride_lines: settled(|| longest_stride(&walks)),
        followed: settled(|| followed(&walks)),
        region_lines: settled(|| Some(region(&walks)?.0)),
        region_wait_ns: settled(|| Some(region(&walks)?.1)),
        border: settled(|| border(&walks)),
    }
}

/// Measures a line of a walk without and with waits, by place of the lines.
fn lines(near: &[Cycle], far: &Walks<'_>) -> Vec<(Settled, Settled)> {
    let of = |walks: &Walks<'_>, lines: u32, rounds: usize| {
        let along: Vec<u32> = (0..lines).collect();
        let least = |walk: &dyn Fn() -> f64| Some((0..rounds).map(|_| walk()).fold(f64::INFINITY, f64::min));
        Some((settled(|| least(&|| walks.free(&along)))?, settled(|| least(&|| walks.chained(&along)))?))
    };
    let levels = near.iter().map_while(|cycle| {
        let walks = Walks::new(cycle);
        let lines = u32::try_from(walks.words.len() / WORDS).ok()?;
        of(&walks, lines, 2 * ROUNDS)
    });
    levels.chain(of(far, FAR_LINES, ROUNDS)).collect()
}

/// Measures a line of walks through every third line, by place of the lines: more than a neighbour apart, and near enough
/// for any core to fetch ahead. A level's buffer is walked three times, so that all of it is used.
fn apart(near: &[Cycle], far: &Walks<'_>) -> Vec<Settled> {
    let of = |walks: &Walks<'_>, lines: Vec<u32>, rounds: usize| {
        settled(|| Some((0..rounds).map(|_| walks.free(&lines)).fold(f64::INFINITY, f64::min)))
    };
    let levels = near.iter().map_while(|cycle| {
        let walks = Walks::new(cycle);
        let lines = u32::try_from(walks.words.len() / WORDS).ok()?;
        of(&walks, (0..3).flat_map(|first| (first..lines).step_by(3)).collect(), 2 * ROUNDS)
    });
    levels.chain(of(far, (0..FAR_LINES).map(|line| line * 3).collect(), ROUNDS)).collect()
}

/// Numbers below `count` in an order that nothing foresees.
pub(super) fn shuffled(count: u32) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count).collect();
    let mut state = SEED;
    shuffle(&mut order, &mut state);
    order
}

/// The first lines of many pages, page after page in an order that nothing foresees.
fn pages(count: u32, lines: u32) -> Vec<u32> {
    shuffled(count).into_iter().flat_map(|page| (0..lines).map(move |line| page * LINES_A_PAGE + line)).collect()
}

/// A load of a line of a random page, another line of each.
fn random(walks: &Walks<'_>) -> f64 {
    let lines: Vec<u32> =
        shuffled(1024).into_iter().map(|page| page * LINES_A_PAGE + page * 7 % LINES_A_PAGE).collect();
    walks.least(&lines)
}

fn trained_by(walks: &Walks<'_>) -> Option<f64> {
    let whole = |lines: u32| walks.least(&pages(256, lines)) * f64::from(lines);
    let alone = whole(1);
    let mut before = alone;
    for lines in 2..=16 {
        let now = whole(lines);
        if now - before < FORESEEN * alone {
            return Some(f64::from(lines - 1));
        }
        before = now;
    }
    None
}

/// Returns the longest distance of two lines of which the second comes along, and the nanoseconds that it takes behind the
/// first one, on average, by pairs in random places: lines of the middle of a page.
fn region(walks: &Walks<'_>) -> Option<(f64, f64)> {
    const PLACES: u32 = 2048;
    const MOST: i32 = 8;
    let lines: Vec<u32> = shuffled(PLACES).iter().map(|place| place * LINES_A_PAGE / 2 + LINES_A_PAGE / 4).collect();
    let least = |apart: i32| (0..ROUNDS).map(|_| walks.pairs(&lines, apart)).fold(f64::INFINITY, f64::min);
    let alone = least(0);
    let behind = |apart: i32| (least(apart) - alone).max(0.0);
    let both = (1..=MOST).map(|apart| [behind(apart), behind(-apart)]);
    let along: Vec<_> = both.take_while(|both| both.iter().all(|ns| *ns < FORESEEN * alone)).collect();
    let count = along.len() as f64;
    (count > 0.0).then(|| (count, along.as_flattened().iter().sum::<f64>() / (2.0 * count)))
}

fn longest_stride(walks: &Walks<'_>) -> Option<f64> {
    const STRIDES: [u32; 12] = [1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256];
    const LOADS: u32 = 1024;
    let most = FORESEEN * random(walks);
    // The least of more rounds, and no end at the first that fails: other programs' memory traffic lasts for some
    // rounds.
    let cost = |stride: u32| {
        let lines: Vec<u32> = (0..LOADS).map(|i| i * stride).collect();
        walks.least(&lines).min(walks.least(&lines))
    };
    STRIDES.into_iter().rfind(|stride| cost(*stride) < most).map(f64::from)
}

fn followed(walks: &Walks<'_>) -> Option<f64> {
    const STREAMS: [u32; 11] = [1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96];
    let most = FORESEEN * random(walks);
    let foreseen = |streams: &u32| {
        let pages = shuffled(*streams);
        let turns = (0..LINES_A_PAGE).flat_map(|line| pages.iter().map(move |page| page * LINES_A_PAGE + line));
        walks.least(&turns.collect::<Vec<_>>()) < most
    };
    STREAMS.into_iter().take_while(foreseen).last().map(f64::from)
}

/// The cost of a border of a page within a long walk over that of the beginning of a page where nothing foresaw it.
fn border(walks: &Walks<'_>) -> Option<f64> {
    const PAGES: u32 = 256;
    const HALF: u32 = LINES_A_PAGE / 2;
    let whole = |lines: &[u32]| walks.least(lines) * lines.len() as f64 / f64::from(PAGES);
    let (page, half) = (whole(&pages(PAGES, LINES_A_PAGE)), whole(&pages(PAGES, HALF)));
    let within = (page - half) * 2.0;
    let along = whole(&(0..PAGES * LINES_A_PAGE).collect::<Vec<_>>());
    (page > within).then(|| ((along - within) / (page - within)).clamp(0.0, 1.0))
}
