//! Lines that several CPUs store to in turn, and what that takes.
//!
//! A core asks for the lines of the stores in its buffer ahead, side by side. Of a line that another CPU stores to as well
//! that is no help: the line is gone again when the store's turn comes, so that such stores leave one by one, each with a
//! transfer of its own. A load before the store makes it worse. What the load read is void when the line goes, and the core
//! begins again from there, so that the wait hides behind nothing. Two things make it less. While a line is there a few
//! more of its stores get through, where all of them are to one line; and stores that follow one another to one line,
//! without a load between, leave together.
//!
//! All that was measured on a Zen 5 (`experiments/cycles/contended-lines.txt`). A machine file says what a store takes.

use super::{Ticks, ticks};
use nearmiss_record::machine::{Core, Machine};

/// A line is contended if this core has lost it twice within so many cycles: lines that are handed over once, such as
/// those of a buffer, are asked for ahead as any others.
const WITHIN: Ticks = ticks(1 << 14);
/// Lines whose latest lost store is known.
const REMEMBERED: usize = 1 << 8;
const NONE: u64 = u64::MAX;

/// What a store whose line is contended waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// It leaves the buffer so much later than the store before it.
    InTheBuffer(Ticks),
    /// The core goes on so much later.
    AtOnce(Ticks),
}

/// A line that this core lost.
#[derive(Clone, Copy, Debug)]
struct Lost {
    line: u64,
    /// When a store found it gone, lately.
    stored: Ticks,
    /// A load found it gone, too. Where the two CPUs' loads and stores meet by turns, not each store has such a load.
    loaded: bool,
}

/// The latest stores and loads of one core whose lines other CPUs had taken.
#[derive(Clone, Debug)]
pub(super) struct Contended {
    line_shift: u32,
    /// By whether the latest lost store was to another line.
    takes: [Ticks; 2],
    /// Cycles of a transfer within the node, which `takes` is for.
    transfer_cycles: u32,
    /// By the line's number.
    lost: Vec<Lost>,
    /// Line of the latest lost store.
    latest: u64,
}

impl Contended {
    pub fn new(machine: &Machine, core: &Core) -> Self {
        Contended {
            line_shift: machine.data_cache(1).map_or(6, |cache| cache.line.0.max(1).ilog2()),
            takes: core.contended_store_cycles.map(|cycles| ticks(cycles.into())),
            transfer_cycles: machine.latency.core_modified_cycles.max(1),
            lost: vec![Lost { line: NONE, stored: 0, loaded: false }; REMEMBERED],
            latest: NONE,
        }
    }

    /// A load found that another CPU had taken its line.
    pub fn loads(&mut self, vaddr: u64) {
        let line = vaddr >> self.line_shift;
        let known = &mut self.lost[line as usize % REMEMBERED];
        *known = Lost { line, stored: if known.line == line { known.stored } else { 0 }, loaded: true };
    }

    /// A store, or an atomic, found that another CPU had the line: what it takes, if the line is contended.
    pub fn stores(&mut self, vaddr: u64, now: Ticks, latency_cycles: u32) -> Option<Takes> {
        let line = vaddr >> self.line_shift;
        let known = &mut self.lost[line as usize % REMEMBERED];
        let before = *known;
        *known = Lost { line, stored: now, loaded: before.line == line && before.loaded };
        let same = std::mem::replace(&mut self.latest, line) == line;
        let again = before.line == line && before.stored > 0 && now.saturating_sub(before.stored) <= WITHIN;
        if !again || self.takes == [0; 2] {
            return None;
        }
        let farther = f64::from(latency_cycles) / f64::from(self.transfer_cycles);
        let takes = (self.takes[usize::from(!same)] as f64 * farther.max(1.0)).round() as Ticks;
        Some(match (before.loaded, same) {
            (true, _) => Takes::AtOnce(takes),
            (false, true) => Takes::InTheBuffer(0),
            (false, false) => Takes::InTheBuffer(takes),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::describe::preset;

    const ONE: Takes = Takes::AtOnce(ticks(20));
    const SEVERAL: Takes = Takes::AtOnce(ticks(70));
    const TRANSFER: u32 = 100;

    fn contended() -> Contended {
        let mut machine = preset("zen4-genoa").unwrap().machine().unwrap();
        machine.latency.core_modified_cycles = TRANSFER;
        Contended::new(&machine, &super::super::tests::core())
    }

    /// Lost stores, one each `after` cycles, to these lines; with a load of the line that was lost as well, or without.
    fn takes(lines: &[u64], loaded: bool, after: u64) -> Vec<Option<Takes>> {
        let mut contended = contended();
        let mut now = 0;
        let mut next = |line: &u64| {
            now += ticks(after);
            if loaded {
                contended.loads(line * 64 + 8);
            }
            contended.stores(line * 64, now, TRANSFER)
        };
        lines.iter().map(&mut next).collect()
    }

    #[test]
    fn additions_to_one_line_begin_anew_each_time_once_the_line_came_back() {
        assert_eq!(takes(&[5, 5, 5], true, 30), [None, Some(ONE), Some(ONE)]);
    }

    #[test]
    fn additions_to_several_lines_take_a_transfer_each() {
        assert_eq!(takes(&[5, 9, 5, 9, 9], true, 30), [None, None, Some(SEVERAL), Some(SEVERAL), Some(ONE)]);
    }

    #[test]
    fn stores_alone_wait_in_the_buffer_and_those_of_one_line_leave_together() {
        let [together, apart] = [Takes::InTheBuffer(0), Takes::InTheBuffer(ticks(70))];
        assert_eq!(takes(&[5, 5, 9, 5], false, 30), [None, Some(together), None, Some(apart)]);
    }

    #[test]
    fn a_line_that_comes_back_late_is_handed_over_and_not_contended() {
        assert_eq!(takes(&[5, 5], true, (1 << 14) + 1), [None, None]);
        assert_eq!(takes(&[5, 5], true, 1 << 14), [None, Some(ONE)]);
    }

    #[test]
    fn a_line_from_farther_takes_longer_in_proportion() {
        let mut contended = contended();
        contended.stores(0, 1, 3 * TRANSFER);
        assert_eq!(contended.stores(0, 2, 3 * TRANSFER), Some(Takes::InTheBuffer(0)));
        contended.loads(0);
        assert_eq!(contended.stores(0, 3, 3 * TRANSFER), Some(Takes::AtOnce(ticks(60))));
    }

    #[test]
    fn a_machine_that_tells_no_times_has_no_contended_lines() {
        let mut contended = Contended { takes: [0; 2], ..contended() };
        assert_eq!([1, 2].map(|now| contended.stores(0, now, TRANSFER)), [None, None]);
    }
}
