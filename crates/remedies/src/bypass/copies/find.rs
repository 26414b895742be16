//! Finds the groups of copies in a run.

use super::blame::{Blame, blame};
use super::costs::line_bytes;
use super::group::Groups;
use super::sight::Sight;
use super::way::{CopyWay, Ways};
use nearmiss_analysis::{CaseError, Traced};
use nearmiss_machine::model::Pollution;
use rustc_hash::FxHashSet;

/// Functions that copy by themselves are looked at from this share of all blame on.
const LEAST_BLAME: f64 = 0.01;

/// Returns the groups of a run with stores in its trace.
pub(super) fn groups(case: &Traced) -> Result<Groups<'_>, CaseError> {
    let ways = Ways { symbols: &case.symbols, contexts: &case.side.contexts };
    let inside = blamed_functions(&ways, &case.pollution);
    let machine = case.machine();
    let sight = Sight::new(ways, &inside, machine.topology.cpus() as usize, line_bytes(case), machine.levels());
    Ok(Groups::new(case, ways, case.listen(sight)?.finish()))
}

/// Functions that are blamed for much and are out of a library's reach.
fn blamed_functions(ways: &Ways<'_>, pollution: &[Pollution]) -> FxHashSet<CopyWay> {
    let blamed = blame(ways, pollution);
    let of = |way: &CopyWay| blamed.get(way).map_or(0, Blame::misses);
    let all: u64 = blamed.keys().map(of).sum();
    let heavy =
        blamed.keys().filter(|way| matches!(way, CopyWay::Inside(_)) && of(way) as f64 >= LEAST_BLAME * all as f64);
    heavy.copied().collect()
}
