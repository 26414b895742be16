//! The machine model as a simulated server uses it: pieces of a CPU's work in, cycles and other events out.

use crate::PaperError;
use nearmiss_machine::model::{Model, ModelOptions};
use nearmiss_machine::observer::{Effective, Observer, Outcome};
use nearmiss_record::abi::ChunkHeader;
use nearmiss_record::machine::{Machine, Placement};
use nearmiss_record::policy::{Order, Policy};
use nearmiss_record::reference::{Control, FLAG_KERNEL, Kind, Record};
use nearmiss_record::run::Filter;
use nearmiss_record::trace::TraceHeader;
use nearmiss_record::units::InsnId;
use std::cell::Cell;
use std::rc::Rc;

const KERNEL_BASE: u64 = 0xffff_8000_0000_0000;

/// Figures kept of a piece of work.
pub trait PieceCost: Copy + Default + 'static {
    /// A reference missed the first level, or caused traffic.
    fn miss(&mut self, outcome: &Outcome);
    /// Time that passed: stalls, then instructions.
    fn add_cycles(&mut self, cycles: u64);
}

/// Records the model's events of the piece that is being fed.
#[derive(Clone)]
struct PieceRecorder<H>(Rc<Cell<H>>);

impl<H: PieceCost> Observer for PieceRecorder<H> {
    fn control(&mut self, _: u32, _: &Control<'_>) {}
    fn hit(&mut self, _: &Effective) {}
    fn instructions(&mut self, _: u32, _: u64) {}

    fn miss(&mut self, _: &Effective, outcome: &Outcome) {
        let mut piece = self.0.get();
        piece.add_cycles(outcome.stall_cycles.into());
        piece.miss(outcome);
        self.0.set(piece);
    }
}

/// CPUs, caches and coherence of a described machine. Physical addresses are the caller's own.
pub struct Pieces<H: PieceCost> {
    model: Model<PieceRecorder<H>>,
    recorder: PieceRecorder<H>,
    instructions: Vec<u64>,
    pending: Vec<Record>,
    seq: u64,
    cycles_per_instruction: f64,
}

impl<H: PieceCost> Pieces<H> {
    /// `cpus` of a machine, with cold caches.
    pub fn new(machine: &Machine, cpus: usize) -> Result<Self, PaperError> {
        Self::with_nodes(machine, cpus, Vec::new())
    }

    /// Creates pieces with the memory of each node, in the order of addresses.
    pub fn with_nodes(machine: &Machine, cpus: usize, node_bytes: Vec<u64>) -> Result<Self, PaperError> {
        let mut machine = machine.clone();
        machine.memory.placement = Placement::AsRecorded;
        let filter = Filter { line_log2: 5, fetches: true, clear_on_slice: true, ..Filter::default() };
        let stream = TraceHeader { cpus: cpus as u32, filter, node_bytes, ..TraceHeader::default() };
        let options = ModelOptions::of(&stream, Order::Recorded);
        let recorder = PieceRecorder(Rc::new(Cell::new(H::default())));
        let model = Model::new(&machine, &Policy::default(), &options, recorder.clone())?;
        Ok(Pieces {
            model,
            recorder,
            instructions: vec![0; cpus],
            pending: Vec::new(),
            seq: 0,
            cycles_per_instruction: machine.cycles_per_instruction,
        })
    }

    /// A reference of the next piece: `bytes` inside one line.
    pub fn touch(&mut self, kind: Kind, address: u64, bytes: u32) {
        let vaddr = KERNEL_BASE + address;
        self.pending.push(Record::reference(kind, vaddr, bytes, FLAG_KERNEL, InsnId(1), address >> 12, 0));
    }

    /// Runs what was touched, with so many instructions, on a CPU.
    pub fn run(&mut self, cpu: usize, instructions: u64) -> Result<H, PaperError> {
        self.instructions[cpu] += instructions;
        let header = ChunkHeader {
            seq: self.seq,
            slice: self.seq,
            vcpu: cpu as u32,
            records: self.pending.len() as u32,
            instructions: self.instructions[cpu],
            ..ChunkHeader::default()
        };
        self.seq += 1;
        self.recorder.0.set(H::default());
        self.model.chunk(&header, &self.pending)?;
        self.pending.clear();
        let mut piece = self.recorder.0.get();
        piece.add_cycles((instructions as f64 * self.cycles_per_instruction) as u64);
        Ok(piece)
    }
}
