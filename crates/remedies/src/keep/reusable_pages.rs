//! Freed memory of a run that came back by page faults, and what it costs.

use super::price::Price;
use nearmiss_analysis::{CaseError, CountedPages, PartSaving, Traced, of_whole_run, pages_by_part, replay};
use nearmiss_machine::attribution::{HeapReuse, Reuse, ReuseWithin};
use nearmiss_record::finding::SavingRange;

/// log₂ of the bytes of a page.
const PAGE_LOG2: u32 = 12;
/// Without a limit.
pub const NO_LIMIT: u64 = u64::MAX;
/// Limits that a rehearsal tries by itself, in bytes.
const USUAL: [u64; 3] = [NO_LIMIT, 16 << 20, 256 << 20];

/// See the module's text.
#[derive(Debug)]
pub struct ReusablePages {
    reuse: Reuse,
    price: Price,
    /// Likely, least and most cycles saved by a page, by limit.
    saved: Vec<[f64; 3]>,
}

impl ReusablePages {
    /// Finds the pages that the usual limits would hand out again: one replay, of the run as it was.
    pub fn of(case: &Traced) -> Result<Self, CaseError> {
        Self::within(case, &USUAL)
    }

    /// Finds the pages for these limits, in bytes. The first one is the one that objects are listed for.
    pub fn within(case: &Traced, limits: &[u64]) -> Result<Self, CaseError> {
        let pages: Vec<u64> = limits.iter().map(|limit| limit >> PAGE_LOG2).collect();
        let in_parts = case.manifest.covered.is_some_and(|covered| covered.has_pauses());
        let listener = case.listen(HeapReuse::new(case.machine(), &case.symbols, in_parts, &pages))?;
        let reuse = listener.reuse(&replay::side(&case.run)?, &case.symbols);
        let price = Price::of(case);
        let saved = reuse.limits.iter().map(|within| price.saved(case.machine(), kept_bytes(within))).collect();
        let sampled = ReusablePages { reuse, price: price.by_parts(), saved };
        let counted = price.counted.zip(sampled.of_whole_run(0)).map(|(counted, ends)| {
            let with = |times| price.with(CountedPages::as_counted(times));
            counted.within(ends, |times| with(times).share(sampled.pages_again(), sampled.saved[0][0]))
        });
        Ok(ReusablePages { price: counted.map_or(sampled.price, |counted| price.with(counted)), ..sampled })
    }

    /// Pages that come back although as many had been freed.
    pub fn pages_again(&self) -> u64 {
        self.reuse.limits.first().map_or(0, ReuseWithin::pages)
    }

    /// Returns the reuse that was seen, in pages.
    pub fn reuse(&self) -> &Reuse {
        &self.reuse
    }

    /// Cycles of the command as it was, and of each page.
    pub fn price(&self) -> Price {
        self.price
    }

    /// Bytes of freed memory that the allocator with the limit of this number keeps, the most at once.
    pub fn kept_bytes(&self, at: usize) -> u64 {
        kept_bytes(&self.reuse.limits[at])
    }

    /// Share of the command's cycles that the limit of this number saves: likely, least, most.
    pub fn gain(&self, at: usize) -> [f64; 3] {
        let pages = self.reuse.limits[at].pages();
        self.saved[at].map(|cycles| self.price.share(pages, cycles))
    }

    /// Ends of what the limit of this number saves of the whole run, where parts of it were recorded.
    pub fn of_whole_run(&self, at: usize) -> Option<SavingRange> {
        let Reuse { first_touches, instructions, .. } = &self.reuse;
        let again = &self.reuse.limits[at].again;
        let pages = pages_by_part(again, first_touches, instructions, self.price.counted);
        let each = self.price.cycles_of_run() / instructions.iter().sum::<u64>().max(1) as f64;
        // Each part takes cycles as its instructions are many.
        let part = |(pages, instructions): (f64, &u64)| PartSaving {
            cycles: *instructions as f64 * each,
            saved: pages * self.saved[at][0],
        };
        let parts: Vec<PartSaving> = pages.into_iter().zip(instructions).map(part).collect();
        of_whole_run(&parts)
    }
}

fn kept_bytes(within: &ReuseWithin) -> u64 {
    within.spare_most << PAGE_LOG2
}
