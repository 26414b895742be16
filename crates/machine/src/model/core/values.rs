//! Times at which values of loads are there, and with them the addresses made of them.

use super::loops::Loops;
use super::{Ticks, part};
use nearmiss_code::{Chain, Given, Origin};
use std::cmp::Reverse;

/// The tap counts the instructions of a line of code when the line is entered, so that two instructions lie by so many
/// nearer to each other than they do, or farther. An instruction and its next execution lie as far apart as they do.
pub(super) const COUNTED_TOGETHER: u32 = 16;

/// A reference that the core gets to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reached<'a> {
    pub insn: u32,
    /// Instructions that the CPU executed before it.
    pub instructions: u64,
    /// Time at which the core is there.
    pub begins: Ticks,
    /// Origin of its address, if the code is known.
    pub origin: Option<&'a Origin>,
}

/// Value of a load that missed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Value {
    /// Time at which it is there.
    pub ready: Ticks,
    /// Time at which the core began the load, if nothing had kept it.
    pub begun: Ticks,
    /// Instructions before the load.
    pub instructions: u64,
}

/// Known values of an instruction that loads.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    /// The latest value, and the one before.
    values: [Value; 2],
    /// The latest value from before the present run of the load's loop, if that takes its addresses from before it.
    given: Value,
    /// Instructions from the load on that are counted with those before it.
    counted_ahead: u32,
    /// Time at which the address of the latest one was known.
    known: Ticks,
    /// The chain from one execution to the next, if the load is its own origin.
    chain: Option<Chain>,
}

impl Load {
    /// The latest value from before some instruction.
    pub fn before(&self, instructions: u64) -> Value {
        self.values.into_iter().find(|value| value.instructions <= instructions).unwrap_or_default()
    }

    /// The latest value from before a run of the load's loop.
    fn before_the_run(&self, since: u64) -> Value {
        let executed = |value: &Value| value.instructions.saturating_sub(self.counted_ahead.into());
        self.values.into_iter().find(|value| executed(value) < since).unwrap_or(self.given)
    }
}

/// A value that an address may be made of.
#[derive(Clone, Copy, Debug, Default)]
struct Source {
    value: Value,
    /// Instructions and cycles from the value to the address.
    distance: u32,
    cycles: f32,
    /// See [`Load::chain`].
    chain: Option<Chain>,
}

impl Source {
    /// Orders sources by who ran last. The nearest of those that were counted together did.
    fn latest(&self) -> (u64, Reverse<u32>) {
        (self.value.instructions, Reverse(self.distance))
    }
}

/// Values of all loads of a core.
#[derive(Clone, Debug)]
pub(super) struct Values {
    loads: Vec<Load>,
    loops: Loops,
    /// Instructions that a core has under way.
    window: u64,
    /// From a load that hits the first level to its value, in cycles.
    hit_cycles: f32,
}

impl Values {
    pub fn new(window: u64, hit_cycles: u32) -> Self {
        Values { loads: Vec::new(), loops: Loops::default(), window, hit_cycles: hit_cycles as f32 }
    }

    pub fn record(&mut self, insn: u32, value: Value) {
        let load = self.load_of(insn);
        load.values = [value, load.values[0]];
    }

    pub fn of(&self, insn: u32) -> Option<&Load> {
        self.loads.get(insn as usize)
    }

    /// Returns when the value that forms the address is there. In a loop within a loop the address may come from the
    /// outer loop. It is known from the code, or the instruction ran again sooner than its own value comes round: then it
    /// waits for the same value as the execution before.
    pub fn address_known(&mut self, what: &Reached<'_>) -> Ticks {
        let Some(origin) = what.origin else { return 0 };
        let run = self.run_since(what, origin);
        let own = self.load_of(what.insn);
        (own.chain, own.counted_ahead) = (origin.own_chain, origin.counted_ahead);
        if let Some(since) = run {
            own.given = own.before_the_run(since);
            return self.latest(what, origin, run).map_or(0, |source| self.carried(&source, what));
        }
        let since = what.instructions - own.values[0].instructions.min(what.instructions);
        let again = own.chain.is_some_and(|chain| since < chain.instructions.into());
        if again && own.values[0].ready > 0 {
            return own.known;
        }
        let known = self.latest(what, origin, None).map_or(0, |source| self.carried(&source, what));
        self.load_of(what.insn).known = known;
        known
    }

    /// Returns the latest recorded value that the address may be made of. If an address may come from one load or
    /// another, as the entries of a list come from its head or from the entry before, only that load has run since. If
    /// it is made of several, the loads before the last one began earlier. `run`: where the present run began of a loop
    /// that is given the values of its own loads. A turn of a chain is a whole run then, so that no turn was left out.
    fn latest(&self, what: &Reached<'_>, origin: &Origin, run: Option<u64>) -> Option<Source> {
        let is_inside = |given: &Given, at| given.inside.get(at).is_some_and(|inside| *inside);
        let inside = |at: usize| run.filter(|_| origin.given.as_ref().is_some_and(|given| is_inside(given, at)));
        let others = origin.loads.iter().zip(&origin.distances).zip(&origin.cycles);
        let others = others.enumerate().filter(|(_, ((load, _), _))| origin.own_chain.is_none() || load.0 != what.insn);
        let sources = others.filter_map(|(at, ((load, distance), cycles))| {
            let load = self.of(load.0)?;
            let counted = distance.saturating_sub(COUNTED_TOGETHER);
            let before = || load.before(what.instructions.saturating_sub(counted.into()));
            let value = inside(at).map_or_else(before, |since| load.before_the_run(since));
            Some(Source { value, distance: *distance, cycles: *cycles, chain: load.chain.filter(|_| run.is_none()) })
        });
        let latest = sources.max_by_key(Source::latest);
        let own = origin.own_chain.zip(self.of(what.insn)).map(|(chain, own)| Source {
            value: if run.is_some() { own.given } else { own.values[0] },
            distance: chain.instructions,
            cycles: (chain.cycles - self.hit_cycles).max(0.0),
            chain: Some(chain).filter(|_| run.is_none()),
        });
        let own = own.filter(|own| own.value.ready > 0);
        own.into_iter().chain(latest).max_by_key(Source::latest)
    }

    /// Returns when the address is known that is made of a value. Executions of the load behind it that hit the first
    /// level were not reported: if the load is its own origin, each waited for the one before. They never fall further
    /// behind the core than the value did, as the core's pace is at most that of its longest chain.
    fn carried(&self, source: &Source, what: &Reached<'_>) -> Ticks {
        let Source { value, .. } = source;
        let since = what.instructions - value.instructions.min(what.instructions);
        // A value older than the window was waited for.
        if since > self.window {
            return value.ready;
        }
        let unreported = source.chain.map_or(0, |chain| {
            let (since, turn) = (since.saturating_sub(source.distance.into()), chain.instructions.max(1));
            part(f64::from(chain.cycles)).saturating_mul(since / u64::from(turn))
        });
        let behind = value.ready.saturating_sub(value.begun);
        let ready = (value.ready + unreported).min(what.begins.saturating_add(behind)).max(value.ready);
        ready + part(f64::from(source.cycles))
    }

    /// Returns where the present run of the loop around an access began, if the loop is given the values of its loads.
    fn run_since(&mut self, what: &Reached<'_>, origin: &Origin) -> Option<u64> {
        let executed = what.instructions.saturating_sub(origin.counted_ahead.into());
        origin.given.as_ref().map(|given| self.loops.run_since(given, executed, self.window))
    }

    fn load_of(&mut self, insn: u32) -> &mut Load {
        let at = insn as usize;
        if at >= self.loads.len() {
            self.loads.resize(at + 1, Load::default());
        }
        &mut self.loads[at]
    }
}

#[cfg(test)]
#[path = "values_tests.rs"]
mod tests;
