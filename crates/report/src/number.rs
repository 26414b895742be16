//! Numbers for people: grouped, scaled, and shares that add up.

pub use nearmiss_record::words::{
    bytes, counted, duration, fixed_percent, grouped, miss_ratio, percent_of, percentage, spoken_percent,
};

/// Exact and grouped below 100,000, else three significant digits with k, M, G, T, P, E.
pub fn scaled(n: u64) -> String {
    if n < 100_000 {
        return grouped(n);
    }
    let mut value = n as f64;
    for unit in ["", "k", "M", "G", "T", "P", "E"] {
        // 999.5 would print as 1000.
        if value < 999.5 || unit == "E" {
            let decimals = if value < 9.995 {
                2
            } else if value < 99.95 {
                1
            } else {
                0
            };
            return format!("{value:.decimals$} {unit}");
        }
        value /= 1000.0;
    }
    grouped(n)
}

/// Shares of the sum of `parts` in tenths of a percent that add up to exactly 1,000 (largest remainder); all zero when
/// the parts are.
pub fn shares_tenths(parts: &[u64]) -> Vec<u32> {
    let total: u128 = parts.iter().map(|p| u128::from(*p)).sum();
    if total == 0 {
        return vec![0; parts.len()];
    }
    let scaled = |p: u64| u128::from(p) * 1000;
    let mut shares: Vec<u32> = parts.iter().map(|p| (scaled(*p) / total) as u32).collect();
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(|i| (std::cmp::Reverse(scaled(parts[*i]) % total), *i));
    let missing = 1000 - shares.iter().sum::<u32>() as usize;
    for i in order.into_iter().take(missing) {
        shares[i] += 1;
    }
    shares
}

/// `12.3%` of a share in tenths, `–` for a part that is exactly nothing.
pub fn tenths(part: u64, share_tenths: u32) -> String {
    if part == 0 { "–".to_owned() } else { format!("{}.{}%", share_tenths / 10, share_tenths % 10) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(scaled(99_999), "99,999");
        assert_eq!(scaled(123_456), "123 k");
        assert_eq!(scaled(999_600), "1.00 M");
        assert_eq!(scaled(12_345_678), "12.3 M");
        assert_eq!(scaled(u64::MAX), "18.4 E");
        assert_eq!(duration(1_500_000), "1.5 ms");
    }

    #[test]
    fn shares_always_add_up() {
        for parts in [vec![1, 1, 1], vec![2, 3, 0, 5], vec![1, 999_999], vec![u64::MAX, u64::MAX, 7]] {
            assert_eq!(shares_tenths(&parts).iter().sum::<u32>(), 1000, "{parts:?}");
        }
        assert_eq!(shares_tenths(&[1, 1, 1]), [334, 333, 333]);
        assert_eq!(shares_tenths(&[0, 0]), [0, 0]);
    }
}
