//! Walks and first touches of a run, and what large pages would save of the page faults.

use super::price::Price;
use nearmiss_analysis::{CaseError, PageFaults, Traced, replay};
use nearmiss_machine::attribution::{PageWalks, Reach, WalkedObject, Walks};
use nearmiss_record::machine::Tlb;

/// log₂ of the bytes of a small page.
pub const PAGE_LOG2: u32 = 12;

/// Walks and first touches of a run.
#[derive(Debug)]
pub struct WalksAndTouches {
    /// Walks by object.
    pub walks: Walks,
    /// Price of first touches.
    pub price: Price,
    /// Cycles of the command, its first touches at their price.
    pub cycles: u64,
    /// Translation of the machine.
    pub tlb: Tlb,
    /// Cycles of a load that hits the first level: one behind a look-up waits for both.
    pub hit_cycles: u64,
}

impl WalksAndTouches {
    /// Finds the walks of a run: one replay, of the run as it was. None if the machine's file has no translation.
    pub fn of(case: &Traced) -> Result<Option<Self>, CaseError> {
        let Some((walks, tlb)) = PageWalks::new(case.machine(), &case.symbols).zip(case.machine().tlb) else {
            return Ok(None);
        };
        let walks = case.listen(walks)?;
        let walks = walks.walks(&replay::side(&case.run)?, &case.symbols);
        let price = Price::of(PageFaults::of(&case.model), &case.machine().memory);
        let cycles = (case.model.totals.cycles + price.beyond_model()).max(1);
        let hit_cycles = case.machine().latency.level_cycles.first().copied().unwrap_or(0).into();
        Ok(Some(WalksAndTouches { walks, price, cycles, tlb, hit_cycles }))
    }

    /// Share of the cycles that walks and page faults of the memory take, as if nothing hid the walks.
    pub fn most_gain(&self) -> f64 {
        let second = self.tlb.second.map_or(0, |second| u64::from(second.walk_cycles));
        let each = u64::from(self.tlb.miss_cycles) + self.hit_cycles;
        let look_ups = self.walks.first_misses * each + self.walks.walks * second;
        let faults = self.price.small(self.walks.all.first_touches);
        ((look_ups as f64 + faults) / self.cycles as f64).min(1.0)
    }

    /// Cycles of page faults that this memory would save in large pages; below 0 where clearing whole large pages
    /// takes more. A large page takes one fault, and all of it is cleared. Where the recording saw pages of a block
    /// before the first touch of another one, the block was cleared before.
    pub fn saved_in_faults(&self, reach: &Reach) -> f64 {
        self.price.small(reach.first_touches) - reach.large_faults * self.price.large()
    }

    /// The objects that matter, most walks first, as a rehearsal numbers them from 1.
    pub fn objects(&self) -> &[WalkedObject] {
        &self.walks.objects
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::price::tests::{MEASURED, MODELLED};
    use super::*;
    use nearmiss_machine::describe::preset;
    use nearmiss_record::machine::SecondTlb;

    fn seen(faults: PageFaults) -> WalksAndTouches {
        let second = Some(SecondTlb { entries: 64, walk_cycles: 60, large_walk_cycles: 50, ..SecondTlb::default() });
        let tlb = Tlb { entries: 16, miss_cycles: 7, second, ..Tlb::default() };
        let price = Price::of(faults, &preset("zen4-genoa").unwrap().machine().unwrap().memory);
        WalksAndTouches {
            walks: Walks::default(),
            price,
            cycles: 10_000_000 + price.beyond_model(),
            tlb,
            hit_cycles: 4,
        }
    }

    fn saved(seen: &WalksAndTouches, first_touches: u64, large_faults: u32) -> f64 {
        let large_faults = f64::from(large_faults);
        seen.saved_in_faults(&Reach { first_touches, large_faults, ..Reach::default() })
    }

    #[test]
    fn a_large_page_takes_one_fault_and_is_cleared_whole() {
        let seen = seen(MODELLED);
        // 500 cycles of clearing and 1,000 others a page.
        assert_eq!(saved(&seen, 1024, 2), 1024.0 * 1500.0 - 2.0 * (1000.0 + 512.0 * 500.0));
        assert_eq!(saved(&seen, 2, 2), 3000.0 - 514_000.0, "one page of each block");
        assert_eq!(saved(&seen, 100, 0), 150_000.0, "the rest of blocks that were cleared before");
    }

    #[test]
    fn a_saved_first_touch_saves_the_machines_figure() {
        let seen = seen(MEASURED);
        assert_eq!(saved(&seen, 1000, 2), 1000.0 * 5000.0 - 2.0 * (1000.0 + 3300.0 + 512.0 * 500.0));
        assert_eq!(saved(&seen, 100, 0), 500_000.0);
    }

    #[test]
    fn the_bound_has_the_figure_on_both_sides() {
        let bound = |faults| {
            let mut seen = seen(faults);
            seen.walks.all.first_touches = 1000;
            (seen.most_gain(), saved(&seen, 1000, 0) / seen.cycles as f64)
        };
        assert_eq!(bound(MODELLED), (0.15, 0.15));
        assert_eq!(bound(MEASURED), (5.0 / 13.3, 5.0 / 13.3));
    }
}
