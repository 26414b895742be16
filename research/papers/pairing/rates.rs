//! How fast a thread is, and how often it misses: alone on a core, beside one of its own group, beside one of the other
//! group. From the machine model, by the references of `product.rs`.

use super::product::{Shape, ThreadBlock, Writer};
use crate::PaperError;
use crate::parallel::simulate_all;
use crate::random::Random;
use nearmiss_machine::model::{Model, ModelOptions};
use nearmiss_machine::observer::{Effective, Observer, Outcome};
use nearmiss_record::abi::ChunkHeader;
use nearmiss_record::machine::{Machine, Placement};
use nearmiss_record::policy::{Order, Policy};
use nearmiss_record::reference::{Control, Record};
use nearmiss_record::run::Filter;
use nearmiss_record::trace::TraceHeader;
use std::cell::RefCell;
use std::rc::Rc;

/// Rows of each thread before counting begins: from then on the block is as much in the cache as it will be.
const COLD_ROWS: u64 = 2;

/// Kind of the task on the other hardware thread of the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// No task.
    Nobody,
    /// A thread of the same group.
    Same,
    /// One of the other group.
    Other,
}

/// Cost of a block's row to a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rate {
    /// Cycles of the row.
    pub cycles: f64,
    /// Misses of the second level.
    pub misses: f64,
}

/// Rates of one load on one machine; of each kind as many as there were placements of pages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rates {
    /// Rates by [`Beside`].
    pub rates: [Vec<Rate>; 3],
    /// Additional cost of a block's first rows: the block comes into the cache.
    pub cold: Rate,
    /// Instructions of a row.
    pub instructions: f64,
}

impl Rates {
    /// The rate that a number draws.
    pub fn of(&self, beside: Beside, draw: u64) -> Rate {
        let rates = &self.rates[beside as usize];
        rates.get(draw as usize % rates.len().max(1)).copied().unwrap_or_default()
    }

    /// Mean over all placements.
    pub fn mean(&self, beside: Beside) -> Rate {
        mean(&self.rates[beside as usize])
    }
}

fn mean(rates: &[Rate]) -> Rate {
    let of = |value: fn(&Rate) -> f64| rates.iter().map(value).sum::<f64>() / rates.len().max(1) as f64;
    Rate { cycles: of(|rate| rate.cycles), misses: of(|rate| rate.misses) }
}

/// The modelled load.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// The product.
    pub shape: Shape,
    /// Instructions of a multiplication and addition.
    pub instructions: u64,
    /// Cycles of one, while it hits and both hardware threads of the core are busy.
    pub cycles: f64,
    /// Rows that are counted.
    pub rows: u64,
    /// Seeds of placements of pages.
    pub placements: std::ops::Range<u64>,
}

/// Misses of the outermost level and waits, by CPU.
#[derive(Clone)]
struct RateRecorder {
    rates: Rc<RefCell<Vec<Rate>>>,
    last_level: usize,
}

impl Observer for RateRecorder {
    fn control(&mut self, _: u32, _: &Control<'_>) {}
    fn hit(&mut self, _: &Effective) {}
    fn instructions(&mut self, _: u32, _: u64) {}

    fn miss(&mut self, reference: &Effective, outcome: &Outcome) {
        let mut rates = self.rates.borrow_mut();
        if let Some(rate) = rates.get_mut(reference.cpu as usize) {
            rate.cycles += f64::from(outcome.stall_cycles);
            rate.misses += f64::from(u8::from(outcome.missed[self.last_level].is_some()));
        }
    }
}

/// CPUs of a machine that take references, a round of slices at a time.
pub struct Feed {
    model: Model<RateRecorder>,
    recorder: RateRecorder,
    instructions: Vec<u64>,
    seq: u64,
}

impl Feed {
    /// Creates a model of so many CPUs with cold caches; pages lie by a seed.
    pub fn new(machine: &Machine, cpus: usize, seed: u64) -> Result<Self, PaperError> {
        let mut machine = machine.clone();
        machine.memory.placement = Placement::Random;
        machine.memory.placement_seed = seed;
        let filter = Filter { line_log2: 6, fetches: true, clear_on_slice: true, ..Filter::default() };
        let stream = TraceHeader { cpus: cpus as u32, filter, ..TraceHeader::default() };
        let options =
            ModelOptions { even_slices: true, ..ModelOptions::of(&stream, Order::Modelled).without_reasons() };
        let recorder = RateRecorder {
            rates: Rc::new(RefCell::new(vec![Rate::default(); cpus])),
            last_level: machine.levels() - 1,
        };
        let model = Model::new(&machine, &Policy::default(), &options, recorder.clone())?;
        Ok(Feed { model, recorder, instructions: vec![0; cpus], seq: 0 })
    }

    /// Feeds simultaneous slices of these CPUs: their references and instructions.
    pub fn round(&mut self, slices: &[(usize, &[Record], u64)]) -> Result<(), PaperError> {
        for &(cpu, records, instructions) in slices {
            self.instructions[cpu] += instructions;
            let header = ChunkHeader {
                seq: self.seq,
                slice: self.seq,
                vcpu: cpu as u32,
                records: records.len() as u32,
                instructions: self.instructions[cpu],
                ..ChunkHeader::default()
            };
            self.seq += 1;
            self.model.chunk(&header, records)?;
        }
        Ok(())
    }

    /// Takes the rates reported since the last call, by CPU: of all rounds but the last one, which the model holds
    /// back.
    pub fn take_rates(&self) -> Vec<Rate> {
        let mut rates = self.recorder.rates.borrow_mut();
        let none = vec![Rate::default(); rates.len()];
        std::mem::replace(&mut *rates, none)
    }

    /// Finishes the model and takes the rates, the last round's included.
    pub fn finish(self) -> Result<Vec<Rate>, PaperError> {
        let recorder = self.recorder.clone();
        self.model.finish()?;
        Ok(recorder.rates.take())
    }
}

/// Steady rates and what the cold rows took more, of every thread.
struct Run {
    steady: Vec<Rate>,
    cold: Vec<Rate>,
}

/// The threads of a run: CPU, group and number of the thread in its group.
fn threads(machine: &Machine, beside: Beside) -> Vec<(usize, u64, u64)> {
    let packages = machine.topology.packages as usize;
    let each = machine.topology.threads_per_core as usize;
    let of_package = |package: usize| {
        let group = package as u64 % 2;
        let first = (package * each, group, package as u64 / 2 * 2);
        match beside {
            Beside::Nobody => vec![first],
            Beside::Same => vec![first, (package * each + 1, group, first.2 + 1)],
            Beside::Other => vec![first, (package * each + 1, 1 - group, first.2 + 1)],
        }
    };
    (0..packages).flat_map(of_package).collect()
}

impl Load {
    /// Runs the model for each kind and placement.
    pub fn rates(&self, machine: &Machine, done: &(dyn Fn() + Sync)) -> Result<Rates, PaperError> {
        let kinds = [Beside::Nobody, Beside::Same, Beside::Other];
        let inputs: Vec<_> = self.placements.clone().flat_map(|seed| kinds.map(|beside| (beside, seed))).collect();
        let runs = simulate_all(&inputs, done, |&(beside, seed)| self.run(machine, beside, seed))?;
        let of = |wanted: Beside| inputs.iter().zip(&runs).filter(move |((beside, _), _)| *beside == wanted);
        let rates = kinds.map(|wanted| of(wanted).flat_map(|(_, run)| run.steady.iter().copied()).collect());
        let cold: Vec<Rate> = of(Beside::Nobody).flat_map(|(_, run)| run.cold.iter().copied()).collect();
        let instructions = (self.shape.multiplications() * self.instructions) as f64;
        Ok(Rates { rates, cold: mean(&cold), instructions })
    }

    /// Returns how many runs [`Load::rates`] makes.
    pub fn parts(&self) -> usize {
        (self.placements.end - self.placements.start) as usize * 3
    }

    fn run(&self, machine: &Machine, beside: Beside, seed: u64) -> Result<Run, PaperError> {
        let mut machine = machine.clone();
        machine.cycles_per_instruction = self.cycles / self.instructions as f64;
        let threads = threads(&machine, beside);
        let mut random = Random::new(seed + 1);
        let parts: Vec<ThreadBlock> =
            threads.iter().map(|&(_, group, number)| self.part(group, number, &mut random)).collect();
        let cpus = machine.topology.cpus() as usize;
        let mut feed = Feed::new(&machine, cpus, seed)?;
        let hot = self.shape.multiplications() as f64 * self.cycles;
        let per_row = |rates: &[Rate], rows: u64| -> Vec<Rate> {
            let of = |&(cpu, ..): &(usize, u64, u64)| Rate {
                cycles: hot + rates[cpu].cycles / rows as f64,
                misses: rates[cpu].misses / rows as f64,
            };
            threads.iter().map(of).collect()
        };
        // The model is one round behind.
        (0..=COLD_ROWS).try_for_each(|row| self.round(&mut feed, &threads, &parts, row))?;
        let first = per_row(&feed.take_rates(), COLD_ROWS);
        (1..self.rows).try_for_each(|row| self.round(&mut feed, &threads, &parts, COLD_ROWS + row))?;
        let steady = per_row(&feed.finish()?, self.rows);
        let more = |(first, steady): (&Rate, &Rate)| Rate {
            cycles: ((first.cycles - steady.cycles) * COLD_ROWS as f64).max(0.0),
            misses: ((first.misses - steady.misses) * COLD_ROWS as f64).max(0.0),
        };
        let cold = first.iter().zip(&steady).map(more).collect();
        Ok(Run { steady, cold })
    }

    fn part(&self, group: u64, number: u64, random: &mut Random) -> ThreadBlock {
        let strip = self.shape.block / 4;
        ThreadBlock { inner: 0, column: group, first_row: number * strip, phase: random.below(self.shape.block) }
    }

    fn round(
        &self,
        feed: &mut Feed,
        threads: &[(usize, u64, u64)],
        parts: &[ThreadBlock],
        row: u64,
    ) -> Result<(), PaperError> {
        let written: Vec<(usize, Writer, u64)> = threads
            .iter()
            .zip(parts)
            .map(|(&(cpu, ..), part)| {
                let mut writer = Writer::new(self.shape, self.instructions);
                let instructions = writer.row(part, row);
                (cpu, writer, instructions)
            })
            .collect();
        let slices: Vec<_> = written.iter().map(|(cpu, writer, n)| (*cpu, writer.records.as_slice(), *n)).collect();
        feed.round(&slices)
    }
}
