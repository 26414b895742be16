//! Lines that the outermost cache has had since before the recording, or since a pause of it.

use crate::model::cache::history::Standing;
use crate::model::engine::Access;
use crate::model::fast::{Fast, Walk};
use crate::observer::Outcome;

impl Fast {
    /// Whether this step is the outermost cache, and no cache of its level ever saw the line.
    pub(super) fn is_new_to_all(&self, walk: &Walk, step: usize, access: &Access) -> bool {
        let level = self.caches[walk.way.at(step)].level;
        let saw = |at: usize| {
            let cache = &self.caches[at];
            let spot = (cache.level == level).then(|| self.pages.spot(walk.page, at)).flatten();
            spot.is_some_and(|spot| cache.history(cache.line_of(spot, access.address)).standing() != Standing::Never)
        };
        step > 0 && step + 1 == walk.way.len() && !self.plan.others[access.cpu].iter().any(|at| saw(*at))
    }

    /// The outermost cache has had the line since before the recording.
    #[cold]
    pub(super) fn bring_back(&mut self, access: &Access, walk: &Walk, step: usize, outcome: &mut Outcome) {
        let at = walk.way.at(step);
        let (set, line) = (walk.sets[step] as usize, walk.lines[step]);
        let cache = &mut self.caches[at];
        cache.hits += 1;
        if cache.exclusive {
            return;
        }
        if let Some(gone) = cache.fill(set, access.address, line, walk.page, access.site, 0) {
            self.evicted(at, gone, access, outcome);
        }
    }
}
