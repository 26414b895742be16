//! The waits of one core under the interval model.

use super::contended::{Contended, Loss, Takes};
use super::crowded::Crowded;
use super::front_end::FrontEnd;
use super::page_table::PageTable;
use super::streams::{Foreseen, SHOWN, Streams};
use super::supply::{Request, Supply};
use super::translation::{ApartWalks, Translation, is_of_large};
use super::values::{Reached, Value, Values};
use super::wrong_path::WrongPath;
use super::{Ticks, part, ticks};
use nearmiss_code::{Needed, Origin};
use nearmiss_record::machine::{Core, Machine};
use nearmiss_record::model::Translation as Tally;
use nearmiss_record::policy::PagePolicy;
use nearmiss_record::reference::Kind;
use std::collections::VecDeque;

/// Instructions for each store, if not specified: they give how long the store buffer lasts.
const INSTRUCTIONS_A_STORE: u64 = 6;
/// A reference that did not hit the first level, and its outcome.
#[derive(Clone, Copy, Debug)]
pub(in crate::model) struct Waiting<'a> {
    pub kind: Kind,
    pub insn: u32,
    pub vaddr: u64,
    /// Bytes of the reference.
    pub size: u32,
    /// Cycles until the line is there, the wait for the bus included.
    pub latency_cycles: u32,
    /// Levels that the reference missed, a bit each.
    pub missed: u8,
    /// The first level gives up a modified line for this one.
    pub writes_back: bool,
    /// Cycles until the line has come back from where a store past the caches has just written it.
    pub reread: Option<u32>,
    /// Another CPU had taken the line, or has it, too, and must give it up for a store.
    pub lost: bool,
    /// Chain that begins with the value of a load whose line another CPU had, if the code is known.
    pub needed: Needed,
    /// Instructions that the CPU executed before the reference.
    pub instructions: u64,
    /// The CPU's clock, all that was charged included.
    pub clock: Ticks,
    /// Ticks of an instruction here.
    pub pace: Ticks,
    /// Address of the instruction, and origin of the reference's address, if the code is known.
    pub at: Option<u64>,
    pub origin: Option<&'a Origin>,
}

/// See the module's text above.
#[derive(Clone, Debug)]
pub(in crate::model) struct Interval {
    window: u64,
    store_window: u64,
    /// Instructions by which the line of an atomic is requested ahead.
    atomics_window: u64,
    /// Waits charged ahead: the instruction from which on each has come, and its ticks.
    charged: VecDeque<(u64, Ticks)>,
    /// Sum of those.
    ahead: Ticks,
    pub(super) values: Values,
    /// Time at which each fill buffer is free, oldest first from `next_fill` on.
    fills: Vec<Ticks>,
    next_fill: usize,
    /// Lines that loads missed lately, and when each is there; as many as there are fill buffers.
    coming: VecDeque<(u64, Ticks)>,
    line_log2: u32,
    /// Time at which the latest store has left the store buffer.
    stored: Ticks,
    crowded: Crowded,
    contended: Contended,
    pub(super) front_end: FrontEnd,
    streams: Option<Streams>,
    supply: Supply,
    translation: Option<Translation>,
    page_table: PageTable,
    /// From a load that hits the first level to its value.
    hit: Ticks,
    /// From the decision of a branch that was predicted wrongly to the first instruction of its way.
    pub(super) redirects: Ticks,
    pub(super) wrong_path: WrongPath,
    /// Time at which the latest line is there that a store past the caches wrote.
    reread: Ticks,
    /// Wait of the next reference for its page, which was looked up already.
    walked: Ticks,
    /// From the walk of the page table that it is to the next one.
    to_next_walk: Ticks,
    /// From a walk to the next one, by the page that is walked to.
    pub(super) apart_walks: ApartWalks,
    /// Time from which on the next walk may begin.
    walk_after: Ticks,
    /// Ticks charged beyond whole cycles.
    rest: Ticks,
}

impl Interval {
    pub fn new(machine: &Machine, core: &Core, pages: &PagePolicy) -> Self {
        let hit_cycles = machine.latency.level_cycles.first().copied().unwrap_or_default();
        let store_window = (u64::from(core.store_buffer) * INSTRUCTIONS_A_STORE).max(core.window_instructions.into());
        Interval {
            window: u64::from(core.window_instructions),
            store_window,
            atomics_window: if core.atomics_ahead { core.window_instructions.into() } else { 0 },
            charged: VecDeque::new(),
            ahead: 0,
            values: Values::new(core.window_instructions.into(), hit_cycles),
            fills: vec![0; core.fill_buffers.max(1) as usize],
            next_fill: 0,
            coming: VecDeque::new(),
            line_log2: machine.data_cache(1).map_or(6, |cache| cache.line.0.max(1).ilog2()),
            stored: 0,
            crowded: Crowded::new(machine, core, store_window, part(core.fill_cycles)),
            contended: Contended::new(machine, core),
            front_end: FrontEnd::new(core.fetch_ahead_instructions),
            streams: machine.streams.as_ref().map(Streams::new),
            supply: Supply::new(machine, core),
            translation: machine.tlb.as_ref().map(|tlb| Translation::new(tlb, pages)),
            page_table: PageTable::new(machine),
            hit: ticks(hit_cycles.into()),
            redirects: ticks(core.mispredict_cycles.into()),
            wrong_path: WrongPath::new(core.window_instructions.into()),
            reread: 0,
            walked: 0,
            to_next_walk: 0,
            apart_walks: ApartWalks::new(machine),
            walk_after: 0,
            rest: 0,
        }
    }

    /// Returns the ticks charged that have not come at this instruction.
    pub fn ahead(&mut self, instructions: u64) -> Ticks {
        while let Some((_, wait)) = self.charged.pop_front_if(|(from, _)| *from <= instructions) {
            self.ahead -= wait;
        }
        self.ahead
    }

    /// Pages looked up.
    pub fn translated(&self) -> Option<Tally> {
        self.translation.as_ref().map(|translation| translation.counted)
    }

    /// A reference to data. Returns whether it waits for its page, be it a hit or not.
    #[inline]
    pub fn looks_up(&mut self, vaddr: u64, paddr: u64, space: u64) -> bool {
        let Some(translation) = &mut self.translation else { return false };
        self.walked = translation.takes(vaddr, paddr, space);
        if let Some(entry) = translation.take_walked() {
            let is_large = is_of_large(entry);
            let way = self.page_table.walk(entry, is_large);
            self.walked += way.wait;
            self.to_next_walk = self.apart_walks.behind(is_large, way.is_far);
        } else {
            self.to_next_walk = 0;
        }
        self.walked > 0
    }

    /// A store is put behind the others. Returns whether it may wait for them, be it a hit or not.
    #[inline]
    pub fn buffers(&mut self, vaddr: u64, instructions: u64) -> bool {
        self.contended.buffers(vaddr, instructions);
        self.crowded.crowd(vaddr, instructions) || self.contended.is_in_play(vaddr)
    }

    /// Whether a load or store may wait for a line that another CPU has given up a moment ago, be it a hit or not.
    #[inline]
    pub fn contends(&self, vaddr: u64) -> bool {
        self.contended.is_in_play(vaddr)
    }

    /// Returns the core's wait for a reference, in whole cycles.
    pub fn waits(&mut self, what: &Waiting<'_>) -> u32 {
        self.page_table.fills(what.missed);
        let ahead = self.ahead(what.instructions);
        let begins = what.clock - (ahead + self.sooner(what)).min(what.clock);
        let wait = match what.kind {
            Kind::Fetch => self.fetch(what, begins),
            Kind::Store | Kind::NtStore => self.store(what, begins),
            Kind::Atomic => self.atomic(what, begins),
            _ => self.load(what, begins),
        };
        self.whole_cycles(wait)
    }

    pub(super) fn whole_cycles(&mut self, wait: Ticks) -> u32 {
        let whole = wait + self.rest;
        self.rest = whole & 0xffff;
        u32::try_from(whole >> 16).unwrap_or(u32::MAX)
    }

    fn load(&mut self, what: &Waiting<'_>, begins: Ticks) -> Ticks {
        let known = self.address_known(what, begins);
        if let Some(takes) = self.contended_load(what, begins) {
            return self.load_at_once(what, begins, known, takes);
        }
        let there = self.line(what, begins, begins.max(known));
        let there = self.back_from_memory(what, there);
        let there = self.with_its_line(what, there);
        self.values.record(what.insn, Value { ready: there, begun: begins, instructions: what.instructions });
        if what.missed == 0 {
            let takes = self.contended.hits(&access_of(what, begins));
            return self.beyond_what_was_charged(takes) + self.charge(what, there, self.window);
        }
        self.crowded.filled(what.vaddr);
        if known <= begins {
            // Else the stores before it have left when its address is known, and it pushes out the line of none.
            self.crowded.pushes_out(what.vaddr, what.instructions);
        }
        let fills = self.beyond_what_was_charged(self.crowded.load_takes(what.vaddr));
        let behind = Waiting { clock: what.clock + fills, ..*what };
        fills + self.charge(&behind, there, self.window)
    }

    /// Returns when the value of a load is there: one that hits a line on its way waits for the line.
    fn with_its_line(&mut self, what: &Waiting<'_>, there: Ticks) -> Ticks {
        let line = what.vaddr >> self.line_log2;
        if what.missed == 0 {
            return there.max(self.comes(line));
        }
        if self.coming.len() >= self.fills.len() {
            self.coming.pop_back();
        }
        self.coming.push_front((line, there));
        there
    }

    /// Returns when a line that a load missed lately is there; 0: it was not lately.
    fn comes(&self, line: u64) -> Ticks {
        self.coming.iter().find(|(known, _)| *known == line).map_or(0, |(_, arrives)| *arrives)
    }

    /// Returns when the line of a load is there, which may be on its way from a store past the caches.
    fn back_from_memory(&mut self, what: &Waiting<'_>, there: Ticks) -> Ticks {
        let Some(cycles) = what.reread else { return there };
        self.reread = self.reread.max(what.clock) + ticks(cycles.into());
        there.max(self.reread)
    }

    fn contended_load(&mut self, what: &Waiting<'_>, begins: Ticks) -> Option<Ticks> {
        if what.missed == 0 { None } else { self.contended.loads(&loss(what, begins)?) }
    }

    /// Handles a line that comes and goes beside all others. Instructions that depend on the load through memory wait
    /// for its value.
    fn load_at_once(&mut self, what: &Waiting<'_>, begins: Ticks, known: Ticks, takes: Ticks) -> Ticks {
        let ready = self.page_known(begins, begins.max(known)) + ticks(what.latency_cycles.into());
        self.values.record(what.insn, Value { ready, begun: begins, instructions: what.instructions });
        self.crowded.filled(what.vaddr);
        self.beyond_what_was_charged(takes)
    }

    fn store(&mut self, what: &Waiting<'_>, begins: Ticks) -> Ticks {
        let known = self.address_known(what, begins);
        if what.missed != 0 {
            self.crowded.filled(what.vaddr);
        }
        let mut takes = self.crowded.store_takes(what.vaddr, what.instructions, what.missed == 0);
        if what.missed != 0 {
            self.crowded.pushes_out(what.vaddr, what.instructions);
        }
        let contended = match loss(what, begins) {
            Some(loss) => self.contended.stores(&loss),
            None if what.missed == 0 => self.contended.stores_again(&access_of(what, begins)),
            None => None,
        };
        let there = match contended {
            Some(Takes::AtOnce(ticks)) => return self.store_at_once(what, takes, ticks),
            Some(Takes::InTheBuffer(ticks)) => {
                takes = takes.max(ticks);
                self.page_known(begins, begins.max(known))
            }
            None => self.line(what, begins, begins.max(known)),
        };
        self.stored = there.max(self.stored + takes);
        self.charge(what, self.stored, self.store_window)
    }

    /// Handles a store with its line requested at its turn: no other wait of the core overlaps with it.
    fn store_at_once(&mut self, what: &Waiting<'_>, takes: Ticks, wait: Ticks) -> Ticks {
        self.walked = 0;
        let there = what.clock + wait;
        self.stored = there.max(self.stored + takes);
        self.charge(what, there, 0)
    }

    fn atomic(&mut self, what: &Waiting<'_>, begins: Ticks) -> Ticks {
        let address = begins.max(self.address_known(what, begins));
        let (there, hidden) = match loss(what, begins).and_then(|loss| self.contended.atomics(&loss)) {
            Some(takes) => (self.page_known(begins, what.clock.max(address).max(self.stored)) + takes, 0),
            None if self.atomics_window > 0 => (self.line(what, begins, address).max(self.stored), self.atomics_window),
            None => (self.line(what, begins, address.max(self.stored)), 0),
        };
        self.stored = there;
        self.values.record(what.insn, Value { ready: there, begun: begins, instructions: what.instructions });
        self.charge(what, there, hidden)
    }

    /// Handles a line of the code: later instructions wait at once if the front end did not request it early enough.
    fn fetch(&mut self, what: &Waiting<'_>, begins: Ticks) -> Ticks {
        let reached = self.front_end.reached(what.instructions, begins, what.pace);
        let given = self.supply.gives(&self.request(what), reached);
        let wait = (given + ticks(what.latency_cycles.into())).saturating_sub(begins);
        self.front_end.waits(what.instructions, wait);
        self.beyond_what_was_charged(wait)
    }

    /// Returns the rest of a wait at this instruction: waits charged for the near future pass meanwhile.
    pub(super) fn beyond_what_was_charged(&mut self, mut wait: Ticks) -> Ticks {
        while wait > 0
            && let Some((_, charged)) = self.charged.front_mut()
        {
            let passed = wait.min(*charged);
            *charged -= passed;
            (self.ahead, wait) = (self.ahead - passed, wait - passed);
            if *charged == 0 {
                self.charged.pop_front();
            }
        }
        wait
    }

    /// Returns when the page of a reference is known that begins then, and that the core `reached` before: walks take
    /// turns in that order, and one with a late address holds up none behind it.
    fn page_known(&mut self, reached: Ticks, begins: Ticks) -> Ticks {
        let (walked, to_next) = (std::mem::take(&mut self.walked), std::mem::take(&mut self.to_next_walk));
        if to_next == 0 {
            return begins + walked;
        }
        let turn = reached.max(self.walk_after);
        self.walk_after = turn + to_next;
        begins.max(turn) + walked
    }

    /// Returns when the line is there, if only its source, fill buffers and pages hold it up from `begins` on. The core
    /// `reached` it then: lines come in that order, but for those with late addresses.
    fn line(&mut self, what: &Waiting<'_>, reached: Ticks, begins: Ticks) -> Ticks {
        let begins = self.page_known(reached, begins);
        if what.missed == 0 {
            // A store that hits waits for no value.
            let hit = if what.kind == Kind::Store { 0 } else { self.hit };
            return begins + hit.max(ticks(what.latency_cycles.into()));
        }
        let streams = self.streams.as_mut().filter(|_| what.reread.is_none());
        let Foreseen { shown, apart, since, with } =
            streams.map_or(Foreseen::NOT, |streams| streams.foreseen(what.vaddr, what.insn, begins));
        let begins = begins.max(self.supply.gives(&self.request(what), reached));
        if apart {
            self.supply.left_lines_out(source(what));
        }
        let whole = ticks(what.latency_cycles.into());
        let latency = whole * shown / SHOWN;
        if let Some((with, wait)) = with {
            // A load that needs no value of the missed one requests its line itself.
            return (begins + latency).min(begins.max(self.comes(with)) + wait);
        }
        if shown == 0 {
            // The first lines of a stream are on their way when they are needed.
            return begins.max(since + whole);
        }
        let fill = &mut self.fills[self.next_fill];
        let there = begins.max(*fill) + latency;
        *fill = there;
        self.next_fill = (self.next_fill + 1) % self.fills.len();
        there
    }

    fn request(&self, what: &Waiting<'_>) -> Request {
        let source = source(what);
        let share = if self.supply.has_banks(source) { self.crowded.requested(what.vaddr) } else { 1.0 };
        Request { source, vaddr: what.vaddr, writes_back: what.writes_back, share }
    }

    fn address_known(&mut self, what: &Waiting<'_>, begins: Ticks) -> Ticks {
        let Waiting { insn, instructions, origin, .. } = *what;
        self.values.address_known(&Reached { insn, instructions, begins, origin })
    }

    /// Charges the core's wait so that it begins the instruction `window` further on not before `there`.
    fn charge(&mut self, what: &Waiting<'_>, there: Ticks, window: u64) -> Ticks {
        let hidden = what.pace.saturating_mul(window);
        let wait = there.saturating_sub(what.clock.saturating_add(hidden));
        if wait > 0 {
            let from = what.instructions + window;
            let at = self.charged.iter().rposition(|(known, _)| *known <= from).map_or(0, |at| at + 1);
            self.charged.insert(at, (from, wait));
            self.ahead += wait;
        }
        wait
    }
}

/// The access as one that found its line taken, if another CPU had it.
fn loss(what: &Waiting<'_>, begins: Ticks) -> Option<Loss> {
    what.lost.then(|| access_of(what, begins))
}

fn access_of(what: &Waiting<'_>, begins: Ticks) -> Loss {
    let (vaddr, instructions, latency_cycles) = (what.vaddr, what.instructions, what.latency_cycles);
    Loss { vaddr, now: begins, instructions, latency_cycles, size: what.size, needed: what.needed }
}

/// The level that has the line, counted from the second on; memory comes last.
fn source(what: &Waiting<'_>) -> usize {
    (7 - what.missed.leading_zeros().min(7)) as usize
}

#[cfg(test)]
#[path = "interval_tests.rs"]
pub(super) mod tests;

#[cfg(test)]
#[path = "ahead_tests.rs"]
mod ahead_tests;
