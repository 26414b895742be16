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
//! All of that regards accesses that the core need not wait for. A computation that begins with the value waits for the
//! line, and the other CPU takes it again meanwhile: such an access costs more the longer the computation is, up to more
//! than a transfer. The code shows how long it is (`CodeMap::needed` of [`nearmiss_code`]).
//!
//! An addition to a word that nobody else uses takes its value from the core's own store, which waits in the buffer. It
//! costs next to nothing if the loop around it stores to that line alone: the line comes and takes all stores at once.
//! With a store to another line between, the stores leave in turn, and each needs the line again.
//!
//! Where the uses of a line lie so far apart that no core has two of them under way, the line is handed over: its
//! transfer is a miss like any other, requested ahead and beside others.

use super::{Ticks, ticks};
use nearmiss_code::Needed;
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
/// Cycles computed from the value in the measurement of needed accesses, and the least that make a difference.
const NEEDED: f64 = 128.0;
const LEAST_NEEDED: f64 = 32.0;
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

/// Access that found its line taken by another CPU, or a load just behind one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loss {
    pub vaddr: u64,
    pub now: Ticks,
    /// Instructions that the CPU executed before it.
    pub instructions: u64,
    /// Cycles of the transfer.
    pub latency_cycles: u32,
    /// Of a load: what is computed from its value.
    pub needed: Needed,
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
    /// Computation before that load, and its wait; 0 behind the store that they are a part of.
    load_computed: Ticks,
    load_took: Ticks,
    /// Instructions and computation between that load and the use before, and all waits for the line since.
    apart: u64,
    computed: Ticks,
    took: Ticks,
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
    /// A load with a value that is needed for long: of a line that the core stores to as well, and of another.
    needed: [Ticks; 2],
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
            needed: [others.needed_addition_cycles, others.needed_load_cycles]
                .map(|cycles| ticks(cycles.unwrap_or_default().into())),
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
        let stores_too = self.again(before.stored, loss);
        let apart =
            loss.instructions - before.loaded.instructions.max(before.stored.instructions).min(loss.instructions);
        let held = if stores_too { self.additions(before.lone)[in_play] } else { Ticks::MAX };
        let figures = self.loads.map(|cycles| cycles.min(held));
        let takes = self.again(before.loaded, loss).then(|| {
            let needed = self.needed((apart, computed), stores_too, loss);
            self.plain(computed, figures, in_play, loss).max(needed)
        });
        let took = self.goes_on(loss, takes);
        let (load_computed, load_took) = (computed, took);
        self.remember(Lost { loaded: Moment::of(loss), load_computed, load_took, apart, computed, took, ..before });
        takes
    }

    /// Whether a line is among those lost last.
    #[inline]
    pub fn is_in_play(&self, vaddr: u64) -> bool {
        self.losses > 0 && self.latest.contains(&(vaddr >> self.line_shift))
    }

    /// Handles a load that found the line, which another access of this core may have waited for just before: the value
    /// is needed as that of the access that found the line gone. Returns its cost beyond what that one had.
    pub fn hits(&mut self, load: &Loss) -> Ticks {
        let before = self.known(load);
        let just_came = before.loaded.now > 0 && load.now <= self.done + ticks(self.transfer_cycles.into());
        if load.needed.cycles == 0 || !just_came || !self.again(before.loaded, load) {
            return 0;
        }
        let stores_too = self.again(before.stored, load);
        let takes = self.needed((before.apart, before.computed), stores_too, load);
        let more = takes.saturating_sub(before.took);
        self.done += more;
        self.remember(Lost { took: before.took + more, ..before });
        more
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
        let known = self.known(loss);
        self.remember(Lost { took: before.took + takes, ..known });
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

    /// Returns the wait for a load with a value that is needed, of a line that was used so many instructions and so much
    /// computation ago. A core that computes for longer than two such waits has the line then.
    fn needed(&self, (apart, computed): (u64, Ticks), stores_too: bool, loss: &Loss) -> Ticks {
        let Needed { cycles, instructions } = loss.needed;
        let figure = self.needed[usize::from(!stores_too)];
        // No more was computed from the last value than ran since.
        let ran = (apart as f64 / f64::from(instructions.max(1))).min(1.0);
        let begun = f64::from(cycles) * ran - LEAST_NEEDED;
        let share = (begun / (NEEDED - LEAST_NEEDED)).clamp(0.0, 1.0);
        let takes = self.farther((figure as f64 * share).round() as Ticks, loss);
        takes.min(self.farther(2 * figure, loss).saturating_sub(computed))
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
#[path = "contended_tests.rs"]
mod tests;
