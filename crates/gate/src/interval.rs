//! The noise of a difference of two means, from how the recordings of each side differ among themselves.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Confidence of an interval. A gate compares some 25 figures, and a false alarm once in a hundred gates is too many.
pub const CONFIDENCE: f64 = 0.999;

/// Two means, and how far their difference may be from the true one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Difference {
    pub old: f64,
    pub new: f64,
    /// Half of the interval's width.
    pub noise: f64,
}

/// Returns the means of two sides and Student's interval with both sides' spread pooled, because one remains after a change
/// as noisy as it was. Where every recording of a side counts the same on both sides, there is no noise.
pub(crate) fn difference(old: &[u64], new: &[u64]) -> Difference {
    let ((old_mean, old_squares), (new_mean, new_squares)) = (moments(old), moments(new));
    let freedom = (old.len() + new.len()).saturating_sub(2);
    let squares = old_squares + new_squares;
    let noise = if squares == 0.0 {
        0.0
    } else {
        let of_mean = squares / freedom.max(1) as f64 * (1.0 / old.len().max(1) as f64 + 1.0 / new.len().max(1) as f64);
        quantile(freedom) * of_mean.sqrt()
    };
    Difference { old: old_mean, new: new_mean, noise }
}

/// Returns the factor by which the noise shrinks from `now` to `then` recordings of both sides, if they spread as much.
pub(crate) fn narrower(now: [usize; 2], then: [usize; 2]) -> f64 {
    let width = |[old, new]: [usize; 2]| {
        let of_mean = 1.0 / old.max(1) as f64 + 1.0 / new.max(1) as f64;
        quantile((old + new).saturating_sub(2)) * of_mean.sqrt()
    };
    width(then) / width(now)
}

/// Mean, and sum of the squared distances from it.
fn moments(counts: &[u64]) -> (f64, f64) {
    let mean = counts.iter().map(|count| *count as f64).sum::<f64>() / counts.len().max(1) as f64;
    (mean, counts.iter().map(|count| (*count as f64 - mean).powi(2)).sum())
}

fn quantile(freedom: usize) -> f64 {
    let at = 1.0 - (1.0 - CONFIDENCE) / 2.0;
    StudentsT::new(0.0, 1.0, freedom.max(1) as f64).map_or(f64::INFINITY, |t| t.inverse_cdf(at))
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
        assert_eq!(narrower([3, 3], [3, 3]), 1.0);
        // t(18) at 99.95% is 3.922.
        let expected = 3.921_646 / 8.610_302 * (3.0_f64 / 10.0).sqrt();
        assert!((narrower([3, 3], [10, 10]) - expected).abs() < 1e-5);
    }
}
