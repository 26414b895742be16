//! Code that a stream sent, and whether it came ahead of the records that name it.

use nearmiss_record::code::CodeBlock;
use nearmiss_record::reference::Record;
use nearmiss_record::units::InsnId;
use std::collections::HashSet;

/// A block as it was sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    pub vaddr: u64,
    pub paddr: u64,
    pub code: Vec<u8>,
    pub named: Vec<(u16, InsnId)>,
}

/// The code of a stream so far.
#[derive(Debug, Default)]
pub struct SentCode {
    pub blocks: Vec<Block>,
    named: HashSet<InsnId>,
    /// References without their instruction's code ahead of them.
    pub unexplained: usize,
}

impl SentCode {
    pub fn add(&mut self, block: &CodeBlock<'_>) {
        let named: Vec<_> = block.named().collect();
        self.named.extend(named.iter().map(|(_, insn)| insn));
        self.blocks.push(Block { vaddr: block.vaddr, paddr: block.paddr, code: block.code.to_vec(), named });
    }

    pub fn reference(&mut self, record: Record) {
        self.unexplained += usize::from(!self.named.contains(&record.insn()));
    }
}
