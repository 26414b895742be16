//! The price of a page that the kernel gives out.

use nearmiss_analysis::{PageFaults, Traced};
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
    /// Pages in a stretch of the whole run by those in one that was recorded, where they were counted.
    pub counted: Option<f64>,
    /// As many of these as the spread of the parts allows.
    pub by_recorded: Option<f64>,
}

impl Price {
    /// Prices a run.
    pub fn of(case: &Traced) -> Self {
        let counted = case.manifest.covered.and_then(|covered| covered.cleared_by_recorded());
        Self::from(PageFaults::of(&case.model), case.model.totals.cycles, counted)
    }

    fn from(faults: PageFaults, modelled_cycles: u64, counted: Option<f64>) -> Self {
        Price {
            cycles: (modelled_cycles + faults.beyond_cycles()).max(1) as f64,
            page: (faults.each_cycles + faults.beyond_model_cycles) as f64,
            clearing: faults.clearing_cycles as f64 / faults.cleared.max(1) as f64,
            is_measured: faults.beyond_model_cycles > 0,
            pages: faults.one_by_one,
            counted,
            by_recorded: counted,
        }
    }

    /// The price by the parts alone.
    pub fn by_parts(self) -> Self {
        Price { by_recorded: None, ..self }
    }

    /// Limits the counted pages to what the spread of the parts allows: so many of the recorded pages then take a share
    /// of the run's cycles between these ends, at `each` cycles. A phase of page faults that keep no memory, such as a
    /// set-up, may lie in a pause. It makes no more of parts that are alike.
    pub fn within(self, pages: u64, each: f64, (low, high): (f64, f64)) -> Self {
        let share = self.share(pages, each);
        let allowed = share.max(low).min(high);
        if self.by_recorded.is_none() || allowed == share {
            return self;
        }
        // The share, solved for the times.
        let faults = self.pages as f64 * self.page;
        let times = allowed * (self.cycles - faults) / (pages as f64 * each - allowed * faults);
        Price { by_recorded: Some(times), ..self }
    }

    fn times(&self) -> f64 {
        self.by_recorded.unwrap_or(1.0)
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
        let price =
            |times| Price { cycles: 1000.0, page: 2.0, pages: 100, by_recorded: Some(times), ..Price::default() };
        assert_eq!((price(1.0).cycles_of_run(), price(1.0).share(50, 2.0)), (1000.0, 0.1));
        assert_eq!((price(2.0).cycles_of_run(), price(2.0).share(50, 2.0)), (1200.0, 200.0 / 1200.0));
        assert_eq!((price(0.5).cycles_of_run(), price(0.5).share(50, 2.0)), (900.0, 50.0 / 900.0));
    }

    #[test]
    fn counted_pages_make_no_more_of_the_parts_than_their_spread_allows() {
        let price = Price { cycles: 1000.0, page: 2.0, pages: 100, by_recorded: Some(5.0), ..Price::default() };
        let share = |ends| price.within(50, 2.0, ends).share(50, 2.0);
        assert_eq!(share((0.0, 0.5)), 500.0 / 1800.0, "as counted");
        assert!((share((0.05, 0.12)) - 0.12).abs() < 1e-12 && (share((0.3, 0.4)) - 0.3).abs() < 1e-12);
        assert_eq!(price.by_parts().within(50, 2.0, (0.0, 0.01)).share(50, 2.0), 0.1, "nothing was counted");
    }
}
