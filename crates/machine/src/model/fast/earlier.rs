//! Lines that a cache behind the first has had since before the recording, or since a pause of it.

use crate::model::cache::history::Standing;
use crate::model::engine::Access;
use crate::model::fast::{Fast, Walk};
use crate::observer::Outcome;

impl Fast {
    /// Gives up what others have pushed out of a set by now, and the line of the access if they did so in a pause.
    pub(super) fn let_others_in(&mut self, at: usize, set: usize, line: u32, access: &Access, outcome: &mut Outcome) {
        let cache = &mut self.caches[at];
        let stayed = access.stayed >> cache.level & 1 != 0;
        if let Some(gone) = if stayed { None } else { cache.pushed_out_in_pause(line) } {
            self.evicted(at, gone, access, outcome);
        }
        while let Some(gone) = self.caches[at].pushed_out(set, access.now) {
            self.evicted(at, gone, access, outcome);
        }
    }

    /// Whether the cache of this step had the line before the recording, and nothing that was recorded speaks against it.
    #[inline(always)]
    pub(super) fn was_there(&self, walk: &Walk, step: usize, access: &Access) -> bool {
        access.was_there >> self.caches[walk.way.at(step)].level & 1 != 0 && self.is_new_to_all(walk, step, access)
    }

    /// Whether this step is behind the first, and no cache of others and none beyond the step ever saw any of the unit
    /// that caches pass on.
    fn is_new_to_all(&self, walk: &Walk, step: usize, access: &Access) -> bool {
        let unit = access.address >> self.plan.unit_log2 << self.plan.unit_log2;
        let saw = |at: usize| {
            let cache = &self.caches[at];
            let mut lines = (unit..unit + (1 << self.plan.unit_log2)).step_by(1 << cache.line_log2);
            self.pages.spot(walk.page, at).is_some_and(|spot| {
                lines.any(|address| cache.history(cache.line_of(spot, address)).standing() != Standing::Never)
            })
        };
        let beyond = (step + 1..walk.way.len()).map(|step| walk.way.at(step));
        step > 0 && !self.plan.others[access.cpu].iter().copied().chain(beyond).any(saw)
    }

    /// The cache of this step has had the line since before the recording, and so have those beyond that keep what it
    /// has.
    #[cold]
    pub(super) fn bring_back(&mut self, access: &Access, walk: &Walk, step: usize, outcome: &mut Outcome) {
        self.caches[walk.way.at(step)].hits += 1;
        for at in (step..walk.way.len()).rev().map(|step| walk.way.at(step)) {
            if self.caches[at].exclusive {
                continue;
            }
            let spot = self.spot(at, walk.page);
            let cache = &mut self.caches[at];
            let (set, line) = (cache.set_of(spot, access.address, access.vaddr), cache.line_of(spot, access.address));
            if let Some(gone) = cache.fill(set, access.address, line, walk.page, access.site, 0) {
                self.evicted(at, gone, access, outcome);
            }
        }
    }
}
