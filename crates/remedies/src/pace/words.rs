//! Times as a sentence has them.

/// `850 ns`, `50 µs`, `1.4 ms`.
pub fn time(ns: u64) -> String {
    let (figure, unit) = match ns {
        0..1_000 => (ns as f64, "ns"),
        1_000..1_000_000 => (ns as f64 / 1e3, "µs"),
        _ => (ns as f64 / 1e6, "ms"),
    };
    // Ten and more need no tenths, and neither does a whole number.
    let decimals = usize::from(figure < 9.95 && (figure * 10.0).round() % 10.0 != 0.0);
    format!("{figure:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn times_have_two_digits_where_they_need_them() {
        let printed = [850, 2_000, 50_000, 1_000_000, 1_440_000, 40_000_000].map(time);
        assert_eq!(printed, ["850 ns", "2 µs", "50 µs", "1 ms", "1.4 ms", "40 ms"]);
    }
}
