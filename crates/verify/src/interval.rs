//! The median, and an interval for it from order statistics.

use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, Normal};

/// The median of some numbers; of an even number, the middle of the two in the middle.
pub(crate) fn median(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    if sorted.len() % 2 == 1 { Some(upper) } else { Some((sorted.get(middle - 1)? + upper) / 2.0) }
}

/// An interval that holds the median of the source with probability of at least `1 - alpha`,
/// whatever its distribution: from the r-th smallest to the r-th largest, with the largest r
/// for which a fair coin gives fewer than r heads in at most `alpha / 2` of cases. `None` if
/// there are too few numbers for any.
pub(crate) fn median_interval(sorted: &[f64], alpha: f64) -> Option<(f64, f64)> {
    let coin = Binomial::new(0.5, sorted.len() as u64).ok()?;
    let outside = (0..sorted.len() / 2).take_while(|&heads| coin.cdf(heads as u64) <= alpha / 2.0).count();
    let r = outside.checked_sub(1)?;
    Some((*sorted.get(r)?, *sorted.get(sorted.len() - 1 - r)?))
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

    fn one_to(n: u32) -> Vec<f64> {
        (1..=n).map(f64::from).collect()
    }

    #[test]
    fn intervals_are_those_of_the_tables() {
        // Tables of the sign test at 95%: n = 10: 2nd and 9th; 20: 6th and 15th; 6: all.
        assert_eq!(median_interval(&one_to(10), 0.05), Some((2.0, 9.0)));
        assert_eq!(median_interval(&one_to(20), 0.05), Some((6.0, 15.0)));
        assert_eq!(median_interval(&one_to(6), 0.05), Some((1.0, 6.0)));
        assert_eq!(median_interval(&one_to(5), 0.05), None);
        assert_eq!(median_interval(&[], 0.05), None);
        assert_eq!(median_interval(&one_to(10), 0.01), Some((1.0, 10.0)));
        assert_eq!(median(&one_to(10)), Some(5.5));
        assert_eq!(median(&one_to(11)), Some(6.0));
    }

    #[test]
    fn the_interval_holds_the_median_as_often_as_promised() {
        let mut random = Pcg64Mcg::seed_from_u64(5);
        let held = (0..2000)
            .filter(|_| {
                // A skewed source whose median is ln 2.
                let mut sample: Vec<f64> = (0..30).map(|_| -f64::ln(1.0 - random.random::<f64>())).collect();
                sample.sort_by(f64::total_cmp);
                let (low, high) = median_interval(&sample, 0.05).unwrap();
                low <= std::f64::consts::LN_2 && std::f64::consts::LN_2 <= high
            })
            .count();
        // 95.7% by the binomial distribution for n = 30; four standard deviations either way.
        assert!((1875..=1955).contains(&held), "{held}");
    }
}
