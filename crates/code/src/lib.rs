//! Machine code as it ran: where the addresses of its accesses come from, and what it costs while every access hits.
//!
//! A [`CodeMap`] takes translated blocks as the stream brings them and answers for single instructions. The answers
//! depend on the blocks added so far and on nothing else, so that a replay gets the answers of the recording.

use nearmiss_record::code::CodeBlock;
use nearmiss_record::units::InsnId;

/// Where the address of an instruction's access comes from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Origin {
    /// Loads whose values the address is computed from, directly or through other loads, by ascending id. Of code that
    /// came in several translations: all that may be meant. The instruction itself is among them where an earlier
    /// execution of its own gives the address of the next, as in a walk along a list. Empty: the address is computed.
    pub loads: Vec<InsnId>,
    /// Part of the address could not be followed: through a call of unknown code, or too far.
    pub unknown: bool,
    /// Of a load that is its own origin: instructions from one execution to the next, and cycles that the chain takes
    /// for them while it hits the first level.
    pub own_chain: Option<Chain>,
}

/// A chain of an instruction through itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chain {
    /// Instructions of one turn.
    pub instructions: u32,
    /// Cycles of one turn in which every load hits the first level.
    pub cycles: f32,
}

/// All code met so far.
#[derive(Clone, Debug, Default)]
pub struct CodeMap {}

impl CodeMap {
    /// Adds a block. A later block replaces what an earlier one said of the same instructions.
    pub fn add(&mut self, block: &CodeBlock<'_>) {
        let _ = block;
    }

    /// Where the address of this instruction's access comes from; `None`: its code is not known.
    pub fn origin(&mut self, insn: InsnId) -> Option<&Origin> {
        let _ = insn;
        None
    }

    /// Cycles an instruction, in 1/65536, of the code around this instruction while every access hits the first level;
    /// `None`: its code is not known.
    pub fn cycles_per_instruction(&mut self, insn: InsnId) -> Option<u32> {
        let _ = insn;
        None
    }
}
