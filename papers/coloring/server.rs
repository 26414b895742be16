//! The machine model as the simulated server uses it: pieces of a CPU's work in, cycles and misses out.

use crate::PaperError;
use nearmiss_machine::model::{Model, ModelOptions};
use nearmiss_machine::observer::{Effective, Observer, Outcome};
use nearmiss_record::abi::ChunkHeader;
use nearmiss_record::machine::{Machine, Placement};
use nearmiss_record::model::BusTally;
use nearmiss_record::policy::{Order, Policy};
use nearmiss_record::reference::{Control, FLAG_KERNEL, Kind, Record};
use nearmiss_record::run::Filter;
use nearmiss_record::trace::TraceHeader;
use nearmiss_record::units::InsnId;
use std::cell::Cell;
use std::rc::Rc;

/// Page offsets of the lines that 32 colors of 32 bytes use: the paper's "colored lines" (section 4.2), in either
/// kernel, whatever lies there.
pub const COLORED_OFFSETS: std::ops::Range<u64> = 0x20..0x420;

const KERNEL_BASE: u64 = 0xffff_8000_0000_0000;

/// What a piece of work met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// Instructions and stalls.
    pub cycles: u64,
    /// Line accesses that the first level did not have.
    pub l2_reads: u64,
    /// Of those, not in the second level either.
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

/// Hears what the model says about the piece that is being fed.
#[derive(Clone, Default)]
struct Ear(Rc<Cell<Piece>>);

impl Observer for Ear {
    fn control(&mut self, _: u32, _: &Control<'_>) {}
    fn hit(&mut self, _: &Effective) {}
    fn instructions(&mut self, _: u32, _: u64) {}

    fn miss(&mut self, _: &Effective, outcome: &Outcome) {
        let mut piece = self.0.get();
        piece.cycles += u64::from(outcome.stall_cycles);
        piece.l2_reads += u64::from(outcome.missed[0].is_some());
        piece.l2_misses += u64::from(outcome.missed[1].is_some());
        let mut bus = BusTally::default();
        outcome.add_traffic(&mut bus);
        // A line that was written back for this one left the same set, so it lay at the same offset of its page.
        if COLORED_OFFSETS.contains(&(outcome.line_paddr & 4095)) {
            piece.colored += bus.transactions();
        } else {
            piece.other += bus.transactions();
        }
        self.0.set(piece);
    }
}

/// CPUs, caches and coherence of a described machine. Physical addresses are the caller's own.
pub struct Server {
    model: Model<Ear>,
    heard: Ear,
    instructions: Vec<u64>,
    pending: Vec<Record>,
    seq: u64,
    cycles_per_instruction: f64,
}

impl Server {
    /// `cpus` of a machine, with cold caches.
    pub fn new(machine: &Machine, cpus: usize) -> Result<Self, PaperError> {
        let mut machine = machine.clone();
        machine.memory.placement = Placement::AsRecorded;
        let filter = Filter { line_log2: 5, fetches: true, clear_on_slice: true, ..Filter::default() };
        let stream = TraceHeader { cpus: cpus as u32, filter, ..TraceHeader::default() };
        let options = ModelOptions::of(&stream, Order::Recorded);
        let heard = Ear::default();
        let model = Model::new(&machine, &Policy::default(), &options, heard.clone())?;
        Ok(Server {
            model,
            heard,
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
    pub fn run(&mut self, cpu: usize, instructions: u64) -> Result<Piece, PaperError> {
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
        self.heard.0.set(Piece::default());
        self.model.chunk(&header, &self.pending)?;
        self.pending.clear();
        let mut piece = self.heard.0.get();
        piece.cycles += (instructions as f64 * self.cycles_per_instruction) as u64;
        Ok(piece)
    }
}
