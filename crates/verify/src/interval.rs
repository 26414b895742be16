//! The middle of some numbers, and an interval for it from signed ranks.
//!
//! In pairs with an order that a coin decides, a difference is as likely up as down where the sides are equal, with any
//! noise and any dependence between the sizes of the differences. That is all that Wilcoxon's signed ranks assume, so
//! the error rate stands exactly; and they use the sizes, which the plain median does not: of normal noise the interval
//! is a fifth narrower.

use statrs::distribution::{ContinuousCDF, Normal};

/// The median of sorted numbers; of an even number, the middle of the two in the middle.
pub(crate) fn median(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    if sorted.len() % 2 == 1 { Some(upper) } else { Some((sorted.get(middle - 1)? + upper) / 2.0) }
}

/// The averages of all two of some numbers, each number with itself included, in rising order (Walsh).
pub(crate) struct Averages {
    sorted: Vec<f64>,
    of: usize,
}

impl Averages {
    pub(crate) fn new(numbers: &[f64]) -> Self {
        let mut sorted: Vec<f64> = Vec::with_capacity(numbers.len() * (numbers.len() + 1) / 2);
        for (i, a) in numbers.iter().enumerate() {
            sorted.extend(numbers.iter().skip(i).map(|b| (a + b) / 2.0));
        }
        sorted.sort_unstable_by(f64::total_cmp);
        Averages { sorted, of: numbers.len() }
    }

    /// The numbers' middle (Hodges and Lehmann); `None` of no numbers.
    pub(crate) fn middle(&self) -> Option<f64> {
        median(&self.sorted)
    }

    /// An interval that holds the middle of a symmetric source with probability of at least `1 - alpha`. `None` if
    /// there are too few numbers for any.
    pub(crate) fn interval(&self, alpha: f64) -> Option<(f64, f64)> {
        let cut = ranks_below(self.of, alpha / 2.0).checked_sub(1)?;
        Some((*self.sorted.get(cut)?, *self.sorted.get(self.sorted.len() - 1 - cut)?))
    }
}

/// Numbers up to which the distribution of rank sums is counted out. Beyond, it is normal as near as matters, with
/// tails that are a little lighter.
const COUNTED_OUT: usize = 60;

/// How many of the smallest rank sums (0, 1, …) come up with probability `tail` or less in all.
fn ranks_below(numbers: usize, tail: f64) -> usize {
    let largest = numbers * (numbers + 1) / 2;
    if numbers > COUNTED_OUT {
        let n = numbers as f64;
        let deviation = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
        let cut = largest as f64 / 2.0 - 0.5 + normal_quantile(tail) * deviation;
        return (cut + 1.0).floor().max(0.0) as usize;
    }
    // The share of all sets of ranks that has each sum.
    let mut share = vec![0.0f64; largest + 1];
    share[0] = 1.0;
    for rank in 1..=numbers {
        for sum in (0..=largest).rev() {
            let with_rank = if sum >= rank { share[sum - rank] } else { 0.0 };
            share[sum] = (share[sum] + with_rank) / 2.0;
        }
    }
    let mut until = 0.0;
    let rare = |share: &&f64| {
        until += **share;
        until <= tail
    };
    share.iter().take_while(rare).count().min(largest / 2)
}

/// The quantile of the standard normal distribution.
pub(crate) fn normal_quantile(probability: f64) -> f64 {
    Normal::standard().inverse_cdf(probability)
}

/// The smallest difference that would be seen in four of five such comparisons, from the
/// width of the interval at `alpha`.
pub(crate) fn smallest_detectable(interval: (f64, f64), alpha: f64) -> f64 {
    let z = normal_quantile(1.0 - alpha / 2.0);
    (interval.1 - interval.0) / 2.0 * (1.0 + normal_quantile(0.8) / z)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use rand::{RngExt as _, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    #[test]
    fn cuts_are_those_of_the_tables() {
        // Tables of the signed-rank test, two-sided 5%: the critical sum is one less than the number of sums below.
        let critical = |n, alpha: f64| ranks_below(n, alpha / 2.0).checked_sub(1);
        assert_eq!([5, 6, 10, 20, 50].map(|n| critical(n, 0.05)), [None, Some(0), Some(8), Some(52), Some(434)]);
        assert_eq!([10, 20].map(|n| critical(n, 0.01)), [Some(3), Some(37)]);
        assert_eq!(critical(10, 2.0 / 1024.0), Some(0));
    }

    #[test]
    fn many_ranks_are_cut_as_if_they_were_counted_out() {
        // By the exact distribution: 60 numbers at 5% and at 0.1%; the approximation begins at 61.
        for tail in [0.025, 0.0005] {
            let (counted, near) = (ranks_below(60, tail) as f64, ranks_below(61, tail) as f64);
            assert!(near >= counted && near - counted < 25.0, "{counted} {near}");
        }
        assert_eq!(ranks_below(61, 1e-300), 0);
    }

    /// Every sign of every number, slowly.
    fn slow_tail(numbers: usize, cut: usize) -> f64 {
        let sum = |signs: u32| (1..=numbers).filter(|rank| signs >> (rank - 1) & 1 == 1).sum::<usize>();
        (0..1u32 << numbers).filter(|signs| sum(*signs) <= cut).count() as f64 / f64::from(1u32 << numbers)
    }

    #[test]
    fn the_counted_distribution_is_that_of_all_signs() {
        for numbers in 6..=12 {
            let cut = ranks_below(numbers, 0.025) - 1;
            assert!(slow_tail(numbers, cut) <= 0.025 && slow_tail(numbers, cut + 1) > 0.025, "{numbers}: {cut}");
        }
    }

    #[test]
    fn the_middle_and_its_interval_of_known_numbers() {
        let averages = Averages::new(&[3.0, 1.0, 2.0]);
        assert_eq!(averages.sorted, [1.0, 1.5, 2.0, 2.0, 2.5, 3.0]);
        assert_eq!((averages.middle(), averages.interval(0.05)), (Some(2.0), None));
        assert_eq!(Averages::new(&[]).middle(), None);
        let same = Averages::new(&[0.5; 10]);
        assert_eq!((same.middle(), same.interval(0.05)), (Some(0.5), Some((0.5, 0.5))));
    }

    #[test]
    fn the_interval_holds_the_middle_as_often_as_promised() {
        for numbers in [12, 80] {
            let mut random = Pcg64Mcg::seed_from_u64(5);
            let held = (0..1000)
                .filter(|_| {
                    // Symmetric about 1, with tails as heavy as a spike in every tenth run makes them.
                    let mut draw =
                        || (random.random::<f64>() - 0.5) * if random.random::<f64>() < 0.1 { 20.0 } else { 1.0 };
                    let sample: Vec<f64> = (0..numbers).map(|_| 1.0 + draw()).collect();
                    let (low, high) = Averages::new(&sample).interval(0.05).unwrap();
                    low <= 1.0 && 1.0 <= high
                })
                .count();
            // 95% and a little more; four standard deviations either way.
            assert!((922..=985).contains(&held), "{numbers}: {held}");
        }
    }
}
