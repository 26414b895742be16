//! Machine code as it ran: the origins of its accesses' addresses, and its cost while every access hits.
//!
//! A [`CodeMap`] takes translated blocks as the stream brings them and answers for single instructions. The answers
//! depend on the blocks added so far and on nothing else, so that a replay gets the answers of the recording.

mod answers;
mod effects;
mod graph;
mod needed;
mod place;
mod slice;
mod times;

use answers::{Answers, Shared};
use graph::Graph;
use nearmiss_record::code::CodeBlock;
use nearmiss_record::units::InsnId;
use std::sync::{Arc, OnceLock};

/// Origin of the address of an instruction's access.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Origin {
    /// Loads with values that form the address, directly or through other loads, by ascending id. If the code came in
    /// several translations, all possible loads. The instruction itself is included if an earlier execution of it gives
    /// the address of the next, as in a walk along a list. Empty: the address is computed.
    pub loads: Vec<InsnId>,
    /// Least number of instructions from each load to the access. Later executions of the load do not form the address.
    pub distances: Vec<u32>,
    /// Cycles from the value of each load to the access, while all loads between them hit the first level.
    pub cycles: Vec<f32>,
    /// Part of the address could not be followed: through a call of unknown code, or too far. A value that enters a
    /// loop from outside does not count: in most turns it has been there for long.
    pub unknown: bool,
    /// For a load that is its own origin: instructions from one execution to the next, and cycles that the chain takes
    /// for them while it hits the first level.
    pub own_chain: Option<Chain>,
    /// Addresses of the instructions that compute the values on the way, ascending; of many, the nearest.
    pub through: Vec<u64>,
    /// Instructions from the access on, itself included, that the tap counts with the ones before: the rest of its line
    /// of code, as far as the block goes.
    pub counted_ahead: u32,
    /// The loop around the access, if some of the loads run in it, and all their values come from before it.
    pub given: Option<Given>,
}

/// A loop that computes an address from values loaded before the loop began: no load of the turns before forms it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// Address of the loop's first instruction.
    pub head: u64,
    /// Instructions of a turn.
    pub instructions: u32,
    /// Instructions from the first one to the access.
    pub at: u32,
    /// For each of [`Origin::loads`], whether it runs in the loop.
    pub inside: Vec<bool>,
}

/// Place of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Address of the branch.
    pub at: u64,
    /// Where it leads; `None`: to a computed address.
    pub target: Option<u64>,
}

/// A chain of an instruction through itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chain {
    /// Instructions of one turn.
    pub instructions: u32,
    /// Cycles of one turn in which every load hits the first level.
    pub cycles: f32,
}

/// Operations that begin with a loaded value and wait for one another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needed {
    /// Cycles of the longest chain.
    pub cycles: u32,
    /// Instructions from the load to the chain's end.
    pub instructions: u32,
}

/// Pace of code while every access hits the first level, in cycles an instruction, in 1/65536.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// Pace of the loop around an instruction, or else of its straight code.
    pub cycles: u32,
    /// Instructions of a turn of that loop, or of that code.
    pub instructions: u32,
    /// Pace of the loops without an access that lie in the loop or before the code, or in a function called there; none:
    /// there are none.
    pub inner: Option<u32>,
}

/// Times of a core that chains of instructions depend on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoreTimes {
    /// Instructions begun in a cycle, at most.
    pub width: u32,
    /// Cycles of a load that hits the first level.
    pub load_cycles: f32,
    /// Cycles from a store to a load of the stored value.
    pub forwarding_cycles: f32,
}

impl Default for CoreTimes {
    /// Returns the times of most cores of the last ten years.
    fn default() -> Self {
        CoreTimes { width: 4, load_cycles: 5.0, forwarding_cycles: 5.0 }
    }
}

/// Answers shared by maps of the same blocks: each answer is found once.
#[derive(Debug, Default)]
pub struct KnownCode {
    /// Core times of the first map.
    times: OnceLock<CoreTimes>,
    origins: Arc<Shared<Origin>>,
    decisions: Arc<Shared<Origin>>,
    paces: Arc<Shared<Pace>>,
    needed: Arc<Shared<Needed>>,
}

/// All code seen so far.
#[derive(Clone, Debug, Default)]
pub struct CodeMap {
    times: CoreTimes,
    graph: Graph,
    blocks: u64,
    origins: Answers<Origin>,
    decisions: Answers<Origin>,
    paces: Answers<Pace>,
    needed: Answers<Needed>,
}

impl CodeMap {
    /// An empty map, for a core.
    pub fn new(times: CoreTimes) -> Self {
        CodeMap { times, ..CodeMap::default() }
    }

    /// Returns an empty map that answers each instruction from its `first` query on: the first answer is expensive, and
    /// most instructions of a program are queried a few times only.
    pub fn patient(times: CoreTimes, first: u32) -> Self {
        let [origins, decisions] = [(); 2].map(|()| Answers::from_question(first));
        let (paces, needed) = (Answers::from_question(first), Answers::from_question(first));
        CodeMap { times, origins, decisions, paces, needed, ..CodeMap::default() }
    }

    /// Shares answers with other maps that receive the same blocks in the same order, for a core of the same times.
    /// Answers are the same with and without sharing.
    pub fn sharing(mut self, known: &KnownCode) -> Self {
        if *known.times.get_or_init(|| self.times) == self.times {
            self.origins.shared = Some(Arc::clone(&known.origins));
            self.decisions.shared = Some(Arc::clone(&known.decisions));
            self.paces.shared = Some(Arc::clone(&known.paces));
            self.needed.shared = Some(Arc::clone(&known.needed));
        }
        self
    }

    /// Returns the cycles of a [`CodeMap::pace`] of all code that came, computed afresh.
    pub fn settled_cycles_per_instruction(&self, insn: InsnId) -> Option<u32> {
        Some(times::cycles_per_instruction(&self.graph, &self.times, self.graph.named(insn)?))
    }

    /// Whether the address of this instruction's access is made of the value that an earlier access of the same walk
    /// loaded, as along a list, of all code that came; computed afresh.
    pub fn is_chained(&self, insn: InsnId) -> bool {
        let origin = |insn| Some(slice::origin(&self.graph, &self.times, self.graph.named(insn)?));
        let goes_on = |load: &InsnId| origin(*load).is_some_and(|origin| origin.own_chain.is_some());
        origin(insn).is_some_and(|found| found.own_chain.is_some() || found.loads.iter().any(goes_on))
    }

    /// Adds a block. A later block replaces an earlier one's entries for the same instructions.
    pub fn add(&mut self, block: &CodeBlock<'_>) {
        self.graph.add(block);
        self.blocks += 1;
    }

    /// Returns the origin of the address of this instruction's access; `None`: its code is unknown.
    ///
    /// While code arrives, an answer is recomputed at the 1st, 4th, 16th, 64th query and so on.
    pub fn origin(&mut self, insn: InsnId) -> Option<&Origin> {
        let (graph, times) = (&self.graph, &self.times);
        self.origins.get(insn, self.blocks, || Some(slice::origin(graph, times, graph.named(insn)?)))
    }

    /// Returns the origin of what decides the way of a branch: a condition, or the target of a computed one; `None`: its
    /// code is unknown. Recomputed like [`CodeMap::origin`].
    pub fn decision(&mut self, branch: InsnId) -> Option<&Origin> {
        let (graph, times) = (&self.graph, &self.times);
        self.decisions.get(branch, self.blocks, || Some(slice::decision(graph, times, graph.named(branch)?)))
    }

    /// Returns the longest chain of operations that begins with the value which this instruction loads, within some hundred
    /// instructions and until it loads again; `None`: its code is unknown. Recomputed like [`CodeMap::origin`].
    pub fn needed(&mut self, insn: InsnId) -> Option<Needed> {
        let (graph, times) = (&self.graph, &self.times);
        self.needed.get(insn, self.blocks, || Some(needed::chain(graph, times, graph.named(insn)?))).copied()
    }

    /// Returns the place of a branch; `None`: its code is unknown.
    pub fn branch(&self, branch: InsnId) -> Option<Branch> {
        let instruction = self.graph.get(self.graph.named(branch)?).instruction;
        Some(Branch { at: instruction.ip(), target: graph::direct_target(&instruction) })
    }

    /// Returns the address of an instruction; `None`: its code is unknown.
    pub fn address(&self, insn: InsnId) -> Option<u64> {
        Some(self.graph.get(self.graph.named(insn)?).instruction.ip())
    }

    /// Returns the pace of the code around this instruction; `None`: its code is not known. Recomputed like
    /// [`CodeMap::origin`].
    pub fn pace(&mut self, insn: InsnId) -> Option<Pace> {
        let (graph, times) = (&self.graph, &self.times);
        self.paces.get(insn, self.blocks, || Some(times::pace(graph, times, graph.named(insn)?))).copied()
    }
}
