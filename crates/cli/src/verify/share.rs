//! Shares, as options give them.

/// `5%` or `0.05`, as a share.
pub fn parse_share(text: &str) -> Result<f64, String> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|p| p / 100.0),
        None => text.parse(),
    };
    share
        .ok()
        .filter(|s| (0.0..1.0).contains(s))
        .ok_or_else(|| format!("`{text}` is not a share; write for example 5%"))
}
