//! Sizes as people type them.

/// Bytes: `65536`, `64k` or `1M`.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text
        .trim_end_matches(['B', 'i'])
        .split_at_checked(text.trim_end_matches(['B', 'i']).trim_end_matches(|c: char| c.is_ascii_alphabetic()).len())
    {
        Some((digits, "")) => (digits, 1),
        Some((digits, "k" | "K")) => (digits, 1 << 10),
        Some((digits, "M" | "m")) => (digits, 1 << 20),
        _ => return Err("write a size as 65536, 64k or 1M".to_owned()),
    };
    let number: u64 = digits.parse().map_err(|_| "write a size as 65536, 64k or 1M".to_owned())?;
    number.checked_mul(unit).ok_or_else(|| "too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_usual_suffixes() {
        assert_eq!(parse_size("4096"), Ok(4096));
        assert_eq!(parse_size("64k"), Ok(65_536));
        assert_eq!(parse_size("1MiB"), Ok(1 << 20));
        assert!(parse_size("x").is_err() && parse_size("").is_err() && parse_size("5q").is_err());
    }
}
