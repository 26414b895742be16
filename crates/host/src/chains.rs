//! Number of misses under way at once: pointer chases side by side, none of which depends on another.

use super::chase::Cycle;
use super::settle::{Settled, settled};
use std::hint::black_box;
use std::time::Instant;

const CHAINS: [usize; 12] = [2, 4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32];
/// Loads of a round, all chains together.
const LOADS: usize = 1 << 12;
const ROUNDS: usize = 5;

/// The most that chases side by side gain over a single one, of all cycles: each cycle is larger than the first level.
pub fn side_by_side(cycles: &[&Cycle]) -> Option<Settled> {
    let figures = cycles.iter().filter_map(|cycle| settled(|| Some(gain(cycle))));
    figures.max_by(|a, b| a.value.total_cmp(&b.value))
}

/// The time of a load of one chase over that of a load of several, the most over how many they are.
fn gain(cycle: &Cycle) -> f64 {
    let alone = nanoseconds(cycle, 1);
    CHAINS.into_iter().map(|chains| alone / nanoseconds(cycle, chains)).fold(1.0, f64::max)
}

/// Nanoseconds a load.
fn nanoseconds(cycle: &Cycle, chains: usize) -> f64 {
    let words = cycle.words();
    let mut at: Vec<u64> = (0..chains).map(|_| cycle.fresh()).collect();
    let steps = LOADS / chains;
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        let started = Instant::now();
        for _ in 0..steps {
            for place in &mut at {
                *place = words[*place as usize];
            }
        }
        least = least.min(started.elapsed().as_secs_f64() * 1e9 / (steps * chains) as f64);
    }
    black_box(at);
    least
}
