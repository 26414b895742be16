//! When results are looked at, and how much of the error allowed each look may spend.

/// One look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Look {
    /// After so many pairs.
    pub(crate) pairs: usize,
    /// The error that this look may make.
    pub(crate) alpha: f64,
}

/// At most this many looks: each costs a little power at the end.
const MOST_LOOKS: u32 = 5;

/// The looks of a comparison of at least `least` and at most `most` pairs.
///
/// They grow by a constant factor; the error spent until a look is that of Pocock's shape,
/// `alpha ln(1 + (e - 1) t)` at the share `t` of the pairs. The looks' own errors add up to
/// `alpha`, so that the whole stays within it whatever their correlation.
pub(crate) fn looks(least: usize, most: usize, alpha: f64) -> Vec<Look> {
    let growth = (most as f64 / least as f64).max(1.0);
    let mut at: Vec<usize> = (0..MOST_LOOKS)
        .map(|k| least as f64 * growth.powf(f64::from(k) / f64::from(MOST_LOOKS - 1)))
        .map(|pairs| (pairs - 1e-9).ceil() as usize)
        .map(|pairs| pairs.clamp(least, most.max(least)))
        .collect();
    at.dedup();
    let last = at.last().copied().unwrap_or(least) as f64;
    let mut spent = 0.0;
    at.into_iter()
        .map(|pairs| {
            let until = alpha * f64::ln(1.0 + (std::f64::consts::E - 1.0) * pairs as f64 / last);
            let look = Look { pairs, alpha: until - spent };
            spent = until;
            look
        })
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn all_looks_together_spend_what_is_allowed() {
        for (least, most) in [(10, 10), (10, 12), (10, 40), (10, 200), (20, 30)] {
            let looks = looks(least, most, 0.05);
            let spent: f64 = looks.iter().map(|look| look.alpha).sum();
            assert!((spent - 0.05).abs() < 1e-12, "{least} {most} {spent}");
            assert_eq!(looks.first().unwrap().pairs, least);
            assert_eq!(looks.last().unwrap().pairs, most);
            assert!(looks.windows(2).all(|two| two[0].pairs < two[1].pairs));
            assert!(looks.iter().all(|look| look.alpha > 0.0));
        }
    }

    #[test]
    fn looks_grow_by_a_constant_factor() {
        let at: Vec<usize> = looks(10, 160, 0.05).iter().map(|look| look.pairs).collect();
        assert_eq!(at, [10, 20, 40, 80, 160]);
    }
}
