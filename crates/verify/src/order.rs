use rand::{RngExt as _, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::Serialize;
use std::fmt;

/// One side of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// A: the command as it is.
    Without,
    /// B: the command under the remedy.
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

/// Blocks of four runs, ABBA or BAAB as the coin falls.
pub(crate) struct Blocks {
    coin: Pcg64Mcg,
}

impl Blocks {
    pub(crate) fn new(seed: u64) -> Self {
        Blocks { coin: Pcg64Mcg::seed_from_u64(seed) }
    }

    /// The first side of the next block: ABBA begins without, BAAB with.
    pub(crate) fn next_block(&mut self) -> [Side; 4] {
        use Side::{With as B, Without as A};
        if self.coin.random::<bool>() { [A, B, B, A] } else { [B, A, A, B] }
    }
}

/// A block in letters, as it is printed.
pub(crate) fn letters(block: [Side; 4]) -> String {
    block.iter().map(|side| if *side == Side::Without { 'A' } else { 'B' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_is_balanced_and_both_orders_come() {
        let mut blocks = Blocks::new(7);
        let drawn: Vec<String> = (0..100).map(|_| letters(blocks.next_block())).collect();
        let abba = drawn.iter().filter(|block| *block == "ABBA").count();
        assert!(drawn.iter().all(|block| block == "ABBA" || block == "BAAB"));
        assert!((35..=65).contains(&abba), "{abba}");
    }

    #[test]
    fn the_seed_fixes_the_order() {
        let drawn = |seed| {
            let mut blocks = Blocks::new(seed);
            (0..20).map(|_| letters(blocks.next_block())).collect::<String>()
        };
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
    }
}
