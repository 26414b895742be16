//! The straight way of a miss: on a page that its CPU alone uses, where no cache is exclusive and none may hold the
//! line elsewhere. No other cache is involved, and each cache that misses is filled.

use crate::model::cache::{DIRTY, WRITABLE};
use crate::model::engine::Access;
use crate::model::fast::front::Row;
use crate::model::fast::{Fast, Walk};
use crate::observer::Outcome;
use nearmiss_record::reference::Kind;

impl Fast {
    /// The whole of such a miss.
    #[inline(always)]
    pub(in crate::model) fn straight(&mut self, access: &Access, row: &Row, outcome: &mut Outcome) -> u8 {
        outcome.home = row.home;
        outcome.line_paddr = self.line_paddr(row.modelled, access);
        let way = self.plan.way(access.cpu, access.kind);
        let walk = self.walk(access, row.page, way, outcome, |_, step, _| row.spots[step]);
        let cycles = self.answer_alone(access, &walk, outcome);
        outcome.stall_cycles = u32::try_from(cycles).unwrap_or(u32::MAX);
        let written = if access.kind == Kind::Store { DIRTY | WRITABLE } else { 0 };
        self.fill_straight(access, &walk, written, outcome);
        walk.missed
    }

    /// [`Fast::fill`] of caches that keep a line when they hand it on. `first`: flags of the line in the first level.
    #[inline(always)]
    fn fill_straight(&mut self, access: &Access, walk: &Walk, first: u8, outcome: &mut Outcome) {
        for step in (0..walk.steps).rev() {
            self.choose_way(access, walk, step);
            let at = walk.way.at(step);
            let cache = &mut self.caches[at];
            let flags = if step == 0 { first } else { 0 };
            let set = walk.sets[step] as usize;
            let gone = cache.fill(set, access.address, walk.lines[step], walk.page, access.site, flags);
            let passes_clean = cache.inclusive;
            outcome.gives_up_modified |= step == 0 && gone.is_some_and(|gone| gone.dirty);
            if let Some(gone) = gone.filter(|gone| gone.dirty || passes_clean) {
                self.evicted(at, gone, access, outcome);
            }
        }
    }
}
