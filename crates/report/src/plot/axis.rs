//! Round numbers along an axis.

/// Ticks from a round number at or below `low` to one at or above `high`, some `intervals` apart: the axis goes from the
/// first to the last.
pub(super) fn round_ticks(low: f64, high: f64, intervals: f64) -> Vec<f64> {
    let rough = ((high - low) / intervals).max(1e-9);
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|m| m * power).find(|s| *s >= rough * 0.999).unwrap_or(rough);
    let (first, last) = ((low / step).floor() as i64, (high / step).ceil() as i64);
    (first..=last).map(|i| i as f64 * step).collect()
}

#[cfg(test)]
mod tests {
    use super::round_ticks;

    #[test]
    fn axes_end_at_round_numbers() {
        assert_eq!(round_ticks(0.0, 42.9, 5.0), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]);
        assert_eq!(round_ticks(-53.3, 0.8, 5.0), [-60.0, -40.0, -20.0, 0.0, 20.0]);
        assert_eq!(round_ticks(0.0, 0.0, 5.0), [0.0]);
    }
}
