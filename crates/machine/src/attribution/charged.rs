//! What the tables are made from: references and instructions charged to instructions, and cycles of rows.

use super::ledger::References;
use nearmiss_record::model::Tally;

/// Counts by instruction once the dropped references are charged.
pub(super) struct Charged {
    /// By instruction id: of the command, references kept and dropped.
    pub references: Vec<References>,
    /// By instruction id: of the command.
    pub instructions: Vec<u64>,
    /// Of the command: instructions that no instruction of the table accounts for.
    pub instructions_left: u64,
    /// References and instructions of idle and of ticks, by `Mode`.
    pub apart: [(References, u64); 3],
    /// Of the command's references, those that the filter dropped, by user and kernel.
    pub dropped: [References; 2],
    /// Of the command's dropped stores, those of atomics, by user and kernel: the tasks report them as stores.
    pub dropped_atomics: [u64; 2],
    /// Of the command, by user and kernel.
    pub instructions_by_mode: [u64; 2],
}

/// Cycles of rows, so that they sum to the total's whatever the rounding.
pub(super) struct Cycles(pub f64);

impl Cycles {
    /// Sets `cycles` of consecutive rows of one table.
    pub fn set<'a>(&self, rows: impl IntoIterator<Item = &'a mut Tally>) {
        let (mut instructions, mut before) = (0u64, 0u64);
        for row in rows {
            instructions += row.instructions;
            let now = (instructions as f64 * self.0) as u64;
            row.cycles = now.saturating_sub(before) + row.stall_cycles;
            before = now;
        }
    }
}
