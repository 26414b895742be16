//! The paper's way to a better placement: while the load is even, one swap a period, undone if the affinity fell.

use crate::bitmaps::Bitmaps;

/// Two tasks of different domains that change places. Its undoing is itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Swap {
    /// One.
    pub a: usize,
    /// The other.
    pub b: usize,
}

/// Action in a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Try this.
    Try(Swap),
    /// The last one did harm: take it back.
    Undo(Swap),
    /// Leave the tasks where they are.
    Stay,
}

/// Proposes swaps and takes back those that did harm.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Swapper {
    /// The swap that is being tried, and the affinity before it.
    tried: Option<(Swap, f64)>,
}

impl Swapper {
    /// A period is over, with so much affinity in it (more is better), such as the share of time in pairs that share well.
    /// `domains` has the tasks of each domain, a bit each. After a swap that did no harm, or one that was taken back, the
    /// next period is without a swap only where none is worth trying.
    pub fn period(&mut self, affinity: f64, bitmaps: &Bitmaps, domains: &[u64]) -> Step {
        if let Some((swap, before)) = self.tried.take()
            && affinity < before
        {
            return Step::Undo(swap);
        }
        let Some(swap) = worth_trying(bitmaps, domains) else { return Step::Stay };
        self.tried = Some((swap, affinity));
        Step::Try(swap)
    }
}

/// The tasks of two domains that fit worst where they are, if each fits the other's place better by its score: those of
/// the lowest scores, and of several the pair that gains most.
fn worth_trying(bitmaps: &Bitmaps, domains: &[u64]) -> Option<Swap> {
    let worst = |tasks: u64| bitmaps.by_score(tasks).first().copied();
    let mut best: Option<(i32, Swap)> = None;
    for (at, &one) in domains.iter().enumerate() {
        for &other in &domains[at + 1..] {
            let (Some(a), Some(b)) = (worst(one), worst(other)) else { continue };
            let (bit_a, bit_b) = (1u64 << a, 1u64 << b);
            let now = bitmaps.score(a, one) + bitmaps.score(b, other);
            let then = bitmaps.score(a, other & !bit_b) + bitmaps.score(b, one & !bit_a);
            if then > now && best.is_none_or(|(gain, _)| then - now > gain) {
                best = Some((then - now, Swap { a, b }));
            }
        }
    }
    best.map(|(_, swap)| swap)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Affinity;

    /// Even numbers share well with one another, odd ones too, and an even one badly with an odd one.
    fn parity() -> Bitmaps {
        let mut bitmaps = Bitmaps::default();
        for a in 0..8 {
            (0..a).for_each(|b| bitmaps.set(a, b, if a % 2 == b % 2 { Affinity::High } else { Affinity::Low }));
        }
        bitmaps
    }

    #[test]
    fn tasks_that_fit_each_other_s_place_are_swapped_until_all_fit() {
        let (bitmaps, mut swapper) = (parity(), Swapper::default());
        // 0, 2, 4 and 7; 1, 3, 5 and 6.
        let mut domains = [0b1001_0101, 0b0110_1010];
        assert_eq!(swapper.period(0.5, &bitmaps, &domains), Step::Try(Swap { a: 7, b: 6 }));
        domains = [0b0101_0101, 0b1010_1010];
        assert_eq!(swapper.period(1.0, &bitmaps, &domains), Step::Stay);
    }

    #[test]
    fn a_swap_that_did_harm_is_taken_back() {
        let (bitmaps, mut swapper) = (parity(), Swapper::default());
        let domains = [0b1001_0101, 0b0110_1010];
        let swap = Swap { a: 7, b: 6 };
        assert_eq!(swapper.period(0.5, &bitmaps, &domains), Step::Try(swap));
        assert_eq!(swapper.period(0.4, &bitmaps, &domains), Step::Undo(swap));
        assert_eq!(swapper.period(0.5, &bitmaps, &domains), Step::Try(swap), "it learns nothing from that");
        assert_eq!(Swapper::default().period(0.5, &bitmaps, &[0b11, 0]), Step::Stay);
    }
}
