//! Runs of loops that take the values in their addresses from before them.
//!
//! No record shows where a loop begins anew. Two accesses of one run lie whole turns apart, and those of two runs do not,
//! but by chance: the instructions between two runs are seldom a multiple of a turn. Turns of unlike lengths are runs of
//! their own.

use nearmiss_code::Given;
use rustc_hash::FxHashMap;

/// The latest run of a loop.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Instructions before its turns begin, of those of a turn.
    phase: u64,
    /// Instructions before its first access that was reported.
    since: u64,
}

/// The latest runs of all loops.
#[derive(Clone, Debug, Default)]
pub(super) struct Loops {
    /// By the loop's first instruction and the instructions of a turn.
    runs: FxHashMap<(u64, u32), Run>,
}

impl Loops {
    /// Returns the instructions before the first known access of the run that this access belongs to, `executed`
    /// instructions being before it. A run longer than the window counts as a new one, since nothing waits for what was
    /// loaded before it.
    pub fn run_since(&mut self, given: &Given, executed: u64, window: u64) -> u64 {
        let phase = executed.saturating_sub(given.at.into()) % u64::from(given.instructions.max(1));
        let anew = Run { phase, since: executed };
        let run = self.runs.entry((given.head, given.instructions)).or_insert(anew);
        let lasts = (run.since..=run.since.saturating_add(window)).contains(&executed);
        if run.phase != phase || !lasts {
            *run = anew;
        }
        run.since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_lasts_while_its_accesses_lie_whole_turns_apart() {
        let at = |at| Given { head: 0x1000, instructions: 10, at, inside: Vec::new() };
        let mut loops = Loops::default();
        let mut since = |given: &Given, executed| loops.run_since(given, executed, 100);
        assert_eq!([since(&at(2), 52), since(&at(2), 82), since(&at(7), 97)], [52; 3], "from 50 on");
        assert_eq!([since(&at(2), 115), since(&at(2), 125)], [115; 2], "three instructions between two runs");
        assert_eq!([since(&at(2), 215), since(&at(2), 225)], [115, 225], "a window is over");
        assert_eq!(loops.run_since(&Given { head: 0x2000, ..at(2) }, 235, 100), 235, "another loop");
    }
}
