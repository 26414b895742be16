//! Lines that several CPUs use in turn, one of them writing, and the cost of that.
//!
//! A core requests the lines of the stores in its buffer ahead, side by side. That does not help with a line that
//! another CPU stores to as well: the line is gone again at the store's turn, so that such stores leave one by one,
//! each with a transfer of its own. A load before the store makes it worse. The loaded value is void when the line
//! goes, and the core begins again from there, so that the wait hides behind nothing. An atomic waits for its line at
//! once. Two things reduce the cost. While a line is there a few more accesses get through, if all of them are to one
//! line; and a core that waits goes on within its window, so that the accesses gathered meanwhile get through together.
//!
//! No manual gives the size of this reduction, so a machine file has the cost of an access on one line, two and four,
//! as two CPUs do nothing else (`experiments/cycles/contended-lines.txt`). CPUs that compute between two uses of a line
//! find it gone more often, and gather less meanwhile: with two CPUs adding to one line every 28 ns, a quarter to a
//! third of their time was spent waiting for it (`experiments/gains`, `adds-working` and `atomics-working`, on a Zen
//! 4). So an addition and an atomic take [`WAITING`] of the time since the use before, if that is more, and a whole
//! transfer at most.

use super::{Ticks, ticks};
use nearmiss_record::machine::{Core, Machine};

/// A line is contended if this core has lost it twice within so many cycles: lines that are handed over once, such as
/// those of a buffer, are requested ahead as any others.
const WITHIN: Ticks = ticks(1 << 14);
/// Divisor of the time between two uses of a line by one CPU (its wait for the line included) that gives that wait.
/// Chosen by those two programs, on one host.
const WAITING: Ticks = 3;
/// Lines with a record of their latest losses.
const REMEMBERED: usize = 1 << 8;
/// Latest losses that the number of lines in play is taken from.
const IN_PLAY: usize = 4;
const NONE: u64 = u64::MAX;

/// Wait of a store to a contended line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// The store leaves the buffer so much later than the store before it.
    InTheBuffer(Ticks),
    /// The core goes on so much later.
    AtOnce(Ticks),
}

/// A line that this core lost.
#[derive(Clone, Copy, Debug)]
struct Lost {
    line: u64,
    /// Time of the latest store or atomic that found it gone.
    stored: Ticks,
    /// Time of the latest load that found it gone.
    loaded: Ticks,
    /// Wait of that load.
    load_took: Ticks,
}

/// Cost of an access by the lines in play: one, two, more.
type Figures = [Ticks; 3];

/// Latest references of one core to lines that other CPUs had taken.
#[derive(Clone, Debug)]
pub(super) struct Contended {
    line_shift: u32,
    /// A store behind a load of its line.
    additions: Figures,
    stores: Figures,
    atomics: Figures,
    loads: Figures,
    /// Cycles of a transfer within the node, which the figures are for.
    transfer_cycles: u32,
    /// Losses by the line's number.
    lost: Vec<Lost>,
    /// Lines of the latest losses, and how many there were.
    latest: [u64; IN_PLAY],
    losses: usize,
}

impl Contended {
    pub fn new(machine: &Machine, core: &Core) -> Self {
        let of = |cycles: [u32; 3]| cycles.map(|cycles| ticks(cycles.into()));
        let ([one, several], others) = (core.contended_store_cycles, core.contended());
        Contended {
            line_shift: machine.data_cache(1).map_or(6, |cache| cache.line.0.max(1).ilog2()),
            additions: of([one, several, several]),
            stores: of(others.store_cycles),
            atomics: of(others.atomic_cycles),
            loads: of(others.load_cycles),
            transfer_cycles: machine.latency.core_modified_cycles.max(1),
            lost: vec![Lost { line: NONE, stored: 0, loaded: 0, load_took: 0 }; REMEMBERED],
            latest: [NONE; IN_PLAY],
            losses: 0,
        }
    }

    /// Handles a load that found its line taken by another CPU. Returns its cost, if the line is contended.
    pub fn loads(&mut self, vaddr: u64, now: Ticks, latency_cycles: u32) -> Option<Ticks> {
        let line = vaddr >> self.line_shift;
        let before = self.known(line);
        let in_play = self.loses(line);
        let again = is_recent(before.loaded, now) && self.has_figures();
        // A CPU that stores to the line as well holds it meanwhile, as one that adds to it.
        let held = if is_recent(before.stored, now) { self.additions[in_play] } else { Ticks::MAX };
        let takes = again.then(|| self.farther(self.loads[in_play].min(held), latency_cycles));
        self.remember(Lost { loaded: now.max(1), load_took: takes.unwrap_or(0), ..before });
        takes
    }

    /// Handles a store that found the line in another CPU. Returns its cost, if the line is contended.
    pub fn stores(&mut self, vaddr: u64, now: Ticks, latency_cycles: u32) -> Option<Takes> {
        let line = vaddr >> self.line_shift;
        let before = self.known(line);
        let in_play = if before.loaded > 0 { self.in_play() } else { self.loses(line) };
        // The load's wait is a part of this store's, and of no later one's.
        self.remember(Lost { stored: now.max(1), load_took: 0, ..before });
        if !is_recent(before.stored, now) || !self.has_figures() {
            return None;
        }
        Some(if before.loaded > 0 {
            let takes = self.farther(self.additions[in_play], latency_cycles);
            Takes::AtOnce(takes.max(shared(before.stored, now, latency_cycles)).saturating_sub(before.load_took))
        } else {
            Takes::InTheBuffer(self.farther(self.stores[in_play], latency_cycles))
        })
    }

    /// Handles an atomic that found the line in another CPU. Returns its cost, if the line is contended.
    pub fn atomics(&mut self, vaddr: u64, now: Ticks, latency_cycles: u32) -> Option<Ticks> {
        let line = vaddr >> self.line_shift;
        let before = self.known(line);
        let in_play = self.loses(line);
        self.remember(Lost { stored: now.max(1), ..before });
        let again = is_recent(before.stored, now) && self.has_figures();
        let least = shared(before.stored, now, latency_cycles);
        again.then(|| self.farther(self.atomics[in_play], latency_cycles).max(least))
    }

    /// The machine has figures for contended lines.
    fn has_figures(&self) -> bool {
        [self.additions, self.stores, self.atomics, self.loads] != [[0; 3]; 4]
    }

    fn known(&self, line: u64) -> Lost {
        let known = self.lost[line as usize % REMEMBERED];
        if known.line == line { known } else { Lost { line, stored: 0, loaded: 0, load_took: 0 } }
    }

    fn remember(&mut self, lost: Lost) {
        self.lost[lost.line as usize % REMEMBERED] = lost;
    }

    /// Notes a loss; returns the place of the figures.
    fn loses(&mut self, line: u64) -> usize {
        self.latest[self.losses % IN_PLAY] = line;
        self.losses += 1;
        self.in_play()
    }

    /// Lines among the latest losses, as a place of figures.
    fn in_play(&self) -> usize {
        let latest = &self.latest[..self.losses.min(IN_PLAY)];
        let lines = latest.iter().enumerate().filter(|(at, line)| !latest[..*at].contains(line)).count();
        lines.clamp(1, 3) - 1
    }

    /// A line from farther takes longer in proportion.
    fn farther(&self, takes: Ticks, latency_cycles: u32) -> Ticks {
        let farther = f64::from(latency_cycles) / f64::from(self.transfer_cycles);
        (takes as f64 * farther.max(1.0)).round() as Ticks
    }
}

/// Returns the other CPU's part of the time since the own use, a transfer at most.
fn shared(before: Ticks, now: Ticks, latency_cycles: u32) -> Ticks {
    (now.saturating_sub(before) / WAITING).min(ticks(latency_cycles.into()))
}

/// Whether a line was lost lately, too.
fn is_recent(before: Ticks, now: Ticks) -> bool {
    before > 0 && now.saturating_sub(before) <= WITHIN
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::describe::preset;

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
                contended.loads(line * 64 + 8, now, TRANSFER);
            }
            contended.stores(line * 64, now, TRANSFER)
        };
        lines.iter().map(&mut next).collect()
    }

    #[test]
    fn additions_to_one_line_begin_anew_each_time_once_the_line_came_back() {
        // The load's wait is a part of it.
        let one = Takes::AtOnce(ticks(20 - 3));
        assert_eq!(takes(&[5, 5, 5], true, 30), [None, Some(one), Some(one)]);
        // A third of the 90 cycles from one to the next, and a transfer at most.
        assert_eq!(takes(&[5, 5], true, 90)[1], Some(Takes::AtOnce(ticks(30 - 3))));
        assert_eq!(takes(&[5, 5], true, 900)[1], Some(Takes::AtOnce(ticks(100 - 3))));
    }

    #[test]
    fn the_time_of_a_load_is_taken_off_one_store_alone() {
        let mut contended = contended();
        for now in [10, 20] {
            contended.loads(0, ticks(now), TRANSFER);
        }
        // The load of the second addition hits: the line goes between it and the store.
        let stores = [21, 40, 60].map(|now| contended.stores(0, ticks(now), TRANSFER));
        assert_eq!(stores[1..], [Some(Takes::AtOnce(ticks(20))); 2]);
    }

    #[test]
    fn additions_to_several_lines_take_a_transfer_each() {
        let [two, more] = [ticks(70 - 5), ticks(70 - 6)].map(|takes| Some(Takes::AtOnce(takes)));
        assert_eq!(takes(&[5, 9, 5, 9, 1, 5], true, 30), [None, None, two, two, None, more]);
    }

    #[test]
    fn stores_alone_wait_in_the_buffer_by_the_lines_in_play() {
        let [one, two, more] = [ticks(8), ticks(40), ticks(60)].map(|takes| Some(Takes::InTheBuffer(takes)));
        assert_eq!(takes(&[5, 5, 9, 5, 9], false, 30), [None, one, None, two, two]);
        assert_eq!(takes(&[5, 9, 1, 5, 9, 9, 9, 9], false, 30), [None, None, None, more, more, more, two, one]);
    }

    #[test]
    fn atomics_and_loads_have_figures_of_their_own() {
        let mut contended = contended();
        assert_eq!([1, 2, 3].map(|now| contended.atomics(0, now, TRANSFER)), [None, Some(ticks(30)), Some(ticks(30))]);
        assert_eq!([4, 5].map(|now| contended.loads(64, now, TRANSFER)), [None, Some(ticks(5))]);
        assert_eq!(contended.atomics(0, 6, TRANSFER), Some(ticks(50)));
    }

    #[test]
    fn a_load_of_a_line_that_its_cpu_stores_to_takes_no_longer_than_an_addition() {
        let mut contended = Contended { loads: [ticks(90); 3], ..contended() };
        assert_eq!([1, 2].map(|now| contended.loads(0, now, TRANSFER)), [None, Some(ticks(90))]);
        contended.stores(0, 3, TRANSFER);
        assert_eq!(contended.loads(0, 4, TRANSFER), Some(ticks(20)));
    }

    #[test]
    fn a_line_that_comes_back_late_is_handed_over_and_not_contended() {
        assert_eq!(takes(&[5, 5], false, (1 << 14) + 1), [None, None]);
        assert_eq!(takes(&[5, 5], false, 1 << 14), [None, Some(Takes::InTheBuffer(ticks(8)))]);
    }

    #[test]
    fn a_line_from_farther_takes_longer_in_proportion() {
        let mut contended = contended();
        contended.stores(0, 1, 3 * TRANSFER);
        assert_eq!(contended.stores(0, 2, 3 * TRANSFER), Some(Takes::InTheBuffer(ticks(24))));
        assert_eq!(contended.stores(0, 3, TRANSFER / 2), Some(Takes::InTheBuffer(ticks(8))));
    }

    #[test]
    fn a_machine_without_times_has_no_contended_lines() {
        let nothing = [0; 3];
        let mut contended =
            Contended { additions: nothing, stores: nothing, atomics: nothing, loads: nothing, ..contended() };
        assert_eq!([1, 2].map(|now| contended.stores(0, now, TRANSFER)), [None, None]);
        assert_eq!([3, 4].map(|now| contended.atomics(0, now, TRANSFER)), [None, None]);
        assert_eq!([5, 6].map(|now| contended.loads(0, now, TRANSFER)), [None, None]);
    }
}
