//! Lines that several CPUs use in turn, one of them writing, and the cost of that.
//!
//! A core requests the lines of the stores in its buffer ahead, side by side. That does not help with a line that
//! another CPU stores to as well: the line is gone again at the store's turn, so that such stores leave one by one,
//! each with a transfer of its own. An atomic or a load of such a line waits for a transfer, too. Three things reduce
//! the cost. While a line is there a few more accesses get through, if all of them are to one line. A core that waits
//! goes on within its window, so that the accesses gathered meanwhile get through together. And a core that computes
//! between two uses does so while the other CPU has the line: the time from one use to the next is that of a transfer or
//! that of the computation, whichever is longer. On one line fewer accesses are gathered the longer a core computes, so
//! that the time grows towards that of several lines.
//!
//! No manual gives these times, so a machine file has the cost of an access on one line, two and four, as two CPUs do
//! nothing else (`experiments/cycles/contended-lines.txt`).
//!
//! Plain accesses to one line go by instructions (`experiments/cycles/far-uses.txt`). All loads of the line in a core's
//! window wait for it together, and have left the window when the next loads find it gone: from one load to the next it
//! takes a share of that round, as large as the share of the window between them, or the computation, whichever is
//! longer. A load of bytes that the core has just stored to ([`OwnBytes`]) has its value without the line. A few cycles
//! remain then, the more the more instructions lie between two uses.
//!
//! All of that regards accesses that the core need not wait for. A computation that begins with the value waits for the
//! line, and the other CPU takes it again meanwhile: such an access costs more the longer the computation is, up to more
//! than a transfer. The code shows how long it is (`CodeMap::needed` of [`nearmiss_code`]).
//!
//! An addition to a word that nobody else uses takes its value from the core's own store, which waits in the buffer. It
//! costs next to nothing if the core stores to that line alone: the line comes and takes all stores at once. With a store
//! to another line between, the stores leave in turn ([`Leaving`]), those to other lines as well, and each takes some
//! cycles: from one use of the line to the next it is these or the computation, whichever is longer
//! (`experiments/cycles/far-uses.txt`).
//!
//! Where the uses of a line lie so far apart that no core has two of them under way, the line is handed over: its
//! transfer is a miss like any other, requested ahead and beside others.

use super::leaving::Leaving;
use super::own_bytes::OwnBytes;
use super::uses::Uses;
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
/// Turns in which the stores of the measurements leave: an addition with one store to another line, and with four.
const TURNS_OF_ONE: Ticks = 2;
const TURNS_OF_FOUR: Ticks = 5;
/// Instructions between two far accesses in the measurement of theirs, and in that of older files.
const FAR_INSTRUCTIONS: f64 = 160.0;
const SPACED_INSTRUCTIONS: f64 = 65.0;
/// Cycles computed from the value in the measurement of needed accesses, and the least that make a difference.
const NEEDED: f64 = 128.0;
const LEAST_NEEDED: f64 = 32.0;
/// Transfers from one loss of a contended line to the next, at most: to the other CPU, and back.
const TRANSFERS_OF_A_TURN: Ticks = 2;
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
    /// Bytes of the access.
    pub size: u32,
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
    /// Instructions and computation before that load, and its wait; 0 behind the store that they are a part of.
    load_apart: u64,
    load_computed: Ticks,
    load_took: Ticks,
    /// Instructions and computation between the latest use and the one before, and all waits for the line since.
    apart: u64,
    computed: Ticks,
    took: Ticks,
    /// Stores of the core up to the latest one to the line.
    leaving: Leaving,
    own: OwnBytes,
}

impl Lost {
    /// Instructions from the latest use to this one.
    fn apart(&self, loss: &Loss) -> u64 {
        loss.instructions.saturating_sub(self.loaded.instructions.max(self.stored.instructions))
    }
}

/// Instructions and computation between two uses of a line.
#[derive(Clone, Copy, Debug)]
struct Since {
    apart: u64,
    computed: Ticks,
}

/// Cost of an access by the lines in play: one, two, more.
type Figures = [Ticks; 3];

/// Latest references of one core to lines that other CPUs had taken.
#[derive(Clone, Debug)]
pub(super) struct Contended {
    line_shift: u32,
    /// A store behind a load of its line.
    additions: Figures,
    /// A store behind a load of its line, of a core that stores to no other.
    lone_addition: Ticks,
    /// A turn of the stores that leave the buffer, some of them to one contended line.
    turn: Ticks,
    /// An addition to one line by the instructions since the use before, if it was measured; and from one load to the
    /// next, of bytes that the core has not stored to.
    far_addition: Option<f64>,
    far_load: f64,
    /// A load with a value that is needed for long: of a line that the core stores to as well, and of another.
    needed: [Ticks; 2],
    stores: Figures,
    atomics: Figures,
    loads: Figures,
    /// Cycles of a transfer within the node, which the figures are for.
    transfer_cycles: u32,
    /// Instructions of the core's window.
    window: u64,
    /// Losses by the line's number.
    lost: Vec<Lost>,
    uses: Uses,
    leaving: Leaving,
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
            turn: turn(one, &others),
            far_addition: far_addition(&others),
            far_load: others.far_load_cycles.map_or(0.0, |cycles| by_instruction(cycles, FAR_INSTRUCTIONS)),
            needed: [others.needed_addition_cycles, others.needed_load_cycles]
                .map(|cycles| ticks(cycles.unwrap_or_default().into())),
            stores: of(others.store_cycles),
            atomics: of(others.atomic_cycles),
            loads: of(others.load_cycles),
            transfer_cycles: machine.latency.core_modified_cycles.max(1),
            window: u64::from(core.window_instructions).max(1),
            lost: vec![Lost { line: NONE, ..Lost::default() }; REMEMBERED],
            uses: Uses::default(),
            leaving: Leaving::default(),
            latest: [NONE; IN_PLAY],
            losses: 0,
            done: 0,
        }
    }

    /// Handles a load that found its line taken by another CPU. Returns its cost, if the line is contended.
    pub fn loads(&mut self, loss: &Loss) -> Option<Ticks> {
        let before = self.known(loss);
        let in_play = self.loses(loss);
        let since = Since { apart: before.apart(loss), computed: loss.now.saturating_sub(self.done) };
        // A CPU that stores to the line as well holds it meanwhile, as one that adds to it.
        let stores_too = self.again(before.stored, loss);
        let takes = self.again(before.loaded, loss).then(|| {
            let needed = self.needed(since, stores_too, loss);
            needed.max(match self.far_addition {
                Some(_) if in_play == 0 => self.load_of_one_line(since, &before, stores_too, loss),
                _ => self.load(since, in_play, stores_too, loss),
            })
        });
        let took = self.goes_on(loss, takes);
        let Since { apart, computed } = since;
        let (load_apart, load_computed, load_took) = (apart, computed, took);
        let loaded = Moment::of(loss);
        self.remember(Lost { loaded, load_apart, load_computed, load_took, apart, computed, took, ..before });
        takes
    }

    /// Whether a line is among those lost last.
    #[inline]
    pub fn is_in_play(&self, vaddr: u64) -> bool {
        self.losses > 0 && self.latest.contains(&(vaddr >> self.line_shift))
    }

    /// Handles a load that found the line, which another access of this core may have waited for just before: it waits as
    /// the access that found the line gone. Returns its cost beyond what that one had.
    pub fn hits(&mut self, load: &Loss) -> Ticks {
        let before = self.known(load);
        let lost = before.loaded.now.max(before.stored.now);
        let just_came = lost > 0 && load.now <= self.done + ticks(self.transfer_cycles.into());
        let [loads_too, stores_too] = [before.loaded, before.stored].map(|moment| self.again(moment, load));
        if !just_came || !loads_too && !stores_too {
            return 0;
        }
        let since = Since { apart: before.apart, computed: before.computed };
        let needed = if loads_too { self.needed(since, stores_too, load) } else { 0 };
        let one_line = self.far_addition.is_some() && self.in_play() == 0 && !self.is_own(&before, load);
        let far = if one_line { self.load_of_one_line(since, &before, stores_too, load) } else { 0 };
        let more = needed.max(far).saturating_sub(before.took);
        self.done += more;
        self.remember(Lost { took: before.took + more, ..before });
        more
    }

    /// A store to this address is put behind the others, be it a hit or not.
    #[inline]
    pub fn buffers(&mut self, vaddr: u64, instructions: u64) {
        let line = vaddr >> self.line_shift;
        self.leaving.store(line);
        self.uses.store(line, instructions);
    }

    /// Handles a store that found the line in another CPU. Returns its cost, if the line is contended.
    pub fn stores(&mut self, loss: &Loss) -> Option<Takes> {
        let before = self.stored(loss);
        let loaded = Self::is_behind_a_load(&before, loss);
        let in_play = if loaded { self.in_play() } else { self.loses(loss) };
        let apart = before.apart(loss) + before.load_apart;
        let computed = loss.now.saturating_sub(self.done) + before.load_computed;
        // The load's wait is a part of this store's, and of no later one's.
        let now =
            Lost { stored: Moment::of(loss), load_apart: 0, load_computed: 0, load_took: 0, apart, computed, ..before };
        self.remember(Lost { leaving: self.leaving, ..now });
        if !self.again(before.stored, loss) {
            self.goes_on(loss, None);
            return None;
        }
        let turns = if in_play == 0 { self.turn * self.leaving.turns_since(&before.leaving) } else { 0 };
        if !loaded {
            return Some(Takes::InTheBuffer(self.farther(self.stores[in_play].max(turns), loss)));
        }
        let in_turn = turns.saturating_sub(computed).min(self.additions[2]);
        let takes = self.addition(Since { apart, computed }, in_play, loss) + self.farther(in_turn, loss);
        let takes = takes.saturating_sub(before.load_took);
        self.goes_on(loss, Some(takes));
        self.remember(Lost { leaving: self.leaving, took: before.load_took + takes, ..now });
        Some(Takes::AtOnce(takes))
    }

    /// Notes the bytes that a store writes; returns what is known of its line.
    fn stored(&self, store: &Loss) -> Lost {
        let mut known = self.known(store);
        known.own.store(store.instructions / self.window, self.bytes(store));
        known
    }

    /// Handles a store that found the line, which this core lost a moment ago: it leaves in turn, as all between two
    /// losses. Returns its cost, if it has one.
    pub fn stores_again(&mut self, store: &Loss) -> Option<Takes> {
        let before = self.stored(store);
        let lost = before.stored.now.max(before.loaded.now);
        self.remember(before);
        let lately =
            before.stored.now > 0 && store.now <= lost + TRANSFERS_OF_A_TURN * ticks(self.transfer_cycles.into());
        let turns = self.turn * self.leaving.turns_since(&before.leaving);
        if !lately || turns == 0 || self.in_play() > 0 || !self.again(before.stored, store) {
            return None;
        }
        self.remember(Lost { leaving: self.leaving, ..before });
        if !Self::is_behind_a_load(&before, store) {
            return Some(Takes::InTheBuffer(turns));
        }
        let takes = turns.saturating_sub(store.now.saturating_sub(self.done)).min(self.additions[2]);
        self.goes_on(store, Some(takes));
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

    /// Returns the wait for a load by the figures of so many lines in play.
    fn load(&self, since: Since, in_play: usize, stores_too: bool, loss: &Loss) -> Ticks {
        let held = if stores_too { self.additions()[in_play] } else { Ticks::MAX };
        let figures = self.loads.map(|cycles| cycles.min(held));
        self.beyond(since.computed, figures[in_play], figures[2], ADDITION_COMPUTES, loss)
    }

    /// Returns the wait for a load of the one line in play.
    fn load_of_one_line(&self, since: Since, before: &Lost, stores_too: bool, loss: &Loss) -> Ticks {
        let left = self.left(since, loss);
        if stores_too && self.is_own(before, loss) {
            return left;
        }
        let measured = ADDITION_COMPUTES + self.loads[0];
        let from_use_to_use = measured.max((self.far_load * since.apart as f64) as Ticks);
        let figure = if stores_too { self.additions[2] } else { self.loads[2] };
        left.max(self.farther(from_use_to_use.saturating_sub(since.computed).min(figure), loss))
    }

    /// Returns the wait for an addition, the load included.
    fn addition(&self, since: Since, in_play: usize, loss: &Loss) -> Ticks {
        let figures = self.additions();
        match self.far_addition {
            Some(_) if in_play == 0 => self.left(since, loss),
            _ => self.beyond(since.computed, figures[in_play], figures[2], ADDITION_COMPUTES, loss),
        }
    }

    /// Returns what is left of a transfer where the core has the value of its own store: nothing where it computes for
    /// as long as the line takes to the other CPU and back.
    fn left(&self, since: Since, loss: &Loss) -> Ticks {
        let (far, transfer) = (self.far_addition.unwrap_or_default() * since.apart as f64, self.additions[2]);
        let left = (far as Ticks).clamp(self.lone_addition.min(transfer), transfer);
        self.farther(left.min((2 * transfer).saturating_sub(since.computed)), loss)
    }

    /// Whether the core has just stored to all bytes of a load.
    fn is_own(&self, before: &Lost, load: &Loss) -> bool {
        before.own.cover(load.instructions / self.window, self.bytes(load))
    }

    /// Bytes of an access as bits, those of its line in 64 parts.
    fn bytes(&self, access: &Loss) -> u64 {
        let part = self.line_shift.saturating_sub(6);
        let begins = (access.vaddr & ((1 << self.line_shift) - 1)) >> part;
        let parts = u64::from(access.size.max(1)).div_ceil(1 << part).min(64);
        (u64::MAX >> (64 - parts)) << (begins & 63)
    }

    /// Returns the figures of additions by a core that stores to no other line.
    fn additions(&self) -> Figures {
        let [_, two, more] = self.additions;
        [self.lone_addition, two, more]
    }

    /// Returns the wait for a load with a value that is needed, of a line that was used so many instructions and so much
    /// computation ago. A core that computes for longer than two such waits has the line then.
    fn needed(&self, Since { apart, computed }: Since, stores_too: bool, loss: &Loss) -> Ticks {
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

    /// Whether stores to a line come behind loads of it: one of those has found it gone lately.
    fn is_behind_a_load(before: &Lost, store: &Loss) -> bool {
        before.loaded.now > 0 && store.now.saturating_sub(before.loaded.now) <= WITHIN
    }

    /// Whether the line was lost lately as well, and is in use again and again.
    fn again(&self, before: Moment, loss: &Loss) -> bool {
        let has_figures = [self.additions, self.stores, self.atomics, self.loads] != [[0; 3]; 4];
        let recent = before.now > 0 && loss.now.saturating_sub(before.now) <= WITHIN;
        let used = before.instructions.max(self.uses.before(loss.vaddr >> self.line_shift, loss.instructions));
        has_figures && recent && loss.instructions.saturating_sub(used) <= WINDOWS * self.window
    }

    fn known(&self, loss: &Loss) -> Lost {
        let line = loss.vaddr >> self.line_shift;
        let known = self.lost[line as usize % REMEMBERED];
        if known.line == line { known } else { Lost { line, ..Lost::default() } }
    }

    fn remember(&mut self, lost: Lost) {
        self.uses.loses(lost.line, lost.stored.instructions.max(lost.loaded.instructions));
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

/// Returns the ticks of an addition by the instructions since the one before.
fn far_addition(others: &nearmiss_record::machine::Contended) -> Option<f64> {
    let far = others.far_addition_cycles.map(|cycles| by_instruction(cycles, FAR_INSTRUCTIONS));
    far.or_else(|| others.spaced_addition_cycles.map(|cycles| by_instruction(cycles, SPACED_INSTRUCTIONS)))
}

fn by_instruction(cycles: u32, instructions: f64) -> f64 {
    ticks(cycles.into()) as f64 / instructions
}

/// Returns the turn of a store that leaves in turn.
fn turn(one: u32, others: &nearmiss_record::machine::Contended) -> Ticks {
    match others.between_stores_cycles {
        Some(cycles) => ticks(cycles.into()) / TURNS_OF_FOUR,
        None => (ticks(one.into()) + ADDITION_COMPUTES) / TURNS_OF_ONE,
    }
}

#[cfg(test)]
#[path = "contended_tests.rs"]
mod tests;
