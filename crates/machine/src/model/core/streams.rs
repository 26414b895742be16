//! Lines that a core fetches ahead: they follow one another at one distance.
//!
//! A distance just beyond the longest still helps: the exposed share of the latency grows evenly, up to all of it at
//! some times the longest distance. Else a row that was made one line longer to get its columns out of each other's way
//! would lose more at this bound than it gains.
//!
//! Some cores fetch what lies around a missed line as well, where lines at the same distances were needed around those
//! that the instruction missed before: here, the latest two times (AMD, Software Optimization Guide 57647: the L1 region
//! prefetcher; Somogyi and others, Spatial Memory Streaming, ISCA 2006).
//!
//! Accesses of each page are a stream of their own, so that random ones beside it leave it alone. It goes on in another
//! page of its block, and one whose distance is longer than a page begins with its first two pages.

use super::{Ticks, ticks};
use nearmiss_record::machine::{Region, Streams as Figures};

/// All of a latency, in the unit of [`Streams::shown`].
pub(super) const SHOWN: u64 = 1 << 16;
/// Times the longest distance from which on nothing is fetched ahead.
const FADED: i64 = 32;

/// log₂ of the lines of a page.
const PAGE_LINES_LOG2: u32 = 6;
/// Lines of a stream until its next page is foreseen, at least.
const STEPS_TO_NEXT_PAGE: u32 = 2;

/// Accesses of one page of memory.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    line: u64,
    stride: i64,
    /// Another distance, one line off: elements of 112 bytes lie one line and two lines apart.
    other: i64,
    /// Accesses in a row at these distances.
    steps: u32,
    /// When the first line that is fetched ahead was requested.
    since: Ticks,
    used: u64,
}

impl Stream {
    /// A stream of no accesses.
    const NONE: Stream = Stream { line: u64::MAX, stride: 0, other: 0, steps: 0, since: 0, used: 0 };

    fn page(&self) -> u64 {
        self.line >> PAGE_LINES_LOG2
    }

    /// Whether a line lies at one of its distances.
    fn expects(&self, line: u64) -> bool {
        let stride = line.wrapping_sub(self.line) as i64;
        self.steps > 0 && (stride == self.stride || stride == self.other)
    }

    /// Whether a distance goes on with the stream.
    fn takes(&mut self, stride: i64) -> bool {
        if self.steps > 0 && self.other == self.stride && self.stride * stride > 0 && self.stride.abs_diff(stride) == 1
        {
            self.other = stride;
        }
        stride == self.stride || stride == self.other
    }
}

/// An access that missed the first level, as what follows a stream or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Foreseen {
    /// The exposed part of its latency, of [`SHOWN`]; 0: the line had been fetched ahead.
    pub shown: u64,
    /// Whether the line was fetched ahead in a stream that leaves lines out.
    pub apart: bool,
    /// When it was requested, at the earliest.
    pub since: Ticks,
    /// Missed line with which it was fetched, and the ticks that it takes behind that one.
    pub with: Option<(u64, Ticks)>,
}

impl Foreseen {
    /// No access before gave reason to fetch it.
    pub const NOT: Foreseen = Foreseen { shown: SHOWN, apart: false, since: 0, with: None };
}

/// Missed lines around which others are fetched, at a time.
const REGIONS: usize = 32;

/// Most lines on either side of a missed one that a mask has bits for.
const MOST_AROUND: i64 = 15;

/// Lines around those that an instruction missed: a bit for each distance.
#[derive(Clone, Copy, Debug, Default)]
struct Around {
    /// Around the latest one, so far.
    latest: u32,
    /// Around the two before.
    before: [u32; 2],
}

/// Lines around those that were just missed.
#[derive(Clone, Debug)]
struct Regions {
    /// Lines on either side.
    lines: i64,
    /// Ticks that a line takes behind the missed one.
    wait: Ticks,
    /// The latest ones that were missed, with nothing missed around them, and by which instruction.
    missed: [(u64, u32); REGIONS],
    next: usize,
    /// By instruction.
    around: Vec<Around>,
}

impl Regions {
    fn new(figures: Region) -> Self {
        let (lines, wait) = (i64::from(figures.lines).min(MOST_AROUND), ticks(figures.wait_cycles.into()));
        Regions { lines, wait, missed: [(u64::MAX, 0); REGIONS], next: 0, around: Vec::new() }
    }

    /// An instruction missed a line. Returns the missed line with which it was fetched, and its ticks behind that.
    fn fetched_with(&mut self, line: u64, insn: u32) -> Option<(u64, Ticks)> {
        let distance = |missed: u64| line.wrapping_sub(missed) as i64;
        let is_around = |missed: &&(u64, u32)| missed.0 != line && distance(missed.0).abs() <= self.lines;
        let Some((missed, first)) = self.missed.iter().find(is_around).copied() else {
            self.begin(line, insn);
            return None;
        };
        let bit = 1 << (distance(missed) + MOST_AROUND);
        let around = self.around.get_mut(first as usize)?;
        around.latest |= bit;
        (around.before[0] & around.before[1] & bit != 0).then_some((missed, self.wait))
    }

    /// A line was missed with nothing missed around it.
    fn begin(&mut self, line: u64, insn: u32) {
        self.missed[self.next % REGIONS] = (line, insn);
        self.next += 1;
        let at = insn as usize;
        if at >= self.around.len() {
            self.around.resize(at + 1, Around::default());
        }
        let around = &mut self.around[at];
        *around = Around { latest: 0, before: [around.latest, around.before[0]] };
    }
}

/// Streams of one core.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    followed: Vec<Stream>,
    trained_by: u32,
    longest_stride: i64,
    /// log₂ of the lines of a block, which no stream leaves.
    block_lines_log2: u32,
    regions: Option<Regions>,
    clock: u64,
}

impl Streams {
    pub fn new(figures: &Figures) -> Self {
        Streams {
            followed: vec![Stream::NONE; figures.followed.max(1) as usize],
            trained_by: figures.trained_by.max(1),
            longest_stride: i64::from(figures.longest_stride_lines),
            block_lines_log2: figures.within.0.max(4096).ilog2() - 6,
            regions: figures.region.map(Regions::new),
            clock: 0,
        }
    }

    /// An access of an instruction missed the first level `now`.
    pub fn foreseen(&mut self, vaddr: u64, insn: u32, now: Ticks) -> Foreseen {
        let with = self.regions.as_mut().and_then(|regions| regions.fetched_with(vaddr >> 6, insn));
        let Some((stride, since)) = self.continued(vaddr, now) else {
            return Foreseen { with, ..Foreseen::NOT };
        };
        let beyond = stride.abs() - self.longest_stride;
        let faded = (FADED - 1) * self.longest_stride;
        let shown = (beyond.clamp(0, faded) * SHOWN as i64 / faded.max(1)) as u64;
        Foreseen { shown, apart: shown == 0 && stride.abs() > 1, since, with: None }
    }

    /// The distance of the stream that an access continues, where it was foreseen, and since when.
    fn continued(&mut self, vaddr: u64, now: Ticks) -> Option<(i64, Ticks)> {
        let line = vaddr >> 6;
        self.clock += 1;
        let Some(at) = self.stream_of(line) else {
            self.begin(line, now);
            return None;
        };
        let stream = &mut self.followed[at];
        stream.used = self.clock;
        let stride = line.wrapping_sub(stream.line) as i64;
        if stride == 0 {
            return (stream.steps >= self.trained_by).then_some((stream.stride, stream.since));
        }
        let is_next_page = stream.page() != line >> PAGE_LINES_LOG2;
        stream.line = line;
        if !stream.takes(stride) {
            (stream.stride, stream.other) = (stride, stride);
            stream.steps = u32::from(stride.abs() <= FADED * self.longest_stride);
            stream.since = now;
            return None;
        }
        if stream.steps == 0 {
            return None;
        }
        stream.steps = stream.steps.saturating_add(1);
        let least = if is_next_page { self.trained_by.max(STEPS_TO_NEXT_PAGE) } else { self.trained_by };
        if stream.steps <= least {
            stream.since = now;
        }
        (stream.steps > least).then_some((stride, stream.since))
    }

    /// The stream that a line belongs to: one of its page that expects it, one of its block, or any of its page.
    fn stream_of(&self, line: u64) -> Option<usize> {
        let own = self.followed.iter().position(|stream| stream.page() == line >> PAGE_LINES_LOG2);
        if self.has_pages_apart() && own.is_none_or(|own| !self.followed[own].expects(line)) {
            let goes_on = |stream: &Stream| stream.expects(line) && self.shares_block(stream, line);
            return self.followed.iter().position(goes_on).or(own);
        }
        own
    }

    /// A line begins a stream, the one used longest ago ends. If it is not the block's first, they are a distance apart.
    fn begin(&mut self, line: u64, now: Ticks) {
        let latest = self.followed.iter().filter(|stream| self.has_pages_apart() && self.shares_block(stream, line));
        let stride = latest.max_by_key(|stream| stream.used).map_or(0, |latest| line.wrapping_sub(latest.line) as i64);
        let steps = u32::from(stride != 0 && stride.abs() <= FADED * self.longest_stride);
        if let Some(oldest) = self.followed.iter_mut().min_by_key(|stream| stream.used) {
            *oldest = Stream { line, stride, other: stride, steps, since: now, used: self.clock };
        }
    }

    fn has_pages_apart(&self) -> bool {
        self.block_lines_log2 > PAGE_LINES_LOG2
    }

    fn shares_block(&self, stream: &Stream, line: u64) -> bool {
        stream.line >> self.block_lines_log2 == line >> self.block_lines_log2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearmiss_record::units::Bytes;

    impl Streams {
        fn covers(&mut self, vaddr: u64) -> bool {
            self.foreseen(vaddr, 1, 0).shown == 0
        }
    }

    #[test]
    fn the_visible_part_of_a_latency_grows_evenly_beyond_the_longest_distance() {
        let shown = |stride: i64| {
            let mut s = Streams { block_lines_log2: 24, ..streams(4) };
            (0..7).map(|n| s.foreseen((0x10_0000 + n * stride * 64) as u64, 1, 0).shown).last()
        };
        let of = |steps: u64| Some(steps * SHOWN / (31 * 8));
        assert_eq!([shown(8), shown(9), shown(-9), shown(36)], [of(0), of(1), of(1), of(28)]);
        assert_eq!([shown(255), shown(256), shown(257)], [of(247), Some(SHOWN), Some(SHOWN)]);
    }

    fn streams(followed: u32) -> Streams {
        Streams::new(&Figures {
            followed,
            trained_by: 2,
            longest_stride_lines: 8,
            within: Bytes(4096),
            line_cycles: vec![],
            apart_line_cycles: vec![],
            region: None,
        })
    }

    #[test]
    fn a_stream_is_covered_from_its_fourth_line_on_and_within_its_page() {
        let mut s = streams(4);
        let covered: Vec<bool> = (0..66).map(|line| s.covers(0x1000 + line * 64)).collect();
        let uncovered: Vec<usize> = (0..66).filter(|at| !covered[*at]).collect();
        assert_eq!(uncovered, [0, 1, 2, 64, 65], "the second page trains again");
    }

    #[test]
    fn strides_are_followed_both_ways_and_no_further_than_the_limit() {
        let covered = |stride: i64| {
            let mut s = streams(4);
            (0..7).filter(|n| s.covers((0x10_0000 + 2048 + n * stride * 64) as u64)).count()
        };
        assert_eq!(
            [covered(2), covered(-3), covered(8), covered(9)],
            [4, 4, 1, 0],
            "seven steps of eight lines leave the page"
        );
        let mut random = streams(4);
        assert!([3u64, 9, 1, 30, 12, 40].iter().all(|line| !random.covers(line * 64)));
    }

    #[test]
    fn elements_of_one_size_are_a_stream_on_any_lines() {
        let covered = |bytes: u64| {
            let mut s = streams(4);
            let all = (0..18).map(|n| s.foreseen(0x10_0000 + n * bytes, 1, 0));
            let apart: Vec<bool> = all.map(|foreseen| foreseen.shown == 0 && foreseen.apart).collect();
            (s.covers(0x10_0000 + 18 * bytes), apart.iter().filter(|apart| **apart).count())
        };
        // The eighth step of 72 bytes is one of two lines; of 112 bytes three in four are.
        assert_eq!(
            [covered(64), covered(72), covered(112), covered(208)],
            [(true, 0), (true, 2), (true, 11), (true, 15)]
        );
        let mut growing = streams(4);
        let lines = [0, 1, 3, 6, 10, 15, 21, 28];
        assert!(!lines.iter().any(|line| growing.covers(line * 64)), "steps of two lengths, not of more");
    }

    #[test]
    fn random_accesses_beside_a_stream_leave_it_alone() {
        let mut s = Streams { block_lines_log2: 15, ..streams(8) };
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 49 << 6
        };
        let (mut covered, mut by_chance) = (0, 0);
        for line in 0..1000 {
            covered += u32::from(s.covers(line * 64));
            by_chance += (0..3).filter(|_| s.covers(random())).count();
        }
        assert!(covered > 980, "{covered}: but for random accesses in its page");
        assert!(by_chance < 10, "{by_chance}");
    }

    #[test]
    fn lines_around_a_missed_one_come_with_it_once_they_did_twice() {
        let mut s = Streams { regions: Some(Regions::new(Region { lines: 4, wait_cycles: 0 })), ..streams(4) };
        let mut visit = |place: u64, distances: [i64; 2]| {
            let first = s.foreseen(place << 20, 1, 0);
            assert_eq!(first, Foreseen::NOT);
            let lines = distances.map(|distance| (place << 20).wrapping_add_signed(distance * 64));
            lines.map(|line| s.foreseen(line, 2, 0).with.map(|(with, _)| with << 6 == place << 20))
        };
        assert_eq!([7, 3].map(|place| visit(place, [2, -3])), [[None; 2]; 2]);
        assert_eq!(visit(9, [2, -3]), [Some(true); 2]);
        assert_eq!(visit(4, [2, -5]), [Some(true), None], "and one too far");
        assert_eq!(visit(6, [1, 2]), [None, Some(true)]);
        assert_eq!(visit(2, [1, -3]), [None, None], "each only once or not lately");
    }

    #[test]
    fn more_streams_than_are_followed_cover_nothing() {
        for (pages, covers) in [(4, true), (5, false)] {
            let mut s = streams(4);
            let last =
                (0..10).flat_map(|line| (0..pages).map(move |page| page * 4096 + line * 64)).map(|a| s.covers(a));
            assert_eq!(last.last().unwrap(), covers, "{pages} pages");
        }
    }
}
