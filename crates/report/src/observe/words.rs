//! Figures in words.

/// `1.25 s`, `340 ms`, `17.0 µs`, `250 ns`: three digits.
pub fn time(ns: u64) -> String {
    let (value, unit) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (ns as f64 / 1e3, "µs"),
        1_000_000..1_000_000_000 => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    let decimals = if value < 9.995 {
        2
    } else if value < 99.95 {
        1
    } else {
        0
    };
    format!("{value:.decimals$} {unit}")
}

/// The value below which this share of a log₂ histogram lies: the upper end of its slot.
pub fn quantile(slots: &[u32], share: f64) -> u64 {
    let total: u64 = slots.iter().map(|n| u64::from(*n)).sum();
    let mut seen = 0;
    for (i, n) in slots.iter().enumerate() {
        seen += u64::from(*n);
        if seen as f64 >= share * total as f64 {
            return 1u64 << (i + 1).min(63);
        }
    }
    0
}

/// The last part of a path.
pub fn short(module: &str) -> &str {
    module.rsplit('/').next().unwrap_or(module)
}

/// Cut to so many characters, an ellipsis at the end.
pub fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut out: String = text.chars().take(width.saturating_sub(1)).collect();
    out.push('…');
    out
}

/// A place in the source, the end of its path kept.
pub fn place(line: &str, width: usize) -> String {
    let count = line.chars().count();
    if count <= width {
        return line.to_owned();
    }
    let mut out = "…".to_owned();
    out.extend(line.chars().skip(count - width.saturating_sub(1)));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_a_unit() {
        assert_eq!(time(999), "999 ns");
        assert_eq!(time(2_000_000), "2.00 ms");
        assert_eq!(time(12_345_678), "12.3 ms");
        assert_eq!(quantile(&[0, 0, 0, 5, 5], 0.5), 16);
        assert_eq!(quantile(&[0, 0, 0, 5, 5], 0.9), 32);
        assert_eq!(place("/a/b/c.c:12", 6), "….c:12");
    }
}
