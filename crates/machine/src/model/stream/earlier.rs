//! Lines that a recording shows for the first time behind a pause: the program may have used them before.
//!
//! Nobody saw which caches still had such a line. A cache's chance is its share of the lines that this phase of the
//! program uses. The first level has none: it is filled anew within moments. The number of the lines is estimated from
//! the lines of the part under way: each is used in so many *occasions*, stretches of references, of all that were
//! recorded, and the lines used in one and in two of them show how many were not seen at all (Chao, Biometrics 43:783,
//! 1987, bias-corrected). A line that is used across the end of an occasion was not come back to: two occasions in a row
//! count as one, and a longer row as many. A program that comes back to few lines has them all in a cache; one that
//! streams comes back to none, and all are read from memory.

use crate::model::quick_map::QuickMap;
use nearmiss_record::machine::Machine;
use nearmiss_record::model::MAX_LEVELS;
use rustc_hash::FxHashSet;

/// One line of so many is counted.
const SAMPLE_LOG2: u32 = 4;
/// A line that is used in so many occasions in a row is in use all the time.
const ALWAYS: u32 = 3;
/// References of the first occasion of a part; each is twice as long as the one before, up to the longest.
const SHORTEST: u64 = 1 << 10;
const LONGEST: u64 = 1 << 14;
/// 2^64 / golden ratio: the upper bits of a product are those of a hash (Knuth 6.4).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Occasions in which a sampled line was used.
#[derive(Clone, Copy, Default)]
struct Uses {
    part: u32,
    latest: u32,
    /// Occasions in a row up to the latest.
    row: u32,
    occasions: u32,
}

/// How many lines the phase under way uses, and which of those that come up now were in a cache.
pub(in crate::model) struct Earlier {
    line_log2: u32,
    /// Lines that a cache of each level holds; none of the first.
    capacity_lines: [f64; MAX_LEVELS],
    /// Index of the last level.
    outermost: usize,
    part: u32,
    occasion: u32,
    /// References left of the occasion, and its length.
    left: u64,
    length: u64,
    lines: QuickMap<u64, Uses>,
    /// Sampled lines of this part.
    of_part: u64,
    /// Sampled lines used in one occasion, and in two.
    once: u64,
    twice: u64,
    /// Lines that stores wrote past the caches since the pause: none has them.
    around: FxHashSet<u64>,
    /// By level: a line with a hash below was in the cache. All 0 where all of the run was seen.
    there_below: [u64; MAX_LEVELS],
}

impl Earlier {
    /// For the caches of a machine. `starts_late`: the program ran before the recording.
    pub fn new(machine: &Machine, starts_late: bool) -> Self {
        let outermost = machine.caches.iter().max_by_key(|cache| cache.level);
        let line = outermost.map_or(64, |cache| cache.line.0.max(1));
        let lines = |level: usize| machine.data_cache(level + 1).map_or(0.0, |cache| (cache.size.0 / line) as f64);
        let mut earlier = Earlier {
            line_log2: line.ilog2(),
            capacity_lines: std::array::from_fn(|level| if level == 0 { 0.0 } else { lines(level) }),
            outermost: outermost.map_or(0, |cache| usize::from(cache.level).clamp(1, MAX_LEVELS) - 1),
            part: 1,
            occasion: 1,
            left: SHORTEST,
            length: SHORTEST,
            lines: QuickMap::default(),
            of_part: 0,
            once: 0,
            twice: 0,
            around: FxHashSet::default(),
            there_below: [0; MAX_LEVELS],
        };
        if starts_late {
            earlier.take_for_there();
        }
        earlier
    }

    /// Takes all lines for those of the outermost cache, while nothing is known of the phase under way.
    fn take_for_there(&mut self) {
        self.there_below = [0; MAX_LEVELS];
        self.there_below[self.outermost] = u64::MAX;
    }

    /// A part begins behind a pause.
    pub fn pause(&mut self) {
        self.take_for_there();
        self.part += 1;
        self.occasion += 1;
        (self.length, self.left) = (SHORTEST, SHORTEST);
        (self.of_part, self.once, self.twice) = (0, 0, 0);
        self.around.clear();
    }

    /// A store writes the line of `address` past the caches.
    pub fn goes_around(&mut self, address: u64) {
        if self.may_be_there() {
            self.around.insert(address >> self.line_log2);
        }
    }

    /// Counts a reference to `address`, as recorded.
    #[inline(always)]
    pub fn note(&mut self, address: u64) {
        self.left -= 1;
        if self.left == 0 {
            self.next_occasion();
        }
        let line = address >> self.line_log2;
        if hash(line) >> (64 - SAMPLE_LOG2) == 0 {
            self.count(line);
        }
    }

    /// Whether the recording began late or paused.
    #[inline(always)]
    fn may_be_there(&self) -> bool {
        self.there_below[self.outermost] > 0
    }

    /// The levels, a bit each, of the caches that had the line of `address`, if no record showed it so far.
    #[inline]
    pub fn was_there(&self, address: u64) -> u8 {
        if !self.may_be_there() {
            return 0;
        }
        let line = address >> self.line_log2;
        if self.around.contains(&line) {
            return 0;
        }
        // Other bits than those of the sample.
        let hash = hash(line) << SAMPLE_LOG2;
        let of_level = |levels: u8, (level, below): (usize, &u64)| levels | u8::from(hash < *below) << level;
        self.there_below.iter().enumerate().fold(0, of_level)
    }

    #[cold]
    fn next_occasion(&mut self) {
        if self.may_be_there() {
            self.estimate();
        }
        self.occasion += 1;
        self.length = (self.length * 2).min(LONGEST);
        self.left = self.length;
    }

    #[inline(never)]
    fn count(&mut self, line: u64) {
        let uses = self.lines.entry(line).or_default();
        if uses.latest == self.occasion {
            return;
        }
        let (is_new, before) = (uses.part != self.part, uses.occasions);
        let row = if !is_new && uses.latest + 1 == self.occasion { uses.row + 1 } else { 1 };
        let occasions = match row {
            1 => before + 1,
            ALWAYS => before.max(1) + 2,
            _ => before,
        };
        *uses = Uses { part: self.part, latest: self.occasion, row, occasions };
        self.of_part += u64::from(is_new);
        self.once += u64::from(occasions == 1);
        self.twice += u64::from(occasions == 2);
        if !is_new {
            self.once -= u64::from(before == 1);
            self.twice -= u64::from(before == 2);
        }
    }

    /// Estimates how many lines are used, and which share of them each cache holds.
    fn estimate(&mut self) {
        let (once, twice) = (self.once as f64, self.twice as f64);
        let unseen = once * (once - 1.0).max(0.0) / (2.0 * (twice + 1.0));
        let used = (self.of_part as f64 + unseen) * f64::from(1u32 << SAMPLE_LOG2);
        for (below, lines) in self.there_below.iter_mut().zip(self.capacity_lines) {
            let share = lines / used.max(1.0);
            *below = if share >= 1.0 { u64::MAX } else { (share * u64::MAX as f64) as u64 };
        }
        // A share of none would be that of a run that was seen whole.
        self.there_below[self.outermost] = self.there_below[self.outermost].max(1);
    }
}

fn hash(line: u64) -> u64 {
    line.wrapping_mul(GOLDEN)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::describe::preset;
    use proptest::prelude::*;

    const LINE: u64 = 64;

    /// A program's phase behind a pause, and the lines of its outermost cache.
    fn after_a_pause() -> (Earlier, u64) {
        let machine = preset("zen3-milan").unwrap().machine().unwrap();
        let mut earlier = Earlier::new(&machine, false);
        (0..10_000).for_each(|line| earlier.note(line * LINE));
        earlier.pause();
        let lines = earlier.capacity_lines[earlier.outermost] as u64;
        (earlier, lines)
    }

    /// Share of fresh lines, 1 << 40 and above, that were in a cache of this level, 0 being the first.
    fn there_in(earlier: &Earlier, level: usize) -> f64 {
        let was = |line: &u64| earlier.was_there((1 << 40) + line * LINE) >> level & 1 != 0;
        (0..10_000).filter(was).count() as f64 / 10_000.0
    }

    /// Share of fresh lines that were in the outermost cache.
    fn there(earlier: &Earlier) -> f64 {
        there_in(earlier, earlier.outermost)
    }

    #[test]
    fn nothing_was_there_in_a_run_that_was_seen_from_its_start() {
        let machine = preset("zen3-milan").unwrap().machine().unwrap();
        let mut earlier = Earlier::new(&machine, false);
        (0..200_000).for_each(|line| earlier.note(line % 100 * LINE));
        assert_eq!(there(&earlier), 0.0);
        let late = Earlier::new(&machine, true);
        assert_eq!((there(&late), there_in(&late, 1)), (1.0, 0.0), "nothing is known of a late start yet");
    }

    #[test]
    fn the_second_level_had_its_share_of_the_lines_and_the_first_none() {
        let (mut earlier, _) = after_a_pause();
        (0..500_000).for_each(|at| earlier.note(at % 4_000 * LINE));
        assert_eq!([0, 1, 2].map(|level| there_in(&earlier, level)), [0.0, 1.0, 1.0]);
        earlier.pause();
        // 8,192 lines of 32,000.
        (0..500_000).for_each(|at| earlier.note(at % 32_000 * LINE));
        assert_eq!(there_in(&earlier, 0), 0.0);
        assert!((there_in(&earlier, 1) - 0.256).abs() < 0.05, "{}", there_in(&earlier, 1));
        assert_eq!(there_in(&earlier, 2), 1.0);
    }

    #[test]
    fn lines_that_a_program_comes_back_to_were_there() {
        let (mut earlier, _) = after_a_pause();
        (0..500_000).for_each(|at| earlier.note(at % 4_000 * LINE));
        assert_eq!(there(&earlier), 1.0);
    }

    #[test]
    fn lines_of_a_stream_were_not_there() {
        let (mut earlier, _) = after_a_pause();
        (0..500_000).for_each(|at| earlier.note((1 << 32) + at * 8));
        assert!(there(&earlier) < 0.15, "{}", there(&earlier));
    }

    #[test]
    fn lines_that_are_used_for_a_moment_were_not_there() {
        let (mut earlier, lines) = after_a_pause();
        // A merge: each line is used for 2,000 references, beside 500 that are used all the time.
        (0..400_000u64).for_each(|at| {
            earlier.note(((1 << 26) + at / 20 + at % 97) * LINE);
            earlier.note(at % 500 * LINE);
        });
        assert!(lines > 400_000 / 20, "they all fit");
        assert!(
            there(&earlier) < 0.35 && there_in(&earlier, 1) < 0.02,
            "{} {}",
            there(&earlier),
            there_in(&earlier, 1)
        );
    }

    #[test]
    fn a_line_that_was_written_past_the_caches_is_not_there() {
        let (mut earlier, _) = after_a_pause();
        let was = |earlier: &Earlier, address| earlier.was_there(address) != 0;
        assert!(was(&earlier, 1 << 40));
        earlier.goes_around(1 << 40);
        assert!(!was(&earlier, 1 << 40) && was(&earlier, (1 << 40) + LINE));
        earlier.pause();
        assert!(was(&earlier, 1 << 40), "nobody knows what came after");
    }

    #[test]
    fn the_part_before_does_not_count_for_this_one() {
        let (mut earlier, _) = after_a_pause();
        (0..500_000).for_each(|at| earlier.note((1 << 32) + at * LINE));
        earlier.pause();
        (0..100_000).for_each(|at| earlier.note(at % 4_000 * LINE));
        assert_eq!(there(&earlier), 1.0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// References at random to so many times the cache's lines: the share that the cache holds.
        #[test]
        fn the_share_of_random_references_is_that_of_the_cache(times in 1.5f64..6.0, seed: u64) {
            let (mut earlier, lines) = after_a_pause();
            let all = (lines as f64 * times) as u64;
            let mut random = seed | 1;
            for _ in 0..400_000 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                earlier.note((random >> 33) % all * LINE);
            }
            let share = there(&earlier);
            prop_assert!((share * times - 1.0).abs() < 0.35, "{share} of 1/{times}");
        }
    }
}
