//! When results are looked at, and how much of the error allowed each look may spend.

/// Pairs grow by this factor from look to look.
const GROWTH: f64 = 1.5;
/// Share of the error that the looks get by their number, each half of what the one before got: a difference that
/// leaps to the eye ends the comparison early.
const EARLY: f64 = 0.2;
/// The rest is spent with this power of the time used up: nearly all of it is there for the last look.
const POWER: i32 = 4;
/// Share of the time after which only the end is looked at, for looks that come close together waste error.
const NO_LOOKS_AFTER: f64 = 0.7;

/// The looks of a comparison, and what they have spent (Lan and DeMets).
///
/// A comparison's progress is a time and a number of pairs, and neither shows which side is better. The looks' own
/// errors add up to what is allowed, so that the whole stays within it at any correlation.
pub(crate) struct Looks {
    allowed: f64,
    spent: f64,
    at: Vec<usize>,
    next: usize,
}

impl Looks {
    /// The first look comes after `least` pairs.
    pub(crate) fn new(least: usize, allowed: f64) -> Self {
        Looks { allowed, spent: 0.0, at: Vec::new(), next: least }
    }

    /// The error that a look after so many pairs may make; `used` is the share of the time or pairs used up. `None`:
    /// no look now.
    pub(crate) fn look(&mut self, pairs: usize, used: f64) -> Option<f64> {
        if used >= 1.0 && pairs >= self.at.last().copied().unwrap_or(self.next) {
            return Some(self.spend(pairs, self.allowed));
        }
        if pairs < self.next {
            return None;
        }
        self.next = (self.next as f64 * GROWTH).ceil() as usize;
        if used > NO_LOOKS_AFTER {
            return None;
        }
        let early = 1.0 - 0.5f64.powi(self.at.len() as i32 + 1);
        Some(self.spend(pairs, self.allowed * (EARLY * early + (1.0 - EARLY) * used.powi(POWER))))
    }

    fn spend(&mut self, pairs: usize, until: f64) -> f64 {
        self.at.push(pairs);
        until - std::mem::replace(&mut self.spent, until)
    }

    /// Returns after how many pairs results were looked at.
    pub(crate) fn into_pairs(self) -> Vec<usize> {
        self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks at every pair until the end, where a pair takes `step` of the time.
    fn all(least: usize, step: f64) -> (Vec<usize>, Vec<f64>) {
        let mut looks = Looks::new(least, 0.05);
        let mut spent = Vec::new();
        for pairs in 1.. {
            let used = pairs as f64 * step;
            spent.extend(looks.look(pairs, used));
            if used >= 1.0 && pairs >= least {
                break;
            }
        }
        (looks.into_pairs(), spent)
    }

    #[test]
    fn all_looks_together_spend_what_is_allowed() {
        for step in [2.0, 0.1, 0.03, 0.001, 0.0001] {
            let (at, spent) = all(10, step);
            assert!((spent.iter().sum::<f64>() - 0.05).abs() < 1e-12, "{step}: {spent:?}");
            assert!(spent.iter().all(|spent| *spent > 0.0), "{step}: {spent:?}");
            assert!(at.windows(2).all(|two| two[0] < two[1]) && at[0] == 10, "{step}: {at:?}");
            // At least half of it is left for the last look.
            assert!(spent[spent.len() - 1] > 0.025, "{step}: {spent:?}");
        }
    }

    #[test]
    fn looks_grow_by_a_constant_factor_and_pause_before_the_end() {
        assert_eq!(all(10, 0.01).0, [10, 15, 23, 35, 53, 100]);
        assert_eq!(all(10, 1.0).0, [10]);
    }

    #[test]
    fn the_first_pairs_decide_where_all_agree() {
        let mut looks = Looks::new(10, 0.02);
        assert!(looks.look(10, 0.001).is_some_and(|alpha| alpha >= 2.0 / 1024.0), "one metric: ten pairs");
        let mut looks = Looks::new(10, 0.01);
        assert!(looks.look(10, 0.001).is_some_and(|alpha| alpha < 2.0 / 1024.0));
        assert!(looks.look(15, 0.002).is_some_and(|alpha| alpha >= 2.0 / 32768.0), "two metrics: fifteen");
    }
}
