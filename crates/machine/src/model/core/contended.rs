//! Lines that several CPUs use in turn, one of them writing, and the cost of that.
//!
//! A core requests the lines of the stores in its buffer ahead, side by side. That does not help with a line that
//! another CPU stores to as well: the line is gone again at the store's turn, so that such stores leave one by one,
//! each with a transfer of its own. An atomic or a load of such a line waits for a transfer, too. Three things reduce
//! the cost. While a line is there a few more accesses get through, if all of them are to one line. A core that waits
//! goes on within its window, so that the accesses gathered meanwhile get through together. And a core that computes
//! between two uses does so while the other CPU has the line: the time from one use to the next is that of a transfer or
//! that of the computation, whichever is longer. On one line fewer accesses are gathered the longer a core computes, so
//! that the time grows towards that of several lines. Plain accesses to one line are the exception: a few cycles of each
//! remain, however long the core computes.
//!
//! No manual gives these times, so a machine file has the cost of an access on one line, two and four, as two CPUs do
//! nothing else (`experiments/cycles/contended-lines.txt`). `experiments/cycles/spaced-lines.txt` has the times of CPUs
//! that compute.
//!
//! An addition to a word that nobody else uses takes its value from the core's own store, which waits in the buffer. It
//! costs next to nothing if the loop around it stores to that line alone: the line comes and takes all stores at once.
//! With a store to another line between, the stores leave in turn, and each needs the line again.
//!
//! Where the uses of a line lie so far apart that no core has two of them under way, the line is handed over: its
//! transfer is a miss like any other, requested ahead and beside others.

use super::{Ticks, ticks};
use nearmiss_record::machine::{Core, Machine};

/// A line is contended if this core has lost it twice within so many cycles: lines that are handed over once, such as
/// those of a buffer, are requested ahead as any others.
const WITHIN: Ticks = ticks(1 << 14);
/// Windows of the core within which a contended line is used again.
const WINDOWS: u64 = 2;
/// Computation between two accesses in the measurement of the figures.
const ADDITION_COMPUTES: Ticks = ticks(10);
const ATOMIC_COMPUTES: Ticks = ticks(25);
/// Computation between two spaced accesses in the measurement of theirs.
const SPACED: Ticks = ticks(60);
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

/// Access that found its line taken by another CPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loss {
    pub vaddr: u64,
    pub now: Ticks,
    /// Instructions that the CPU executed before it.
    pub instructions: u64,
    /// Cycles of the transfer.
    pub latency_cycles: u32,
}

/// Time of an access, and the instructions before it.
#[derive(Clone, Copy, Debug, Default)]
struct Moment {
    now: Ticks,
    instructions: u64,
}

impl Moment {
    fn of(loss: &Loss) -> Self {
        Moment { now: loss.now.max(1), instructions: loss.instructions }
    }
}

/// A line that this core lost.
#[derive(Clone, Copy, Debug, Default)]
struct Lost {
    line: u64,
    /// The latest store or atomic that found it gone.
    stored: Moment,
    /// The latest load that found it gone.
    loaded: Moment,
    /// Computation before that load, and its wait.
    load_computed: Ticks,
    load_took: Ticks,
    /// The latest store was of a loop that stores to no other line.
    lone: bool,
}

/// Cost of an access by the lines in play: one, two, more.
type Figures = [Ticks; 3];

/// Latest references of one core to lines that other CPUs had taken.
#[derive(Clone, Debug)]
pub(super) struct Contended {
    line_shift: u32,
    /// A store behind a load of its line.
    additions: Figures,
    /// A store behind a load of its line, of a loop that stores to no other.
    lone_addition: Ticks,
    /// A plain access to one line by a core that computes between, if it was measured.
    spaced: Option<Ticks>,
    stores: Figures,
    atomics: Figures,
    loads: Figures,
    /// Cycles of a transfer within the node, which the figures are for.
    transfer_cycles: u32,
    /// Instructions between two uses of a contended line, at most.
    together: u64,
    /// Losses by the line's number.
    lost: Vec<Lost>,
    /// Lines of the latest losses, and how many there were.
    latest: [u64; IN_PLAY],
    losses: usize,
    /// Time at which the core went on behind the latest loss.
    done: Ticks,
}

impl Contended {
    pub fn new(machine: &Machine, core: &Core) -> Self {
        let of = |cycles: [u32; 3]| cycles.map(|cycles| ticks(cycles.into()));
        let ([one, several], others) = (core.contended_store_cycles, core.contended());
        Contended {
            line_shift: machine.data_cache(1).map_or(6, |cache| cache.line.0.max(1).ilog2()),
            additions: of([one, several, several]),
            lone_addition: ticks(others.lone_addition_cycles.unwrap_or(one).into()),
            spaced: others.spaced_addition_cycles.map(|cycles| ticks(cycles.into())),
            stores: of(others.store_cycles),
            atomics: of(others.atomic_cycles),
            loads: of(others.load_cycles),
            transfer_cycles: machine.latency.core_modified_cycles.max(1),
            together: WINDOWS * u64::from(core.window_instructions),
            lost: vec![Lost { line: NONE, ..Lost::default() }; REMEMBERED],
            latest: [NONE; IN_PLAY],
            losses: 0,
            done: 0,
        }
    }

    /// Handles a load that found its line taken by another CPU. Returns its cost, if the line is contended.
    pub fn loads(&mut self, loss: &Loss) -> Option<Ticks> {
        let before = self.known(loss);
        let in_play = self.loses(loss);
        let computed = loss.now.saturating_sub(self.done);
        // A CPU that stores to the line as well holds it meanwhile, as one that adds to it.
        let held = if self.again(before.stored, loss) { self.additions(before.lone)[in_play] } else { Ticks::MAX };
        let figures = self.loads.map(|cycles| cycles.min(held));
        let takes = self.again(before.loaded, loss).then(|| self.plain(computed, figures, in_play, loss));
        let took = self.goes_on(loss, takes);
        self.remember(Lost { loaded: Moment::of(loss), load_computed: computed, load_took: took, ..before });
        takes
    }

    /// Handles a store that found the line in another CPU. Returns its cost, if the line is contended. `lone`: the loop
    /// around it stores to no other line.
    pub fn stores(&mut self, loss: &Loss, lone: bool) -> Option<Takes> {
        let before = self.known(loss);
        let in_play = if before.loaded.now > 0 { self.in_play() } else { self.loses(loss) };
        let computed = loss.now.saturating_sub(self.done) + before.load_computed;
        // The load's wait is a part of this store's, and of no later one's.
        self.remember(Lost { stored: Moment::of(loss), lone, load_computed: 0, load_took: 0, ..before });
        if !self.again(before.stored, loss) {
            self.goes_on(loss, None);
            return None;
        }
        if before.loaded.now == 0 {
            return Some(Takes::InTheBuffer(self.farther(self.stores[in_play], loss)));
        }
        let mut figures = self.additions(lone);
        if !lone {
            // Stores to other lines keep the time from one use to the next as long as it was measured.
            figures[0] += ADDITION_COMPUTES.saturating_sub(computed);
        }
        let takes = self.plain(computed, figures, in_play, loss).saturating_sub(before.load_took);
        self.goes_on(loss, Some(takes));
        Some(Takes::AtOnce(takes))
    }

    /// Handles an atomic that found the line in another CPU. Returns its cost, if the line is contended.
    pub fn atomics(&mut self, loss: &Loss) -> Option<Ticks> {
        let before = self.known(loss);
        let in_play = self.loses(loss);
        let computed = loss.now.saturating_sub(self.done);
        self.remember(Lost { stored: Moment::of(loss), ..before });
        let again = self.again(before.stored, loss);
        let takes = again.then(|| self.beyond(computed, self.atomics[in_play], self.atomics[2], ATOMIC_COMPUTES, loss));
        self.goes_on(loss, takes);
        takes
    }

    /// Returns the figures of additions by a loop that stores to no other line, or by others.
    fn additions(&self, lone: bool) -> Figures {
        let [one, two, more] = self.additions;
        [if lone { self.lone_addition } else { one }, two, more]
    }

    /// Returns the wait for a plain access.
    fn plain(&self, computed: Ticks, figures: Figures, in_play: usize, loss: &Loss) -> Ticks {
        let Some(spaced) = self.spaced.filter(|_| in_play == 0) else {
            return self.beyond(computed, figures[in_play], figures[2], ADDITION_COMPUTES, loss);
        };
        let share = (computed.saturating_sub(ADDITION_COMPUTES) as f64 / SPACED as f64).min(1.0);
        let takes = figures[0] as f64 + (spaced as f64 - figures[0] as f64) * share;
        self.farther(takes.round() as Ticks, loss)
    }

    /// Returns the wait beyond a computation, by the cost of an access to as many lines as are in play, and to several.
    fn beyond(&self, computed: Ticks, figure: Ticks, several: Ticks, measured_with: Ticks, loss: &Loss) -> Ticks {
        let longer = computed.saturating_sub(measured_with);
        let ungathered = (longer as f64 / several.max(1) as f64).min(1.0);
        let grows = several.saturating_sub(figure) as f64 * ungathered;
        let takes = self.farther(figure + grows.round() as Ticks, loss);
        (takes + measured_with).saturating_sub(computed).min(takes)
    }

    /// Notes when the core goes on; returns its wait.
    fn goes_on(&mut self, loss: &Loss, takes: Option<Ticks>) -> Ticks {
        let took = takes.unwrap_or(0);
        self.done = loss.now + took;
        took
    }

    /// Whether the line was lost lately as well, and is in use again and again.
    fn again(&self, before: Moment, loss: &Loss) -> bool {
        let has_figures = [self.additions, self.stores, self.atomics, self.loads] != [[0; 3]; 4];
        let recent = before.now > 0 && loss.now.saturating_sub(before.now) <= WITHIN;
        has_figures && recent && loss.instructions.saturating_sub(before.instructions) <= self.together
    }

    fn known(&self, loss: &Loss) -> Lost {
        let line = loss.vaddr >> self.line_shift;
        let known = self.lost[line as usize % REMEMBERED];
        if known.line == line { known } else { Lost { line, ..Lost::default() } }
    }

    fn remember(&mut self, lost: Lost) {
        self.lost[lost.line as usize % REMEMBERED] = lost;
    }

    /// Notes a loss; returns the place of the figures.
    fn loses(&mut self, loss: &Loss) -> usize {
        self.latest[self.losses % IN_PLAY] = loss.vaddr >> self.line_shift;
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
    fn farther(&self, takes: Ticks, loss: &Loss) -> Ticks {
        let farther = f64::from(loss.latency_cycles) / f64::from(self.transfer_cycles);
        (takes as f64 * farther.max(1.0)).round() as Ticks
    }
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

    fn loss(line: u64, now: u64) -> Loss {
        Loss { vaddr: line * 64, now: ticks(now), instructions: now, latency_cycles: TRANSFER }
    }

    /// Waits for these lines, in turn, of a core that computes `after` cycles between two accesses: of additions, or of
    /// stores alone.
    fn takes(lines: &[u64], loaded: bool, after: u64) -> Vec<Option<Takes>> {
        let mut contended = contended();
        let mut now = Moment::default();
        let mut next = |line: &u64| {
            now = Moment { now: now.now + ticks(after), instructions: now.instructions + 10 };
            let at = |now: Moment| Loss { now: now.now, instructions: now.instructions, ..loss(*line, 0) };
            now.now += if loaded { contended.loads(&at(now)).unwrap_or(0) } else { 0 };
            let takes = contended.stores(&at(now), false);
            now.now += if let Some(Takes::AtOnce(wait)) = takes { wait } else { 0 };
            takes
        };
        lines.iter().map(&mut next).collect()
    }

    #[test]
    fn additions_to_one_line_take_more_the_longer_the_core_computes_between_them() {
        // 30 cycles beyond the 10 of the measurement: half the way to spaced ones, from 20 cycles to 12; a load's wait of
        // half the way from 3 is a part of them.
        let half_way = Some(Takes::AtOnce(ticks(16) - ticks(15) / 2));
        assert_eq!(takes(&[5, 5, 5], true, 40), [None, half_way, half_way]);
        assert_eq!(takes(&[5, 5], true, 90)[1], Some(Takes::AtOnce(0)), "the load has waited for it all");
    }

    #[test]
    fn a_core_that_computes_nothing_waits_as_long_as_was_measured() {
        // From use to use it is 30 cycles, as measured; the load's wait is a part of them.
        assert_eq!(takes(&[5, 5], true, 1)[1], Some(Takes::AtOnce(ticks(30 - 1 - 3))));
    }

    #[test]
    fn without_figures_of_spaced_accesses_a_core_waits_for_what_is_left_of_a_transfer() {
        let waits = |computed: u64| {
            let mut contended = Contended { spaced: None, ..contended() };
            contended.stores(&loss(0, 1), false);
            contended.loads(&loss(0, 1 + computed));
            contended.stores(&loss(0, 1 + computed), false)
        };
        // 35 cycles beyond the 10 of the measurement are half of the 70 of several lines: half the way from 20 to 70.
        assert_eq!(waits(45), Some(Takes::AtOnce(ticks(45 + 10 - 45))));
        assert_eq!(waits(80), Some(Takes::AtOnce(0)), "the other CPU has the line meanwhile");
    }

    #[test]
    fn the_time_of_a_load_is_taken_off_one_store_alone() {
        let mut contended = contended();
        for now in [1, 2] {
            contended.loads(&loss(0, now));
            contended.stores(&loss(0, now), false);
        }
        let next = contended.stores(&loss(0, 30), false);
        assert!(matches!(next, Some(Takes::AtOnce(wait)) if wait > ticks(10)), "{next:?}");
    }

    #[test]
    fn a_loop_that_stores_to_one_line_alone_has_its_value_in_the_buffer() {
        let mut contended = contended();
        let mut adds = |line, now, lone| {
            contended.loads(&loss(line, now));
            contended.stores(&loss(line, now), lone)
        };
        assert_eq!([1, 2].map(|now| adds(5, now, true))[1], Some(Takes::AtOnce(0)), "the load has waited longer");
        contended.loads = [0; 3];
        let mut adds = |now, lone| {
            contended.loads(&loss(5, now));
            contended.stores(&loss(5, now), lone)
        };
        assert_eq!(adds(10, true), Some(Takes::AtOnce(ticks(2))));
        assert_eq!(adds(22, false), Some(Takes::AtOnce(ticks(20))));
    }

    #[test]
    fn additions_to_several_lines_take_a_transfer_each() {
        let taken: Vec<_> = takes(&[5, 9, 5, 9, 1, 5], true, 30);
        let [two, more] = [ticks(70 + 10 - 30), ticks(70 + 10 - 30)].map(|takes| Some(Takes::AtOnce(takes)));
        assert_eq!(taken, [None, None, two, two, None, more]);
    }

    #[test]
    fn stores_alone_wait_in_the_buffer_by_the_lines_in_play() {
        let [one, two, more] = [ticks(8), ticks(40), ticks(60)].map(|takes| Some(Takes::InTheBuffer(takes)));
        assert_eq!(takes(&[5, 5, 9, 5, 9], false, 30), [None, one, None, two, two]);
        assert_eq!(takes(&[5, 9, 1, 5, 9, 9, 9, 9], false, 30), [None, None, None, more, more, more, two, one]);
    }

    #[test]
    fn atomics_wait_for_what_is_left_of_a_transfer() {
        let mut contended = contended();
        assert_eq!([1, 2].map(|now| contended.atomics(&loss(0, now))), [None, Some(ticks(30))]);
        // 20 cycles beyond the 25 of the measurement are a third of the 60 of several lines.
        let mut later = super::tests::contended();
        assert_eq!([1, 46].map(|now| later.atomics(&loss(0, now)))[1], Some(ticks(40 + 25 - 45)));
        assert_eq!(later.atomics(&loss(0, 240)), Some(0));
    }

    #[test]
    fn loads_have_figures_of_their_own() {
        let mut contended = contended();
        assert_eq!([1, 1].map(|now| contended.loads(&loss(1, now))), [None, Some(ticks(3))]);
        let mut stored = Contended { loads: [ticks(90); 3], ..super::tests::contended() };
        assert_eq!([1, 1].map(|now| stored.loads(&loss(0, now))), [None, Some(ticks(90))]);
        stored.stores(&loss(0, 91), false);
        let next = stored.loads(&loss(0, 91));
        assert_eq!(next, Some(ticks(20)), "no longer than an addition by a CPU that stores to the line as well");
        stored.stores(&loss(0, 111), true);
        assert_eq!(stored.loads(&loss(0, 111)), Some(ticks(2)));
    }

    #[test]
    fn a_line_that_comes_back_late_is_handed_over_and_not_contended() {
        assert_eq!(takes(&[5, 5], false, (1 << 14) + 1), [None, None]);
        assert_eq!(takes(&[5, 5], false, 1 << 14), [None, Some(Takes::InTheBuffer(ticks(8)))]);
        // Two windows of 100 instructions.
        let after = |instructions| {
            let mut contended = contended();
            [0, instructions].map(|at| contended.stores(&Loss { instructions: at, ..loss(0, at + 1) }, false))[1]
        };
        assert_eq!([after(200), after(201)], [Some(Takes::InTheBuffer(ticks(8))), None]);
    }

    #[test]
    fn a_line_from_farther_takes_longer_in_proportion() {
        let mut contended = contended();
        let mut stores = |now, cycles| contended.stores(&Loss { latency_cycles: cycles, ..loss(0, now) }, false);
        stores(1, 3 * TRANSFER);
        assert_eq!(stores(2, 3 * TRANSFER), Some(Takes::InTheBuffer(ticks(24))));
        assert_eq!(stores(3, TRANSFER / 2), Some(Takes::InTheBuffer(ticks(8))));
    }

    #[test]
    fn a_machine_without_times_has_no_contended_lines() {
        let nothing = [0; 3];
        let mut contended =
            Contended { additions: nothing, stores: nothing, atomics: nothing, loads: nothing, ..contended() };
        assert_eq!([1, 2].map(|now| contended.stores(&loss(0, now), false)), [None, None]);
        assert_eq!([3, 4].map(|now| contended.atomics(&loss(0, now))), [None, None]);
        assert_eq!([5, 6].map(|now| contended.loads(&loss(0, now))), [None, None]);
    }
}
