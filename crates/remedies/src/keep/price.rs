//! The price of a page that the kernel gives out.

use nearmiss_analysis::{CountedPages, PageFaults, Traced};
use nearmiss_record::machine::Machine;

/// Cycles of a command, and of each page that the kernel gives it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Price {
    /// Cycles of the command, with all that page faults take.
    pub cycles: f64,
    /// Cycles of a page: fault, clearing, and giving it back.
    pub page: f64,
    /// Cycles that clear a page: a part of `page`.
    pub clearing: f64,
    /// Whether part of the price was measured on a machine.
    pub is_measured: bool,
    /// Pages that the kernel gave out one by one.
    pub pages: u64,
    /// Pages of all of the run, where parts were recorded.
    pub counted: Option<CountedPages>,
}

impl Price {
    /// Prices a run.
    pub fn of(case: &Traced) -> Self {
        Self::from(PageFaults::of(&case.model), case.model.totals.cycles, CountedPages::of(case))
    }

    fn from(faults: PageFaults, modelled_cycles: u64, counted: Option<CountedPages>) -> Self {
        Price {
            cycles: (modelled_cycles + faults.beyond_cycles()).max(1) as f64,
            page: (faults.each_cycles + faults.beyond_model_cycles) as f64,
            clearing: faults.clearing_cycles as f64 / faults.cleared.max(1) as f64,
            is_measured: faults.beyond_model_cycles > 0,
            pages: faults.one_by_one,
            counted,
        }
    }

    /// Returns the price by the parts alone.
    pub fn by_parts(self) -> Self {
        Price { counted: None, ..self }
    }

    /// Returns the price with so many times the pages of the parts.
    pub fn with(self, counted: CountedPages) -> Self {
        Price { counted: Some(counted), ..self }
    }

    fn times(&self) -> f64 {
        self.counted.map_or(1.0, |counted| counted.allowed)
    }

    /// Cycles of the command if its parts had as many of its page faults as all of the run.
    pub fn cycles_of_run(&self) -> f64 {
        (self.cycles + (self.times() - 1.0) * self.pages as f64 * self.page).max(1.0)
    }

    /// Share of the run's cycles that so many of the recorded pages take, at `each` cycles.
    pub fn share(&self, pages: u64, each: f64) -> f64 {
        (pages as f64 * self.times() * each / self.cycles_of_run()).clamp(0.0, 1.0)
    }

    /// Cycles that each page saves which is handed out again: median, least and most. Clearing a page also brings its
    /// lines into the caches. Kept memory that the caches hold saves it; where memory must be read anew, the program
    /// waits for its lines instead.
    pub fn saved(&self, machine: &Machine, kept_bytes: u64) -> [f64; 3] {
        let [near, far] = [2, u8::MAX].map(|level| cache_bytes(machine, level));
        let (least, most) = (self.page - self.clearing, self.page);
        let likely = match kept_bytes {
            bytes if bytes <= near => most,
            bytes if bytes >= far => least,
            _ => (least + most) / 2.0,
        };
        [likely, least, most]
    }
}

/// Size of the largest cache up to this level; 0: there is none.
fn cache_bytes(machine: &Machine, level: u8) -> u64 {
    machine.caches.iter().filter(|cache| cache.level <= level).map(|cache| cache.size.0).max().unwrap_or(0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use nearmiss_machine::describe::preset;

    #[test]
    fn clearing_is_saved_where_the_caches_hold_what_is_kept() {
        let faults = PageFaults {
            cleared: 1000,
            clearing_cycles: 500_000,
            one_by_one: 1000,
            each_cycles: 1500,
            beyond_model_cycles: 700,
            ..PageFaults::default()
        };
        let price = Price::from(faults, 10_000_000, None);
        assert_eq!((price.cycles, price.page, price.clearing), (10_700_000.0, 2200.0, 500.0));
        let machine = preset("zen4-genoa").unwrap().machine().unwrap();
        assert_eq!(price.saved(&machine, 64 << 10), [2200.0, 1700.0, 2200.0]);
        assert_eq!(price.saved(&machine, 4 << 20), [1950.0, 1700.0, 2200.0]);
        assert_eq!(price.saved(&machine, 1 << 30), [1700.0, 1700.0, 2200.0]);
    }

    #[test]
    fn parts_with_half_of_the_runs_page_faults_stand_for_all_of_them() {
        let price = |times| {
            Price { cycles: 1000.0, page: 2.0, pages: 100, ..Price::default() }.with(CountedPages::as_counted(times))
        };
        assert_eq!((price(1.0).cycles_of_run(), price(1.0).share(50, 2.0)), (1000.0, 0.1));
        assert_eq!((price(2.0).cycles_of_run(), price(2.0).share(50, 2.0)), (1200.0, 200.0 / 1200.0));
        assert_eq!((price(0.5).cycles_of_run(), price(0.5).share(50, 2.0)), (900.0, 50.0 / 900.0));
        assert_eq!(price(2.0).by_parts().share(50, 2.0), 0.1, "nothing was counted");
    }
}
