//! The noise of a difference of two means, from how the recordings of each side differ among themselves.

use statrs::distribution::{ChiSquared, ContinuousCDF, StudentsT};

/// Confidence of an interval. A gate compares some 25 figures, and a false alarm once in a hundred gates is too many.
pub const CONFIDENCE: f64 = 0.999;

/// Confidence that the true spread is no smaller than taken for.
const SPREAD_CONFIDENCE: f64 = 0.975;

/// Two means, and how far their difference may be from the true one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Mean of the old side.
    pub old: f64,
    /// Mean of the new side.
    pub new: f64,
    /// Half of the interval's width.
    pub noise: f64,
}

/// Returns the means of two sides and Student's interval with both sides' spread pooled, because one remains after a change
/// as noisy as it was. Where every recording of a side counts the same on both sides, there is no noise.
pub fn difference(old: &[u64], new: &[u64]) -> Difference {
    let ((old_mean, old_squares), (new_mean, new_squares)) = (moments(old), moments(new));
    let freedom = freedom([old.len(), new.len()]);
    let squares = old_squares + new_squares;
    let noise = if squares == 0.0 {
        0.0
    } else {
        let of_mean = squares / freedom * (1.0 / old.len().max(1) as f64 + 1.0 / new.len().max(1) as f64);
        quantile(freedom) * of_mean.sqrt()
    };
    Difference { old: old_mean, new: new_mean, noise }
}

/// Returns the factor by which the noise shrinks from `now` to `then` recordings of both sides, if they spread as little as
/// those so far allow for: a few with one outlier among them spread more than many will.
pub(crate) fn narrower(now: [usize; 2], then: [usize; 2]) -> f64 {
    let width = |sides: [usize; 2]| {
        let of_mean: f64 = sides.iter().map(|side| 1.0 / (*side).max(1) as f64).sum();
        quantile(freedom(sides)) * of_mean.sqrt()
    };
    width(then) / width(now) * least_spread(freedom(now))
}

/// Returns the lower end of the true spread as a share of the one that was seen, by the chi-square distribution.
fn least_spread(freedom: f64) -> f64 {
    ChiSquared::new(freedom).map_or(1.0, |squares| (freedom / squares.inverse_cdf(SPREAD_CONFIDENCE)).sqrt())
}

fn freedom([old, new]: [usize; 2]) -> f64 {
    (old + new).saturating_sub(2).max(1) as f64
}

/// Mean, and sum of the squared distances from it.
fn moments(counts: &[u64]) -> (f64, f64) {
    let mean = counts.iter().map(|count| *count as f64).sum::<f64>() / counts.len().max(1) as f64;
    (mean, counts.iter().map(|count| (*count as f64 - mean).powi(2)).sum())
}

fn quantile(freedom: f64) -> f64 {
    let at = 1.0 - (1.0 - CONFIDENCE) / 2.0;
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::INFINITY, |t| t.inverse_cdf(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_repetition_has_no_noise() {
        assert_eq!(difference(&[7, 7, 7], &[9, 9, 9]), Difference { old: 7.0, new: 9.0, noise: 0.0 });
    }

    #[test]
    fn noise_is_students_of_both_sides() {
        // Three and three, each with a variance of 100: t(4) at 99.95% is 8.610.
        let noisy = difference(&[90, 100, 110], &[190, 200, 210]);
        assert_eq!((noisy.old, noisy.new), (100.0, 200.0));
        let expected = 8.610_301_581 * (100.0_f64 * 2.0 / 3.0).sqrt();
        assert!((noisy.noise - expected).abs() < 1e-3, "{} and {expected}", noisy.noise);
        // More recordings make it narrower, by the root and by the quantile.
        let often = difference(&[90, 100, 110, 90, 100, 110, 90, 100, 110], &[190; 9]);
        assert!(often.noise < noisy.noise / 3.0, "{}", often.noise);
    }

    #[test]
    fn more_recordings_are_foreseen() {
        // Chi-square(4) at 97.5% is 11.143, t(18) at 99.95% is 3.922.
        let spread = (4.0_f64 / 11.143_287).sqrt();
        assert!((narrower([3, 3], [3, 3]) - spread).abs() < 1e-6);
        let expected = 3.921_646 / 8.610_302 * (3.0_f64 / 10.0).sqrt() * spread;
        assert!((narrower([3, 3], [10, 10]) - expected).abs() < 1e-5);
    }
}
