//! Streams on the machine model: each function's misses, and what CPUs and bus did.

use super::function::{Caller, Function};
use super::path::{Stream, Work};
use super::slice::{COPY_INSTRUCTIONS, Slice};
use crate::PaperError;
use nearmiss_machine::model::{Model, ModelOptions, ModelTotals};
use nearmiss_machine::observer::{Effective, Observer, Outcome};
use nearmiss_record::abi::ChunkHeader;
use nearmiss_record::machine::Machine;
use nearmiss_record::model::BusTally;
use nearmiss_record::policy::{CallSite, Order, Policy, StorePolicy};
use nearmiss_record::reference::Control;
use nearmiss_record::run::Filter;
use nearmiss_record::trace::TraceHeader;
use std::cell::RefCell;
use std::rc::Rc;

/// Records of each stream before counting begins: by then the last level is full.
const WARM: u64 = 1536;
/// Records that are counted, of all streams.
const COUNTED: u64 = 1024;

/// Which copies go around the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copies {
    /// No copies: the kernel as it was.
    Cached,
    /// All copies: the first patch.
    EveryBypasses,
    /// Copies into the page cache alone: the final patch.
    ChosenBypass,
}

impl Copies {
    fn policy(self) -> Policy {
        let site = |caller: Caller| CallSite { context: caller as u32, insn: Function::Copy as u32 };
        let sites = match self {
            Copies::Cached => return Policy::default(),
            Copies::EveryBypasses => vec![site(Caller::FileWrite), site(Caller::PipeWrite)],
            Copies::ChosenBypass => vec![site(Caller::FileWrite)],
        };
        Policy { store: StorePolicy::NonTemporal { sites }, ..Policy::default() }
    }
}

/// The simulated load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// CPUs, a stream each.
    pub cpus: usize,
    /// Each record comes out of a pipe on the same CPU.
    pub piped: bool,
    /// Which copies bypass.
    pub copies: Copies,
    /// The work of a stream.
    pub work: Work,
    /// Record evicting and missing function in the model.
    pub blame: bool,
}

/// References, misses and waits of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FunctionCounts {
    /// References that the first level did not have.
    pub references: u64,
    /// Misses of the last level among the references.
    pub misses: u64,
    /// Cycles that the function waited.
    pub stall_cycles: u64,
}

/// Counts of a simulation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Records of all streams.
    pub records: u64,
    /// Counts by [`Function`].
    pub by_function: [FunctionCounts; Function::ALL.len()],
    /// Instructions of all CPUs.
    pub instructions: u64,
    /// Cycles of all CPUs, waits for the bus included.
    pub cycles: u64,
    /// Transactions.
    pub bus: BusTally,
    /// Misses of the last level by the function to blame for them: the copy, and others; whole run.
    pub blamed: [u64; 2],
}

impl Counts {
    /// Returns the counts of a function.
    pub fn of(&self, function: Function) -> FunctionCounts {
        self.by_function[function as usize]
    }

    /// Instructions of one copy a record.
    pub fn copy_instructions(&self) -> u64 {
        self.records * COPY_INSTRUCTIONS
    }

    /// Misses of the last level.
    pub fn misses(&self) -> u64 {
        self.by_function.iter().map(|function| function.misses).sum()
    }

    /// References that the first level did not have.
    pub fn references(&self) -> u64 {
        self.by_function.iter().map(|function| function.references).sum()
    }

    /// A count for each record.
    pub fn each(&self, count: u64) -> f64 {
        count as f64 / self.records as f64
    }
}

/// Records the model's events.
#[derive(Clone)]
struct CountsRecorder {
    counts: Rc<RefCell<Counts>>,
    last_level: usize,
}

impl Observer for CountsRecorder {
    fn control(&mut self, _: u32, _: &Control<'_>) {}
    fn hit(&mut self, _: &Effective) {}

    fn instructions(&mut self, _: u32, instructions: u64) {
        self.counts.borrow_mut().instructions += instructions;
    }

    fn miss(&mut self, reference: &Effective, outcome: &Outcome) {
        let mut counts = self.counts.borrow_mut();
        outcome.add_traffic(&mut counts.bus);
        if let Some(row) = counts.by_function.get_mut(reference.record.insn().0 as usize) {
            row.references += u64::from(outcome.missed[0].is_some());
            row.misses += u64::from(outcome.missed[self.last_level].is_some());
            row.stall_cycles += u64::from(outcome.stall_cycles);
        }
    }

    fn drained(&mut self, _: &Effective, full: u8, partial: u8, _: u8) {
        let mut counts = self.counts.borrow_mut();
        counts.bus.nt_full += u64::from(full);
        counts.bus.nt_partial += u64::from(partial);
    }
}

struct Feed {
    model: Model<CountsRecorder>,
    streams: Vec<Stream>,
    instructions: Vec<u64>,
    seq: u64,
}

impl Feed {
    /// One record of every stream: a round. The model takes its slices as simultaneous.
    fn round(&mut self, step: fn(&mut Stream, &mut Slice)) -> Result<(), PaperError> {
        for (cpu, stream) in self.streams.iter_mut().enumerate() {
            let mut slice = Slice::default();
            step(stream, &mut slice);
            self.instructions[cpu] += slice.instructions;
            let header = ChunkHeader {
                seq: self.seq,
                slice: self.seq,
                vcpu: cpu as u32,
                records: slice.records.len() as u32,
                instructions: self.instructions[cpu],
                ..ChunkHeader::default()
            };
            self.seq += 1;
            self.model.chunk(&header, &slice.records)?;
        }
        Ok(())
    }
}

impl Load {
    /// Simulates it on a machine with enough CPUs.
    pub fn run(&self, machine: &Machine) -> Result<Counts, PaperError> {
        let filter = Filter {
            line_log2: 6,
            clear_on_slice: true,
            fetches: true,
            contexts: true,
            ordered_stores: true,
            ..Filter::default()
        };
        let stream = TraceHeader { cpus: self.cpus as u32, filter, ..TraceHeader::default() };
        let options =
            ModelOptions { reasons: self.blame, even_slices: true, ..ModelOptions::of(&stream, Order::Modelled) };
        let recorder = CountsRecorder { counts: Rc::default(), last_level: machine.levels() - 1 };
        let model = Model::new(machine, &self.copies.policy(), &options, recorder.clone())?;
        let streams = (0..self.cpus).map(|number| Stream::new(number, self.work, self.piped)).collect();
        let mut feed = Feed { model, streams, instructions: vec![0; self.cpus], seq: 0 };
        (0..WARM).try_for_each(|_| feed.round(Stream::step_fast))?;
        feed.round(Stream::step)?;
        // The model is one round behind, here and at the end.
        recorder.counts.replace(Counts::default());
        let rounds = COUNTED / self.cpus as u64;
        (0..rounds).try_for_each(|_| feed.round(Stream::step))?;
        let mut counts = recorder.counts.take();
        let (totals, _) = feed.model.finish()?;
        counts.records = rounds * self.cpus as u64;
        let stalls: u64 = counts.by_function.iter().map(|function| function.stall_cycles).sum();
        counts.cycles = (counts.instructions as f64 * machine.cycles_per_instruction) as u64 + stalls;
        counts.blamed = blamed(&totals);
        Ok(counts)
    }
}

fn blamed(totals: &ModelTotals) -> [u64; 2] {
    let mut blamed = [0; 2];
    for pair in totals.pollution.iter().filter(|pair| pair.cache == "L3") {
        blamed[usize::from(pair.polluter.insn != Function::Copy as u32)] += pair.misses;
    }
    blamed
}
