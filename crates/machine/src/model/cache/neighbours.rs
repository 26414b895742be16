//! Lines that others bring into a cache that this machine's CPUs do not have alone: neighbours of a virtual machine.
//!
//! Nothing is known of those lines but how many come. Each one goes to the front of its set's order of use and stays, so
//! that it pushes all other lines of the set back by one place. A line of this machine is gone when the places before it
//! are all taken: by its set's lines that were used later, and by what others brought in since. So what is used again
//! soon stays, however large it is, and what waits long goes, however small.
//!
//! Others do not come evenly: on a Zen 4 some lines are gone soon, turn by turn, and some stay many times as long
//! (`experiments/cycles/neighbours.c`). So each set has a rate of its own, and the rates are spread exponentially.

use crate::hashing;

/// log₂ of the number of rates.
const RATES_LOG2: u32 = 8;
/// Bits of a time.
const TIME_BITS: u32 = 48;

/// Lines of others in the sets of one cache, and the time when its own lines were used.
pub(super) struct Neighbours {
    /// Cycles from one line of theirs to the next, in a set of each rate.
    periods_cycles: [u64; 1 << RATES_LOG2],
    /// The latest time of any CPU.
    now_cycles: u64,
    /// Latest use of each frame, behind the number of the recorded part.
    used: Vec<u64>,
    /// The recorded part under way, above the bits of a time.
    part: u64,
}

impl Neighbours {
    /// `period_cycles`: in a set of the mean rate; 0 where nobody brings anything in.
    pub fn new(period_cycles: u64, frames: usize) -> Option<Self> {
        let period = |rate: f64| (period_cycles as f64 / rate).max(1.0) as u64;
        (period_cycles > 0).then(|| Neighbours {
            periods_cycles: rates().map(period),
            now_cycles: 0,
            used: vec![0; frames],
            part: 0,
        })
    }

    /// Takes the time; CPUs are at different ones, and it never goes back.
    pub fn pass(&mut self, now_cycles: u64) {
        self.now_cycles = self.now_cycles.max(now_cycles);
    }

    /// A frame's line is used.
    #[inline]
    pub fn used(&mut self, frame: usize) {
        self.used[frame] = self.part | self.now_cycles;
    }

    /// A part begins behind a pause of the recording.
    pub fn pause(&mut self) {
        self.part += 1 << TIME_BITS;
    }

    /// Whether a frame's line was used since the latest pause.
    pub fn is_of_this_part(&self, frame: usize) -> bool {
        self.used[frame] >= self.part
    }

    /// Whether others have pushed the line of a frame out of its set, where they have `places` before it to take.
    pub fn took(&self, set: usize, frame: usize, places: usize) -> bool {
        let waited_cycles = self.now_cycles - self.used[frame] % (1 << TIME_BITS);
        waited_cycles / places.max(1) as u64 >= self.periods_cycles[hashing::place(set as u64, RATES_LOG2)]
    }
}

/// Rates at which others bring lines into sets, ascending, each in as many sets, as shares of their mean.
pub(crate) fn rates<const COUNT: usize>() -> [f64; COUNT] {
    let rates: [f64; COUNT] = std::array::from_fn(|at| -(1.0 - (at as f64 + 0.5) / COUNT as f64).ln());
    let mean = rates.iter().sum::<f64>() / COUNT as f64;
    rates.map(|rate| rate / mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sets of 16 ways of which others have taken a line that waited so many cycles; one of theirs in 1000 cycles.
    fn taken(waited_cycles: u64) -> usize {
        let sets = 1 << 12;
        let mut neighbours = Neighbours::new(1000, sets).unwrap();
        neighbours.pass(5_000);
        (0..sets).for_each(|set| neighbours.used(set));
        neighbours.pass(5_000 + waited_cycles);
        (0..sets).filter(|set| neighbours.took(*set, *set, 16)).count()
    }

    #[test]
    fn some_lines_go_soon_and_some_stay_long() {
        // exp(-16000 / waited) of them.
        for (waited, share) in [(1_000, 0.0), (8_000, 0.135), (23_083, 0.5), (160_000, 0.905), (1 << 40, 1.0)] {
            let found = taken(waited) as f64 / 4096.0;
            assert!((found - share).abs() < 0.01, "{waited}: {found}");
        }
    }

    #[test]
    fn rates_have_a_mean_of_one() {
        let rates = rates::<16>();
        assert!((rates.iter().sum::<f64>() / 16.0 - 1.0).abs() < 1e-9 && rates.is_sorted());
    }
}
