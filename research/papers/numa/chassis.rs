//! The paper's machine, as one chassis of four CPUs or as two of two, and the cost of a piece of work there.

use super::memory::NODE_BYTES;
use crate::pieces::{PieceCost, Pieces};
use crate::{PaperError, machine};
use nearmiss_machine::observer::Outcome;
use nearmiss_record::machine::Machine;
use nearmiss_record::model::BusTally;
use nearmiss_record::reference::Kind;

/// The paper's machine.
pub const MACHINE: &str = "pentium3-xeon-numa-2x2";
/// CPUs of the machine.
pub const CPUS: usize = 4;

/// Cost of a piece of work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// Instructions and stalls.
    pub cycles: u64,
    /// Transactions.
    pub bus: BusTally,
}

impl PieceCost for Piece {
    fn add_cycles(&mut self, cycles: u64) {
        self.cycles += cycles;
    }

    fn miss(&mut self, outcome: &Outcome) {
        outcome.add_traffic(&mut self.bus);
    }
}

/// CPUs, caches and nodes.
pub struct Chassis {
    pieces: Pieces<Piece>,
    nodes: usize,
    /// The machine as modelled.
    pub machine: Machine,
}

impl Chassis {
    /// Four CPUs on one node, or on two.
    pub fn new(nodes: usize) -> Result<Self, PaperError> {
        let mut machine = machine(MACHINE)?;
        machine.memory.nodes = nodes as u32;
        let node_bytes = vec![2 * NODE_BYTES / nodes as u64; nodes];
        Ok(Chassis { pieces: Pieces::with_nodes(&machine, CPUS, node_bytes)?, nodes, machine })
    }

    /// Nodes.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// CPUs.
    pub fn cpus(&self) -> usize {
        CPUS
    }

    /// The node of a CPU.
    pub fn node(&self, cpu: usize) -> usize {
        cpu * self.nodes / CPUS
    }

    /// A reference of the next piece.
    pub fn touch(&mut self, kind: Kind, address: u64) {
        self.pieces.touch(kind, address, 4);
    }

    /// Runs what was touched.
    pub fn run(&mut self, cpu: usize, instructions: u64) -> Result<Piece, PaperError> {
        self.pieces.run(cpu, instructions)
    }
}
