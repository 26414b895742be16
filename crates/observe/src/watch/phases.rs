//! Changes of a time line: the segmentation that minimises squared deviation plus a penalty a change.

use std::ops::Range;

/// Shortest phase, in steps.
const SHORTEST: usize = 5;
/// Longest time line taken as it is; a longer one is looked at in coarser steps.
const MOST: usize = 600;
/// Least variance that counts as noise: a fifth of the scale, squared.
const LEAST_NOISE: f64 = 0.04;

/// Stretches of equal mean. Optimal partitioning (the exact form of PELT) with a penalty of `3 σ² ln n` a change and
/// signal, σ² estimated from the differences of neighbours.
pub fn split(signals: &[[f64; 3]]) -> Vec<Range<usize>> {
    let coarse = signals.len().div_ceil(MOST).max(1);
    let points: Vec<[f64; 3]> = signals.chunks(coarse).map(mean).collect();
    let n = points.len();
    if n < 2 * SHORTEST {
        return std::iter::once(0..signals.len()).collect();
    }
    let sums = Sums::of(&points);
    let penalty = 3.0 * noise(&points) * (n as f64).ln();
    let mut best = vec![f64::INFINITY; n + 1];
    let mut from = vec![0; n + 1];
    if let Some(first) = best.first_mut() {
        *first = -penalty;
    }
    for end in SHORTEST..=n {
        for start in 0..=end - SHORTEST {
            let cost = best.get(start).copied().unwrap_or(f64::INFINITY) + sums.deviation(start, end) + penalty;
            if best.get(end).is_some_and(|b| cost < *b)
                && let (Some(b), Some(f)) = (best.get_mut(end), from.get_mut(end))
            {
                (*b, *f) = (cost, start);
            }
        }
    }
    let mut ranges = Vec::new();
    let mut end = n;
    while end > 0 {
        let start = from.get(end).copied().unwrap_or(0);
        ranges.push(start * coarse..(end * coarse).min(signals.len()));
        end = start;
    }
    ranges.reverse();
    ranges
}

fn mean(points: &[[f64; 3]]) -> [f64; 3] {
    let mut sum = [0.0; 3];
    for point in points {
        for (s, v) in sum.iter_mut().zip(point) {
            *s += v / points.len() as f64;
        }
    }
    sum
}

/// Variance of the noise, summed over the signals: half the mean squared difference of neighbours, by its median, which
/// a few real changes do not move.
fn noise(points: &[[f64; 3]]) -> f64 {
    let mut squares: Vec<f64> =
        points.windows(2).map(|w| w[0].iter().zip(w[1]).map(|(a, b)| (a - b) * (a - b)).sum::<f64>() / 2.0).collect();
    squares.sort_by(f64::total_cmp);
    let median = squares.get(squares.len() / 2).copied().unwrap_or(0.0);
    // The median of a squared normal variable is 0.455 of its mean.
    (median / 0.455).max(LEAST_NOISE)
}

/// Running sums, so that any stretch's deviation costs the same.
struct Sums {
    of: Vec<[f64; 3]>,
    squares: Vec<f64>,
}

impl Sums {
    fn of(points: &[[f64; 3]]) -> Self {
        let mut sums = Sums { of: vec![[0.0; 3]], squares: vec![0.0] };
        let (mut sum, mut square) = ([0.0; 3], 0.0);
        for point in points {
            for (s, v) in sum.iter_mut().zip(point) {
                *s += v;
                square += v * v;
            }
            sums.of.push(sum);
            sums.squares.push(square);
        }
        sums
    }

    fn deviation(&self, start: usize, end: usize) -> f64 {
        let (Some(a), Some(b)) = (self.of.get(start), self.of.get(end)) else { return f64::INFINITY };
        let (Some(square_a), Some(square_b)) = (self.squares.get(start), self.squares.get(end)) else {
            return f64::INFINITY;
        };
        let n = (end - start) as f64;
        let of_means: f64 = a.iter().zip(b).map(|(a, b)| (b - a) * (b - a) / n).sum();
        (square_b - square_a - of_means).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(value: f64, n: usize) -> Vec<[f64; 3]> {
        (0..n).map(|i| [value + if i % 2 == 0 { 0.03 } else { -0.03 }, 0.0, 0.0]).collect()
    }

    #[test]
    fn a_steady_run_is_one_phase() {
        assert_eq!(split(&level(0.5, 100)).first(), Some(&(0..100)));
        assert_eq!(split(&level(0.5, 3)).first(), Some(&(0..3)));
        assert_eq!(split(&[]).first(), Some(&(0..0)));
    }

    #[test]
    fn changes_are_found_where_they_are() {
        let all = [level(0.9, 30), level(0.1, 20), level(0.9, 40)].concat();
        assert_eq!(split(&all), [0..30, 30..50, 50..90]);
    }

    #[test]
    fn noise_makes_no_phases() {
        let mut state = 1u64;
        let noisy: Vec<[f64; 3]> = (0..200)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                [(state >> 40) as f64 / (1u64 << 24) as f64, 0.0, 0.0]
            })
            .collect();
        assert_eq!(split(&noisy).len(), 1);
    }

    #[test]
    fn a_long_run_is_looked_at_in_coarser_steps() {
        let all = [level(0.9, 3000), level(0.1, 3000)].concat();
        assert_eq!(split(&all), [0..3000, 3000..6000]);
    }
}
