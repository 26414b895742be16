//! Choice of the victim line of a set.

use crate::model::fast::prefetch::prefetch;
use crate::model::pages::places::mixed;
use nearmiss_record::machine::Replacement;

const FAR: u8 = 3;
const LONG: u8 = 2;

/// Replacement state of one cache, but for the word that each set keeps beside its other state. Invalid frames are the
/// caller's to prefer. Its tag lies by itself, where Rust would hide it in a vector.
#[repr(u8)]
pub(crate) enum ReplacementState {
    /// The set's word: its ways, four bits each, the latest use lowest: up to 16 ways.
    Lru,
    /// The set's word: a tree of bits, node 1 the root; a set bit points right.
    TreePlru { touched: Vec<(u64, u64)> },
    /// A stream of numbers, one drawn an eviction.
    Random { state: u64 },
    /// Time of last use by frame: more ways.
    LruByTime { used: Vec<u64>, clock: u64 },
    /// Re-reference prediction by frame.
    Srrip { predicted: Vec<u8> },
    /// Chosen by the caller: the way of the next line.
    ByCaller { way: usize },
}

impl ReplacementState {
    pub fn new(kind: Replacement, sets: usize, ways: usize, seed: u64, instance: u32) -> Self {
        match kind {
            Replacement::Lru if ways <= NIBBLES => ReplacementState::Lru,
            Replacement::Lru => ReplacementState::LruByTime { used: vec![0; sets * ways], clock: 0 },
            Replacement::TreePlru => {
                ReplacementState::TreePlru { touched: (0..ways).map(|way| away_from(way, ways)).collect() }
            }
            Replacement::Random => ReplacementState::Random { state: random_start(seed, instance) },
            Replacement::Srrip => ReplacementState::Srrip { predicted: vec![FAR; sets * ways] },
        }
    }

    /// Returns the word of an unused set.
    pub fn unused(&self, ways: usize) -> u64 {
        if let ReplacementState::Lru = self { unused(ways) } else { 0 }
    }

    /// A line was found.
    #[inline(always)]
    pub fn hit(&mut self, word: &mut u64, frame: usize, way: usize) {
        match self {
            ReplacementState::Lru => *word = used_now(*word, way),
            ReplacementState::TreePlru { touched } => {
                let (keep, point) = touched[way];
                *word = *word & keep | point;
            }
            ReplacementState::LruByTime { used, clock } => {
                *clock += 1;
                used[frame] = *clock;
            }
            ReplacementState::Random { .. } | ReplacementState::ByCaller { .. } => {}
            ReplacementState::Srrip { predicted } => predicted[frame] = 0,
        }
    }

    /// A line was brought in.
    #[inline]
    pub fn filled(&mut self, word: &mut u64, frame: usize, way: usize) {
        match self {
            ReplacementState::Srrip { predicted } => predicted[frame] = LONG,
            _ => self.hit(word, frame, way),
        }
    }

    /// Picks a victim way of a full set with the first frame `base`, and brings a line in there.
    #[inline(always)]
    pub fn replace(&mut self, word: &mut u64, base: usize, ways: usize) -> usize {
        if let ReplacementState::Lru = self {
            let way = last(*word, ways);
            *word = (*word ^ way << last_shift(ways)) << 4 | way;
            return way as usize;
        }
        let way = self.victim(*word, base, ways);
        self.filled(word, base + way, way);
        way
    }

    /// Returns the way that [`ReplacementState::replace`] would evict now, if that is cheap to find.
    #[inline]
    pub fn next(&self, word: u64, base: usize, ways: usize) -> Option<usize> {
        match self {
            ReplacementState::Lru => Some(last(word, ways) as usize),
            ReplacementState::LruByTime { used, .. } => Some(oldest(&used[base..base + ways])),
            ReplacementState::TreePlru { .. } => Some(pointed_at(word, ways)),
            ReplacementState::Random { .. } | ReplacementState::Srrip { .. } | ReplacementState::ByCaller { .. } => {
                None
            }
        }
    }

    /// Ways of a set by their last use where that is known, the oldest first.
    pub fn oldest_first(&self, word: u64, ways: usize) -> impl Iterator<Item = usize> + use<> {
        let count = if let ReplacementState::Lru = self { ways } else { 0 };
        (0..count).rev().map(move |place| (word >> (4 * place) & 15) as usize)
    }

    /// Fetches the state of a set's frames.
    #[inline(always)]
    pub fn prefetch(&self, set: usize, ways: usize) {
        match self {
            ReplacementState::Lru
            | ReplacementState::TreePlru { .. }
            | ReplacementState::Random { .. }
            | ReplacementState::ByCaller { .. } => {}
            ReplacementState::LruByTime { used, .. } => {
                prefetch(used, set * ways);
                prefetch(used, (set + 1) * ways - 1);
            }
            ReplacementState::Srrip { predicted } => prefetch(predicted, set * ways),
        }
    }

    /// The way to give up in a full set.
    fn victim(&mut self, word: u64, base: usize, ways: usize) -> usize {
        match self {
            ReplacementState::Lru => last(word, ways) as usize,
            ReplacementState::LruByTime { used, .. } => oldest(&used[base..base + ways]),
            ReplacementState::TreePlru { .. } => pointed_at(word, ways),
            ReplacementState::Random { state } => next_random(state) as usize % ways,
            ReplacementState::ByCaller { way } => *way,
            ReplacementState::Srrip { predicted } => {
                let set = &mut predicted[base..base + ways];
                let farthest = set.iter().copied().max().unwrap_or(FAR);
                set.iter_mut().for_each(|p| *p += FAR - farthest);
                set.iter().position(|&p| p == FAR).unwrap_or(0)
            }
        }
    }
}

/// Ways that one word orders.
const NIBBLES: usize = 16;
const ONES: u64 = 0x1111_1111_1111_1111;

/// Returns the order of a set with ways to be used from the first on.
fn unused(ways: usize) -> u64 {
    (0..ways as u64).fold(0, |order, way| order << 4 | way)
}

/// The order after a use of `way`.
#[inline]
fn used_now(order: u64, way: usize) -> u64 {
    let others = order ^ (way as u64 * ONES);
    // Returns the lowest digit that is zero; marks beyond it may be wrong.
    let at = (others.wrapping_sub(ONES) & !others & (ONES << 3)).trailing_zeros() & !3;
    let newer = (1u64 << at) - 1;
    order & !(newer << 4 | 15) | (order & newer) << 4 | way as u64
}

/// The way at an order's end.
#[inline]
fn last(order: u64, ways: usize) -> u64 {
    order >> last_shift(ways)
}

/// Returns the first bit of an order's last way.
#[inline]
fn last_shift(ways: usize) -> u32 {
    4 * (ways as u32 - 1)
}

/// The way used longest ago.
#[inline]
fn oldest(used: &[u64]) -> usize {
    let (mut oldest, mut way) = (u64::MAX, 0);
    for (w, &time) in used.iter().enumerate() {
        if time < oldest {
            (oldest, way) = (time, w);
        }
    }
    way
}

/// The way that a tree of bits points at.
#[inline]
fn pointed_at(bits: u64, ways: usize) -> usize {
    let mut node = 1;
    while node < ways {
        node = node * 2 + (bits >> node & 1) as usize;
    }
    node - ways
}

/// For a way of a tree: the bits to keep and the bits to set so that every node on its path points away from it.
fn away_from(way: usize, ways: usize) -> (u64, u64) {
    let (mut keep, mut point) = (u64::MAX, 0);
    let mut node = way + ways;
    while node > 1 {
        let parent = node / 2;
        keep &= !(1 << parent);
        if node.is_multiple_of(2) {
            point |= 1 << parent;
        }
        node = parent;
    }
    (keep, point)
}

/// Start of an instance's random numbers.
pub(crate) fn random_start(seed: u64, instance: u32) -> u64 {
    mixed(seed ^ u64::from(instance).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// The next of them (splitmix64), upper half.
pub(crate) fn next_random(state: &mut u64) -> u32 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    (mixed(*state) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_word_orders_ways_as_times_of_use_do() {
        for ways in 1..=NIBBLES {
            let (mut by_word, mut idle) = (ReplacementState::Lru, 0);
            let mut word = by_word.unused(ways);
            let mut times = ReplacementState::LruByTime { used: vec![0; ways], clock: 0 };
            let mut state = ways as u64;
            for _ in 0..2000 {
                assert_eq!(by_word.victim(word, 0, ways), times.victim(0, 0, ways), "{ways} ways");
                if next_random(&mut state) & 1 == 0 {
                    let (way, same) = (by_word.replace(&mut word, 0, ways), times.replace(&mut idle, 0, ways));
                    assert_eq!(way, same, "{ways} ways");
                }
                let way = next_random(&mut state) as usize % ways;
                by_word.hit(&mut word, way, way);
                times.hit(&mut idle, way, way);
            }
        }
    }
}
