//! Placements of pages that replays are made on.

use nearmiss_record::machine::Machine;

/// Most page placements that a prediction is made on.
pub const PLACEMENTS: usize = 5;
/// Largest distance between the gains of two placements that need no third one. Two of gains that lie anywhere are that
/// near about as seldom as three are within [`AGREED_BY_THREE`].
pub const AGREED_BY_TWO: f64 = 0.01;
/// Largest distance between the gains of three placements that need no others.
pub const AGREED_BY_THREE: f64 = 0.03;

/// The seeds of `count` placements: the machine's own first.
pub fn seeds(machine: &Machine, count: usize) -> Vec<u64> {
    (0..count as u64).map(|n| machine.memory.placement_seed.wrapping_add(n)).collect()
}
