//! Lines that a recording shows for the first time behind a pause: the program may have used them before.
//!
//! Nobody saw whether such a line was still in the outermost cache. Its chance is the cache's share of the lines that
//! this phase of the program uses. Their number is estimated from the lines of the part under way: each is used in so
//! many *occasions*, stretches of references, of all that were recorded, and the lines used in one and in two of them
//! show how many were not seen at all (Chao, Biometrics 43:783, 1987, bias-corrected). A program that comes back to few
//! lines has them all in the cache; one that streams comes back to none, and all are read from memory.

use crate::model::quick_map::QuickMap;
use nearmiss_record::machine::Machine;
use rustc_hash::FxHashSet;

/// One line of so many is counted.
const SAMPLE_LOG2: u32 = 4;
/// References of the first occasion of a part; each is twice as long as the one before, up to the longest.
const SHORTEST: u64 = 1 << 10;
const LONGEST: u64 = 1 << 16;
/// 2^64 / golden ratio: the upper bits of a product are those of a hash (Knuth 6.4).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Occasions in which a sampled line was used.
#[derive(Clone, Copy, Default)]
struct Uses {
    part: u32,
    latest: u32,
    occasions: u32,
}

/// How many lines the phase under way uses, and which of those that come up now were in the outermost cache.
pub(in crate::model) struct Earlier {
    line_log2: u32,
    capacity_lines: f64,
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
    /// A line whose hash is below was in the cache; 0 where all of the run was seen.
    there_below: u64,
}

impl Earlier {
    /// For the outermost cache of a machine. `starts_late`: the program ran before the recording.
    pub fn new(machine: &Machine, starts_late: bool) -> Self {
        let outermost = machine.caches.iter().max_by_key(|cache| cache.level);
        let line = outermost.map_or(64, |cache| cache.line.0.max(1));
        Earlier {
            line_log2: line.ilog2(),
            capacity_lines: outermost.map_or(0.0, |cache| (cache.size.0 / line) as f64),
            part: 1,
            occasion: 1,
            left: SHORTEST,
            length: SHORTEST,
            lines: QuickMap::default(),
            of_part: 0,
            once: 0,
            twice: 0,
            around: FxHashSet::default(),
            there_below: if starts_late { u64::MAX } else { 0 },
        }
    }

    /// A part begins behind a pause. Nothing is known of its phase yet: all is taken for there.
    pub fn pause(&mut self) {
        self.there_below = u64::MAX;
        self.part += 1;
        self.occasion += 1;
        (self.length, self.left) = (SHORTEST, SHORTEST);
        (self.of_part, self.once, self.twice) = (0, 0, 0);
        self.around.clear();
    }

    /// A store writes the line of `address` past the caches.
    pub fn goes_around(&mut self, address: u64) {
        if self.there_below > 0 {
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

    /// Whether the line of `address`, which no record showed so far, was in the outermost cache.
    #[inline]
    pub fn was_there(&self, address: u64) -> bool {
        let line = address >> self.line_log2;
        // Other bits than those of the sample.
        self.there_below > 0 && hash(line) << SAMPLE_LOG2 < self.there_below && !self.around.contains(&line)
    }

    #[cold]
    fn next_occasion(&mut self) {
        if self.there_below > 0 {
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
        let is_new = uses.part != self.part;
        let before = uses.occasions;
        *uses = Uses { part: self.part, latest: self.occasion, occasions: before + 1 };
        self.of_part += u64::from(is_new);
        self.once += u64::from(before == 0);
        self.twice += u64::from(before == 1);
        if !is_new {
            self.once -= u64::from(before == 1);
            self.twice -= u64::from(before == 2);
        }
    }

    /// Estimates how many lines are used, and which share of them the cache holds.
    fn estimate(&mut self) {
        let (once, twice) = (self.once as f64, self.twice as f64);
        let unseen = once * (once - 1.0).max(0.0) / (2.0 * (twice + 1.0));
        let used = (self.of_part as f64 + unseen) * f64::from(1u32 << SAMPLE_LOG2);
        let share = self.capacity_lines / used.max(1.0);
        self.there_below = if share >= 1.0 { u64::MAX } else { (share * u64::MAX as f64) as u64 };
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
        let lines = earlier.capacity_lines as u64;
        (earlier, lines)
    }

    /// Share of fresh lines, 1 << 40 and above, that were there.
    fn there(earlier: &Earlier) -> f64 {
        let fresh = (0..10_000).filter(|line| earlier.was_there((1 << 40) + line * LINE)).count();
        fresh as f64 / 10_000.0
    }

    #[test]
    fn nothing_was_there_in_a_run_that_was_seen_from_its_start() {
        let machine = preset("zen3-milan").unwrap().machine().unwrap();
        let mut earlier = Earlier::new(&machine, false);
        (0..200_000).for_each(|line| earlier.note(line % 100 * LINE));
        assert_eq!(there(&earlier), 0.0);
        assert_eq!(there(&Earlier::new(&machine, true)), 1.0, "nothing is known of a late start yet");
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
    fn a_line_that_was_written_past_the_caches_is_not_there() {
        let (mut earlier, _) = after_a_pause();
        assert!(earlier.was_there(1 << 40));
        earlier.goes_around(1 << 40);
        assert!(!earlier.was_there(1 << 40) && earlier.was_there((1 << 40) + LINE));
        earlier.pause();
        assert!(earlier.was_there(1 << 40), "nobody knows what came after");
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
