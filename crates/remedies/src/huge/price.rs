//! Price of first touches: by the machine's figures where it has them, else as modelled.

use nearmiss_analysis::PageFaults;
use nearmiss_record::machine::Memory;

/// Small pages in a large one.
const PAGES: u64 = 512;

/// Cycles of first touches of a run. Where the machine has a figure above the modelled price, a page that was given out
/// one by one has that figure, and the run takes as much longer.
#[derive(Clone, Copy, Debug)]
pub struct Price {
    faults: PageFaults,
    /// The machine's figure of a large page.
    large: Option<u32>,
}

impl Price {
    /// Of these page faults on a machine with this memory.
    pub fn of(faults: PageFaults, memory: &Memory) -> Self {
        Price { faults, large: memory.large_first_touch_cycles }
    }

    /// Cycles of one first touch of a small page by the machine's figure, and those of them that are modelled; `None`:
    /// all of the price is modelled.
    pub fn figure(&self) -> Option<(u64, u64)> {
        let PageFaults { each_cycles, beyond_model_cycles, .. } = self.faults;
        (beyond_model_cycles > 0).then_some((each_cycles + beyond_model_cycles, each_cycles))
    }

    /// Cycles of all first touches that the modelled run does not have.
    pub fn beyond_model(&self) -> u64 {
        self.faults.beyond_cycles()
    }

    /// Cycles of so many first touches of small pages.
    pub fn small(&self, touches: u64) -> f64 {
        let (clearing, fault) = self.modelled();
        let modelled = clearing + fault;
        let more = self.figure().map_or(0.0, |(figure, _)| (figure as f64 - modelled).max(0.0));
        touches as f64 * modelled + touches.min(self.faults.one_by_one) as f64 * more
    }

    /// Cycles of one first touch of a large page: one page fault, and all of it is cleared.
    pub fn large(&self) -> f64 {
        let (clearing, fault) = self.modelled();
        let modelled = fault + PAGES as f64 * clearing;
        match (self.figure(), self.large) {
            (None, _) => modelled,
            (Some(_), Some(figure)) => modelled.max(f64::from(figure)),
            (Some(_), None) => modelled + self.faults.beyond_model_cycles as f64,
        }
    }

    /// Cycles of all page faults that give pages: no change saves more of them.
    pub fn all(&self) -> f64 {
        (self.faults.cycles as f64).max(self.small(self.faults.cleared))
    }

    /// Modelled cycles of one first touch: those of clearing the page, and all others of the page fault.
    fn modelled(&self) -> (f64, f64) {
        let PageFaults { cleared, clearing_cycles, cycles, .. } = self.faults;
        let pages = cleared.max(1) as f64;
        (clearing_cycles as f64 / pages, cycles.saturating_sub(clearing_cycles) as f64 / pages)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// 500 cycles of clearing and 1,000 others a page.
    pub const MODELLED: PageFaults = PageFaults {
        cleared: 1000,
        different: 1000,
        clearing_cycles: 500_000,
        cycles: 1_500_000,
        one_by_one: 0,
        each_cycles: 0,
        beyond_model_cycles: 0,
    };
    /// Another 200 cycles around each page fault, and 3,300 that the model does not have.
    pub const MEASURED: PageFaults =
        PageFaults { one_by_one: 1000, each_cycles: 1700, beyond_model_cycles: 3300, ..MODELLED };

    #[test]
    fn without_a_figure_the_price_is_as_modelled() {
        let price = Price { faults: MODELLED, large: Some(900_000) };
        assert_eq!((price.figure(), price.beyond_model()), (None, 0));
        assert_eq!((price.small(10), price.large()), (15_000.0, 257_000.0));
        assert_eq!(price.all(), 1_500_000.0);
    }

    #[test]
    fn a_page_given_out_one_by_one_has_the_machines_figure() {
        let price = Price { faults: MEASURED, large: None };
        assert_eq!((price.figure(), price.beyond_model()), (Some((5000, 1700)), 3_300_000));
        assert_eq!((price.small(10), price.all()), (50_000.0, 5_000_000.0));
        assert_eq!(price.large(), 257_000.0 + 3300.0);
    }

    #[test]
    fn a_large_page_takes_no_less_than_was_modelled() {
        let large = |figure| Price { faults: MEASURED, large: Some(figure) }.large();
        assert_eq!([large(100), large(400_000)], [257_000.0, 400_000.0]);
    }

    #[test]
    fn no_more_pages_have_the_figure_than_were_given_out_one_by_one() {
        let faults = PageFaults { one_by_one: 400, ..MEASURED };
        let price = Price { faults, large: None };
        assert_eq!(price.small(1000), 400.0 * 5000.0 + 600.0 * 1500.0);
        assert_eq!(price.beyond_model(), 400 * 3300);
    }
}
