use rand::{RngExt as _, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::fmt;

/// One side of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// A: the command as it is, or the first of two.
    Without,
    /// B: the command under the remedy, or the second of two.
    With,
}

impl fmt::Display for Side {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Side::Without => "without",
            Side::With => "with",
        })
    }
}

/// Pairs of runs, AB or BA as the coin falls for each.
///
/// Each coin is its own: under no difference, a pair's ratio is then as likely above as below, independent of the
/// others', which is all that the interval assumes. Blocks ABBA, one coin for two pairs, are not enough: a disturbance
/// as long as two runs moves both pairs of a block the same way.
pub(crate) struct Coin(Pcg64Mcg);

impl Coin {
    pub(crate) fn new(seed: u64) -> Self {
        Coin(Pcg64Mcg::seed_from_u64(seed))
    }

    /// The sides of the next pair, in order.
    pub(crate) fn next_pair(&mut self) -> [Side; 2] {
        if self.0.random::<bool>() { [Side::Without, Side::With] } else { [Side::With, Side::Without] }
    }
}

/// A pair in letters, as it is printed.
pub(crate) fn letters(pair: [Side; 2]) -> String {
    pair.iter().map(|side| if *side == Side::Without { 'A' } else { 'B' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(seed: u64, pairs: usize) -> Vec<String> {
        let mut coin = Coin::new(seed);
        (0..pairs).map(|_| letters(coin.next_pair())).collect()
    }

    #[test]
    fn both_orders_come_and_none_predicts_the_next() {
        let drawn = drawn(7, 1000);
        let count = |of: &dyn Fn(&&[String]) -> bool| drawn.windows(2).filter(of).count();
        assert!(drawn.iter().all(|pair| pair == "AB" || pair == "BA"));
        // Four standard deviations either way.
        assert!((437..=563).contains(&count(&|two| two[0] == "AB")));
        assert!((437..=563).contains(&count(&|two| two[0] == two[1])));
    }

    #[test]
    fn the_seed_fixes_the_order() {
        assert_eq!(drawn(1, 40), drawn(1, 40));
        assert_ne!(drawn(1, 40), drawn(2, 40));
    }
}
