//! A cache as it would be with every page's lines turned by a number of the page's own: the best that moving objects by
//! whole lines can do. With scattered addresses it misses as often as the cache itself; with addresses at the same
//! offset of aligned pieces it does not.

use crate::model::cache::replacement::ReplacementState;
use crate::model::fast::plan::{Config, PAGE_LOG2};
use nearmiss_record::machine::Index;

/// No line has this number.
const NONE: u64 = u64::MAX;
/// Pages in a row are turned by so many lines more each, about the golden section of a page's 64: odd, so that every
/// number has its turn, and neighbours lie far apart.
const STEP: u64 = 41;
const DIGIT_LOG2: u32 = 6;

/// Misses of user memory that the cache itself had counted when a line last missed there; 0: it has not.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mark {
    /// In the line's set.
    pub in_set: u32,
    /// In all sets.
    pub in_all: u32,
}

/// See the module's text.
pub(super) struct Spread {
    config: Config,
    order: ReplacementState,
    /// Number of the line by frame.
    lines: Vec<u64>,
    /// Mark of the line by frame.
    marks: Vec<Mark>,
    /// Replacement word by set: see [`ReplacementState`].
    words: Vec<u64>,
    /// Ways in use by set; they fill in order.
    used: Vec<u32>,
}

impl Spread {
    /// Returns `None` for a cache with sets that no offset within a page picks.
    pub fn new(config: Config, instance: u32) -> Option<Self> {
        let (sets, ways) = (config.sets as usize, config.ways);
        if config.index == Index::Hashed && 1 << config.hashed_bits >= config.sets {
            return None;
        }
        let order = ReplacementState::new(config.replacement, sets, ways, config.seed, instance);
        Some(Spread {
            lines: vec![NONE; sets * ways],
            marks: vec![Mark::default(); sets * ways],
            words: vec![order.unused(ways); sets],
            used: vec![0; sets],
            order,
            config,
        })
    }

    pub fn sets(&self) -> usize {
        self.used.len()
    }

    /// Whether an index of virtual addresses picks the set.
    pub fn is_virtual(&self) -> bool {
        self.config.index == Index::Virtual
    }

    /// Looks the line of `address` up, in the set that it has when its page is turned by `turn` lines, and brings it in.
    /// Whether it was there, and its mark.
    #[inline]
    pub fn access(&mut self, address: u64, turn: u64) -> (bool, &mut Mark) {
        let set = self.config.set_of(self.turned(address, turn)) as usize;
        let line = address >> self.config.line_log2;
        let (base, ways) = (set * self.config.ways, self.config.ways);
        let word = &mut self.words[set];
        if let Some(way) = self.lines[base..base + ways].iter().position(|there| *there == line) {
            self.order.hit(word, base + way, way);
            return (true, &mut self.marks[base + way]);
        }
        let way = self.used[set] as usize;
        let way = if way < ways {
            self.used[set] += 1;
            self.order.filled(word, base + way, way);
            way
        } else {
            self.order.replace(word, base, ways)
        };
        self.lines[base + way] = line;
        self.marks[base + way] = Mark::default();
        (false, &mut self.marks[base + way])
    }

    fn turned(&self, address: u64, turn: u64) -> u64 {
        let inside = (1 << PAGE_LOG2) - 1;
        address & !inside | address.wrapping_add(turn << self.config.line_log2) & inside
    }
}

/// Returns by how many lines the page of a virtual address is turned: the sum of the digits of its number, so that
/// pages any power of two apart are turned by numbers in a row.
#[inline]
pub(super) fn turn_of(vaddr: u64) -> u64 {
    let (mut rest, mut sum) = (vaddr >> PAGE_LOG2, 0);
    while rest != 0 {
        sum += rest & ((1 << DIGIT_LOG2) - 1);
        rest >>= DIGIT_LOG2;
    }
    sum * STEP
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::describe::preset;

    /// The first level of a Zen 3: 64 sets of 8 ways.
    fn first_level() -> Spread {
        let machine = preset("zen3-milan").unwrap().machine().unwrap();
        Spread::new(Config::of(&machine, machine.data_cache(1).unwrap()).unwrap(), 0).unwrap()
    }

    fn misses(spread: &mut Spread, lines: impl Iterator<Item = u64>) -> usize {
        lines.filter(|line| !spread.access(*line, turn_of(*line)).0).count()
    }

    #[test]
    fn pages_of_any_power_of_two_apart_get_every_number_of_lines() {
        for log2 in PAGE_LOG2..40 {
            let mut turns: Vec<u64> = (0..64).map(|n| turn_of((n << log2) + 0x5000_0000_0000) % 64).collect();
            turns.sort_unstable();
            turns.dedup();
            assert_eq!(turns.len(), 64, "2^{log2}");
        }
    }

    #[test]
    fn lines_at_one_offset_of_aligned_pieces_find_room_and_others_find_as_much_as_before() {
        for log2 in [12, 13, 16, 21, 23] {
            let walk = (0..40u64).flat_map(|_| (0..300u64).map(move |n| (n << log2) + 192));
            assert_eq!(misses(&mut first_level(), walk), 300, "2^{log2}");
        }
        // A whole cache's lines in a row fill every set as they did.
        let rows = (0..4u64).flat_map(|_| (0..512u64).map(|n| 0x7000_0000 + n * 64));
        assert_eq!(misses(&mut first_level(), rows), 512);
    }

    #[test]
    fn a_mark_stays_with_its_line_and_goes_with_it() {
        let mut spread = first_level();
        spread.access(4096, 0).1.in_set = 7;
        assert_eq!(spread.access(4096, 0).1.in_set, 7);
        for n in 1..9u64 {
            spread.access(4096 + (n << 20), 0);
        }
        assert_eq!(spread.access(4096, 0).1.in_set, 0);
    }

    #[test]
    fn sets_that_are_hashed_as_a_whole_are_none_to_spread() {
        let machine = preset("zen4-genoa").unwrap().machine().unwrap();
        assert!(Spread::new(Config::of(&machine, machine.data_cache(3).unwrap()).unwrap(), 0).is_none());
    }
}
