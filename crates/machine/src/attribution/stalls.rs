//! Sources of stall cycles: the level, memory or CPU that a reference waited for.

use crate::observer::{BusRead, Outcome};
use nearmiss_record::model::StallSources;

/// Returns the sum that the stall cycles of an outcome belong to.
pub(super) fn source<'a>(sums: &'a mut StallSources, outcome: &Outcome) -> &'a mut u64 {
    let levels = sums.levels.len();
    let hit_level = outcome.missed.iter().take(levels).position(Option::is_none);
    if outcome.waited_for_others() {
        return &mut sums.coherence;
    }
    if outcome.is_first_touch() {
        return &mut sums.first_touch;
    }
    match (outcome.read, hit_level) {
        (Some(BusRead::Remote), _) => &mut sums.memory_remote,
        (Some(_), _) => &mut sums.memory_local,
        (None, Some(level)) if outcome.missed[0].is_some() => &mut sums.levels[level],
        (None, _) => &mut sums.other,
    }
}
