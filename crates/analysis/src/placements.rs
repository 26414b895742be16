//! Placements of pages that replays are made on.

use nearmiss_record::machine::{Machine, Placement};

/// Most page placements that a prediction is made on.
pub const PLACEMENTS: usize = 5;
/// Largest distance between the gains of two placements that need no third one. Two of gains that lie anywhere are that
/// near about as seldom as three are within [`AGREED_BY_THREE`].
pub const AGREED_BY_TWO: f64 = 0.01;
/// Largest distance between the gains of three placements that need no others.
pub const AGREED_BY_THREE: f64 = 0.03;

/// The machine of a placement: its pages lie by the seed, and in each second placement others bring nothing into the caches.
/// They do so at a rate that another hour has not, and a gain that rests on it should show in its range.
pub fn placed(machine: &Machine, seed: u64) -> Machine {
    let mut placed = machine.clone();
    (placed.memory.placement, placed.memory.placement_seed) = (Placement::Random, seed);
    if !seed.wrapping_sub(machine.memory.placement_seed).is_multiple_of(2) {
        placed.caches.iter_mut().for_each(|cache| cache.others_lines = 0);
    }
    placed
}

/// The seeds of `count` placements: the machine's own first.
pub fn seeds(machine: &Machine, count: usize) -> Vec<u64> {
    (0..count as u64).map(|n| machine.memory.placement_seed.wrapping_add(n)).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use nearmiss_machine::describe::preset;

    #[test]
    fn others_are_at_rest_in_each_second_placement() {
        let mut machine = preset("zen4-genoa").unwrap().machine().unwrap();
        machine.caches.last_mut().unwrap().others_lines = 900;
        machine.memory.placement_seed = u64::MAX;
        let others = |seed: &u64| placed(&machine, *seed).caches.last().unwrap().others_lines;
        let seeds = seeds(&machine, 4);
        assert_eq!(seeds.iter().map(others).collect::<Vec<_>>(), [900, 0, 900, 0]);
        assert_eq!(placed(&machine, seeds[1]).memory.placement_seed, 0);
    }
}
