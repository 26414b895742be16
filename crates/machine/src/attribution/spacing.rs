//! Distance between the pieces with crowding lines: found from runs of crowded misses in a row.

use std::collections::BTreeMap;

/// Misses of one burst.
const BURST: usize = 512;
/// Steps of a walk that come back before the walk moves on: a body that touches so many lines a piece.
const MOST_LINES_A_PIECE: usize = 8;
/// Share of distances that must agree: the rest are a walk's returns to its begin, and bystanders.
const AGREE: f64 = 0.75;
/// Pieces with less than this part of the mean are stray.
pub(super) const STRAY: u64 = 32;
/// A gap of more than this part of a piece is wide.
const WIDE: u64 = 4;
/// Candidates that are tried.
const MOST_CANDIDATES: usize = 64;

/// Misses in a row of one object at one cache: a burst at the beginning, and one whenever the misses have doubled.
#[derive(Debug, Default)]
pub(super) struct Bursts {
    seen: u64,
    /// Misses that are seen when the next burst begins.
    next: u64,
    /// Cache that the last burst missed in.
    instance: u32,
    /// Set and first byte.
    bursts: Vec<Vec<(u32, u64)>>,
}

impl Bursts {
    #[inline]
    pub fn add(&mut self, instance: u32, set: u32, address: u64) {
        self.seen += 1;
        if self.seen > self.next {
            self.next = (self.seen * 2).max(BURST as u64);
            self.instance = instance;
            self.bursts.push(Vec::new());
        }
        if let Some(burst) = self.bursts.last_mut().filter(|burst| burst.len() < BURST && self.instance == instance) {
            burst.push((set, address));
        }
    }

    /// Bytes from piece to piece of a walk with lines that pass over about `sets` sets of ways of `way_bytes` before
    /// they return; else the common divisor of most distances between lines of one set. `None`: unknown.
    pub fn spacing(&self, sets: f64, way_bytes: u64, line_bytes: u64) -> Option<u64> {
        // Longer lags have multiples of the shortest one's distance.
        let walk = (1..=MOST_LINES_A_PIECE).find_map(|lag| self.walked(lag, line_bytes));
        let pressed = |apart: u64| (way_bytes / greatest_common(apart, way_bytes)) as f64;
        let within = self.within_sets(line_bytes);
        // Steps that skip pieces agree by chance at some lag; lines of one set then decide.
        let fits = |apart: &u64| *apart > line_bytes && pressed(*apart) <= 2.0 * sets && divides(*apart, &within);
        walk.filter(fits).or_else(|| common(&within))
    }

    /// The distance between most misses and those `lag` before.
    fn walked(&self, lag: usize, line_bytes: u64) -> Option<u64> {
        let far = |pair: &[(u32, u64)]| distance(pair[0].1, pair[lag].1, line_bytes);
        let distances: Vec<u64> = self.bursts.iter().flat_map(|burst| burst.windows(lag + 1).map(far)).collect();
        let (distance, times) = by_frequency(&distances).into_iter().next()?;
        (distance > 0 && times as f64 >= AGREE * distances.len() as f64).then_some(distance)
    }

    /// Distances between misses in a row of one set.
    fn within_sets(&self, line_bytes: u64) -> Vec<u64> {
        let mut distances = Vec::new();
        for burst in &self.bursts {
            let mut last: BTreeMap<u32, u64> = BTreeMap::new();
            for (set, address) in burst {
                if let Some(before) = last.insert(*set, *address) {
                    distances.push(distance(before, *address, line_bytes));
                }
            }
        }
        distances.retain(|distance| *distance > 0);
        distances
    }
}

/// Returns how many pieces of `spacing` bytes of the object that begins at `start` have misses, a few stray ones aside.
/// `misses`: addresses, ascending, with their misses.
pub(super) fn pieces(start: u64, misses: &[(u64, u64)], spacing: u64) -> u64 {
    let first = first_byte(start, misses, spacing);
    let mut by_piece: BTreeMap<u64, u64> = BTreeMap::new();
    for (address, count) in misses {
        *by_piece.entry(address.wrapping_sub(first) / spacing).or_default() += count;
    }
    let all: u64 = by_piece.values().sum();
    let pieces = by_piece.len() as u64;
    by_piece.values().filter(|count| **count * pieces * STRAY >= all).count() as u64
}

/// Returns the begin of the first piece: the object's begin, unless the misses leave a wide gap in every piece, which
/// then lies at the pieces' ends.
fn first_byte(start: u64, misses: &[(u64, u64)], spacing: u64) -> u64 {
    let mut offsets: Vec<u64> = misses.iter().map(|(address, _)| address.wrapping_sub(start) % spacing).collect();
    offsets.sort_unstable();
    offsets.dedup();
    let Some((first, last)) = offsets.first().zip(offsets.last()) else { return start };
    let around = (spacing - last + first, *first);
    let gaps = offsets.windows(2).map(|pair| (pair[1] - pair[0], pair[1]));
    let (gap, behind) = gaps.fold(around, |most, gap| if gap.0 > most.0 { gap } else { most });
    let wide = gap * WIDE > spacing && behind != *first;
    if wide { start.wrapping_add(behind).wrapping_sub(spacing) } else { start }
}

/// Between the lines of two addresses.
fn distance(a: u64, b: u64, line_bytes: u64) -> u64 {
    (a / line_bytes).abs_diff(b / line_bytes) * line_bytes
}

/// Whether most of `distances` are multiples.
fn divides(apart: u64, distances: &[u64]) -> bool {
    let multiples = distances.iter().filter(|distance| distance.is_multiple_of(apart)).count();
    multiples as f64 >= AGREE * distances.len() as f64
}

/// The largest number that most of `distances` are multiples of.
fn common(distances: &[u64]) -> Option<u64> {
    let candidates: Vec<u64> = distances.windows(2).map(|pair| greatest_common(pair[0], pair[1])).collect();
    let agrees = |candidate: &u64| divides(*candidate, distances);
    let tried = by_frequency(&candidates).into_iter().take(MOST_CANDIDATES).map(|(candidate, _)| candidate);
    tried.filter(agrees).max()
}

/// Values and how often they occur, the most frequent first, then the smaller.
fn by_frequency(values: &[u64]) -> Vec<(u64, usize)> {
    let mut times: BTreeMap<u64, usize> = BTreeMap::new();
    values.iter().for_each(|value| *times.entry(*value).or_default() += 1);
    let mut list: Vec<(u64, usize)> = times.into_iter().collect();
    list.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
    list
}

pub(super) fn greatest_common(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = 0x7f00_0000_0000;

    /// Spacing of misses in a cache of 64 sets of 64 bytes.
    fn spacing(misses: impl Iterator<Item = u64>, sets: f64) -> Option<u64> {
        let mut bursts = Bursts::default();
        misses.for_each(|offset| bursts.add(0, (offset / 64 % 64) as u32, BASE + offset));
        bursts.spacing(sets, 4096, 64)
    }

    #[test]
    fn a_walk_that_skips_pieces_has_the_step_of_the_pieces() {
        // 37 pages on of 90: every second one lies 16 pages off.
        assert_eq!(spacing((0..2000u64).map(|i| i * 37 % 90 * 4096), 1.0), Some(4096));
    }

    #[test]
    fn a_walk_has_its_step_as_spacing() {
        for (step, sets) in [(1024, 4.0), (4096, 1.0), (8192, 1.0), (12288, 1.0), (1536, 8.0), (1 << 20, 1.0)] {
            let walk = (0..100u64).flat_map(|i| (0..200u64).map(move |row| row * step + i * 8));
            assert_eq!(spacing(walk, sets), Some(step));
        }
    }

    #[test]
    fn two_lines_a_piece_are_not_two_pieces() {
        let walk = (0..100u64).flat_map(|_| (0..64u64).flat_map(|slot| [slot * 8192, slot * 8192 + 512]));
        assert_eq!(spacing(walk, 2.0), Some(8192));
        let lines =
            (0..100u64).flat_map(|_| (0..16u64).flat_map(|t| (0..20u64).map(move |line| t * 65536 + line * 64)));
        assert_eq!(spacing(lines, 20.0), Some(65536));
    }

    #[test]
    fn pieces_in_any_order_have_the_common_divisor_of_their_distances() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 40
        };
        for size in [4096, 12288, 65536] {
            // One in ten is a bystander of the same set.
            let order: Vec<u64> =
                (0..4000).map(|i| if i % 10 == 0 { random() % 999 * 4096 } else { random() % 50 * size }).collect();
            assert_eq!(spacing(order.into_iter(), 1.0), Some(size));
        }
        assert_eq!(spacing(std::iter::empty(), 1.0), None);
        assert_eq!(spacing([0, 0, 0].into_iter(), 1.0), None);
    }

    #[test]
    fn pieces_are_counted_wherever_they_begin() {
        let walk = |first: u64, pieces: u64, spacing: u64, bytes: u64| -> Vec<(u64, u64)> {
            (0..pieces).flat_map(|n| (0..bytes / 64).map(move |line| (first + n * spacing + line * 64, 9))).collect()
        };
        for number in [1, 13, 40, 512] {
            // Whole rows of a block that begins within a line; headers of slots in a mapping that holds more before
            // them.
            assert_eq!(pieces(BASE + 16, &walk(BASE + 16, number, 4096, 4096), 4096), number);
            assert_eq!(pieces(BASE, &walk(BASE + 12288, number, 12288, 12288), 12288), number);
            assert_eq!(pieces(BASE, &walk(BASE + 65536 - 128, number, 65536, 256), 65536), number);
        }
        let mut stray = walk(BASE, 40, 8192, 8192);
        stray.push((BASE + (1 << 20), 5));
        assert_eq!(pieces(BASE, &stray, 8192), 40);
    }

    #[test]
    fn misses_of_another_cache_do_not_mix_in() {
        let mut bursts = Bursts::default();
        for i in 0..2000u64 {
            bursts.add((i % 2) as u32, 0, BASE + if i % 2 == 0 { i / 2 % 100 * 8192 } else { i * 4096 });
        }
        assert_eq!(bursts.spacing(1.0, 4096, 64), Some(8192));
        // 1 to 512, from 512 on, from 1,026 on.
        assert!(bursts.bursts.len() <= 4 && bursts.bursts.iter().all(|burst| burst.len() <= BURST));
    }
}
