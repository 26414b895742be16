//! All LRU caches of one line size, from one pass: by number of sets, stacks as deep as the most ways requested.
//!
//! A line's depth in its set never grows with the number of sets (when each set count divides the next), so a line on
//! top under few sets is on top under all that follow: most references end at the first look.

/// Misses of LRU caches of several numbers of sets and all ways up to a limit.
#[derive(Clone, Debug)]
pub struct Geometries {
    groups: Vec<Group>,
    ways: usize,
    references: u64,
}

#[derive(Clone, Debug)]
struct Group {
    mask: u64,
    /// Stacks by set: `ways` lines, newest first.
    stacks: Vec<u64>,
    /// References that ended their search here on top of the stack: so they did in all groups that follow.
    on_top: u64,
    /// References found, by depth from 1 on.
    found: Vec<u64>,
}

const EMPTY: u64 = u64::MAX;

impl Geometries {
    /// For each power of two of sets in `sets_log2`, and every number of ways from 1 to `ways`.
    pub fn new(sets_log2: std::ops::RangeInclusive<u32>, ways: usize) -> Self {
        let ways = ways.max(1);
        let group = |log2: u32| Group {
            mask: (1 << log2) - 1,
            stacks: vec![EMPTY; ways << log2],
            on_top: 0,
            found: vec![0; ways],
        };
        Geometries { groups: sets_log2.map(group).collect(), ways, references: 0 }
    }

    /// A reference to a line (an address divided by the line size).
    #[inline]
    pub fn reference(&mut self, line: u64) {
        self.references += 1;
        let ways = self.ways;
        for group in &mut self.groups {
            let base = (line & group.mask) as usize * ways;
            let stack = &mut group.stacks[base..base + ways];
            let mut above = stack[0];
            if above == line {
                group.on_top += 1;
                return;
            }
            stack[0] = line;
            for (depth, slot) in stack.iter_mut().enumerate().skip(1) {
                above = std::mem::replace(slot, above);
                if above == line {
                    group.found[depth] += 1;
                    break;
                }
            }
        }
    }

    /// Returns the misses of a cache of `sets` and `ways`, if it was requested.
    pub fn misses(&self, sets: u64, ways: usize) -> Option<u64> {
        if ways == 0 || ways > self.ways {
            return None;
        }
        let at = self.groups.iter().position(|group| group.mask + 1 == sets)?;
        let on_top: u64 = self.groups[..=at].iter().map(|group| group.on_top).sum();
        let deeper: u64 = self.groups[at].found[1..ways].iter().sum();
        Some(self.references - on_top - deeper)
    }

    /// References so far.
    pub fn references(&self) -> u64 {
        self.references
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn each_geometry_misses_as_a_cache_of_its_own_does(lines in prop::collection::vec(0..60u64, 0..400)) {
            let mut all = Geometries::new(0..=4, 5);
            lines.iter().for_each(|line| all.reference(*line));
            for sets in [1u64, 2, 4, 8, 16] {
                for ways in 1..=5 {
                    let mut cache = vec![Vec::new(); sets as usize];
                    let mut expected = 0;
                    for line in &lines {
                        let set: &mut Vec<u64> = &mut cache[(line % sets) as usize];
                        match set.iter().position(|l| l == line) {
                            Some(at) => drop(set.remove(at)),
                            None => expected += 1,
                        }
                        set.insert(0, *line);
                        set.truncate(ways);
                    }
                    prop_assert_eq!(all.misses(sets, ways), Some(expected));
                }
            }
        }
    }
}
