//! Cost of a piece of a server's work: misses, and transactions on colored and on other lines.

use crate::pieces::{PieceCost, Pieces};
use nearmiss_machine::observer::Outcome;
use nearmiss_record::model::BusTally;

/// Page offsets of the lines that 32 colors of 32 bytes use: the paper's "colored lines" (section 4.2), in either
/// kernel, with any content.
pub const COLORED_OFFSETS: std::ops::Range<u64> = 0x20..0x420;

/// CPUs, caches and coherence of a described machine.
pub type Server = Pieces<Piece>;

/// Cost of a piece of work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// Instructions and stalls.
    pub cycles: u64,
    /// Line accesses that the first level did not have.
    pub l2_reads: u64,
    /// Reads that the second level did not have either.
    pub l2_misses: u64,
    /// Bus transactions on colored lines.
    pub colored: u64,
    /// Bus transactions on other lines.
    pub other: u64,
}

impl Piece {
    /// All its bus transactions.
    pub fn transactions(&self) -> u64 {
        self.colored + self.other
    }

    /// Adds another's.
    pub fn add(&mut self, other: Piece) {
        self.cycles += other.cycles;
        self.l2_reads += other.l2_reads;
        self.l2_misses += other.l2_misses;
        self.colored += other.colored;
        self.other += other.other;
    }
}

impl PieceCost for Piece {
    fn add_cycles(&mut self, cycles: u64) {
        self.cycles += cycles;
    }

    fn miss(&mut self, outcome: &Outcome) {
        self.l2_reads += u64::from(outcome.missed[0].is_some());
        self.l2_misses += u64::from(outcome.missed[1].is_some());
        let mut bus = BusTally::default();
        outcome.add_traffic(&mut bus);
        // A line that was written back for this one left the same set, so it lay at the same offset of its page.
        if COLORED_OFFSETS.contains(&(outcome.line_paddr & 4095)) {
            self.colored += bus.transactions();
        } else {
            self.other += bus.transactions();
        }
    }
}
