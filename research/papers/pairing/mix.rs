//! Tasks that share nothing, of four kinds: what a pair does to each other then, on three machines, and whether any
//! task loses.

use super::kernel::{THREADS, TICKS_PER_SECOND};
use super::rates::{Feed, Rate};
use super::work::{Did, Work, mix};
use crate::PaperError;
use crate::parallel::simulate_all;
use nearmiss_machine::describe::cut;
use nearmiss_record::machine::Machine;
use nearmiss_record::reference::{Kind, Record};
use nearmiss_record::units::InsnId;

/// Machines, cut down to two cores of two hardware threads.
pub const MACHINES: [&str; 3] = ["xeon-ht-2x2", "zen3-milan", "xeon-icelake-sp"];
/// Tasks at once.
pub const TASKS: [usize; 4] = [4, 8, 12, 16];
/// Placements of pages, and so rates of each pair.
const PLACEMENTS: u64 = 2;
/// Cycles of a round: all slices take about as long.
const ROUND_CYCLES: f64 = 150_000.0;
/// Rounds before counting begins, and in all.
const WARM_ROUNDS: usize = 24;
const ROUNDS: usize = 40;
/// Time that a task takes alone.
const ALONE_SECONDS: f64 = 40.0;

/// Work of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Name of the work.
    pub name: &'static str,
    /// Memory of the task, in eighths of the second level.
    pub eighths: u64,
    /// Line after line, or anywhere.
    pub in_order: bool,
    /// Instructions a reference.
    pub instructions: u64,
    /// Stores in four references.
    pub stores_of_4: u64,
}

/// The kinds: what stays in the second level, what needs most of it, what exceeds it, and what passes through.
pub const KINDS: [Stream; 4] = [
    Stream { name: "computes in little memory", eighths: 1, in_order: false, instructions: 24, stores_of_4: 1 },
    Stream { name: "anywhere in half of L2", eighths: 4, in_order: false, instructions: 24, stores_of_4: 1 },
    Stream { name: "anywhere in twice L2", eighths: 16, in_order: false, instructions: 48, stores_of_4: 1 },
    Stream { name: "through four times L2", eighths: 32, in_order: true, instructions: 48, stores_of_4: 1 },
];

const LINE_BYTES: u64 = 64;

/// References of one task.
struct Source {
    stream: Stream,
    lines: u64,
    base: u64,
    at: u64,
    drawn: u64,
    /// Cycles a reference, as far as is known.
    cycles: f64,
    /// References of the round before, with cycles still to be reported, and of this one.
    fed: [u64; 2],
}

impl Source {
    fn new(kind: usize, thread: usize, second_level_bytes: u64, drawn: u64) -> Self {
        let stream = KINDS[kind];
        let lines = (second_level_bytes * stream.eighths / 8 / LINE_BYTES).max(1);
        let (base, cycles) = ((thread as u64 + 1) << 32, stream.instructions as f64 * 4.0);
        Source { stream, lines, base, at: 0, drawn, cycles, fed: [0; 2] }
    }

    /// The references of a round.
    fn slice(&mut self) -> Vec<Record> {
        let references = (ROUND_CYCLES / self.cycles) as u64 + 1;
        self.fed = [self.fed[1], references];
        (0..references).map(|_| self.next()).collect()
    }

    /// Returns what it did in the round before, from the reported rate.
    fn finish_round(&mut self, machine: &Machine, rate: &Rate) -> Did {
        let [fed, _] = self.fed;
        if fed == 0 {
            return Did::default();
        }
        let instructions = (fed * self.stream.instructions) as f64;
        let cycles = instructions * machine.cycles_per_instruction + rate.cycles;
        self.cycles = cycles / fed as f64;
        Did { cycles, instructions, misses: rate.misses }
    }

    fn next(&mut self) -> Record {
        self.drawn = mix(&[self.drawn, 1]);
        self.at = if self.stream.in_order { (self.at + 1) % self.lines } else { self.drawn % self.lines };
        let kind = if (self.drawn >> 40) % 4 < self.stream.stores_of_4 { Kind::Store } else { Kind::Load };
        let address = self.base + self.at * LINE_BYTES;
        Record::reference(kind, address, 8, 0, InsnId(1), address >> 12, self.stream.instructions as u8)
    }
}

/// Cycles and misses an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Pace {
    cycles: f64,
    misses: f64,
}

/// Paces of all kinds on a machine: alone, and beside each kind.
#[derive(Clone, Debug)]
pub struct Paces {
    /// Paces by kind, by the kind beside it (the last: none), by placement.
    paces: Vec<Vec<Vec<Pace>>>,
}

/// How many runs [`paces`] makes.
pub const PARTS: usize = (KINDS.len() * (KINDS.len() + 1) / 2 + KINDS.len()) * PLACEMENTS as usize;

/// A machine of this study.
pub fn machine(name: &str) -> Result<Machine, PaperError> {
    Ok(cut(&crate::machine(name)?, 4))
}

/// Runs the model on all pairs, on placements of pages from this seed on.
pub fn paces(machine: &Machine, first_seed: u64, done: &(dyn Fn() + Sync)) -> Result<Paces, PaperError> {
    let kinds = KINDS.len();
    let pairs = (0..kinds).flat_map(|a| (a..=kinds).map(move |b| (a, b)));
    let inputs: Vec<_> = pairs.flat_map(|(a, b)| (0..PLACEMENTS).map(move |seed| (a, b, first_seed + seed))).collect();
    let outputs = simulate_all(&inputs, done, |&(a, b, seed)| pair(machine, a, b, seed))?;
    let mut paces = vec![vec![Vec::new(); kinds + 1]; kinds];
    for (&(a, b, _), both) in inputs.iter().zip(&outputs) {
        paces[a][b].push(both[0]);
        if b < kinds && b != a {
            paces[b][a].push(both[1]);
        }
    }
    Ok(Paces { paces })
}

/// One kind beside another on one core, or alone.
fn pair(machine: &Machine, a: usize, b: usize, seed: u64) -> Result<[Pace; THREADS], PaperError> {
    let second_level = machine.data_cache(2).map_or(0, |cache| cache.size.0);
    let kinds: Vec<usize> = [a, b].into_iter().filter(|kind| *kind < KINDS.len()).collect();
    let source =
        |(thread, kind): (usize, &usize)| Source::new(*kind, thread, second_level, mix(&[seed, thread as u64]));
    let mut sources: Vec<Source> = kinds.iter().enumerate().map(source).collect();
    let mut feed = Feed::new(machine, machine.topology.cpus() as usize, seed + 1)?;
    let mut sums = [Did::default(); THREADS];
    for round in 0..ROUNDS {
        feed_round(&mut feed, &mut sources)?;
        // The rates now reported are of the round before.
        let rates = feed.take_rates();
        for (thread, source) in sources.iter_mut().enumerate() {
            let did = source.finish_round(machine, &rates[thread]);
            if round > WARM_ROUNDS {
                sums[thread].add(did);
            }
        }
    }
    feed.finish()?;
    Ok(sums.map(|sum| Pace { cycles: sum.cycles / sum.instructions, misses: sum.misses / sum.instructions }))
}

/// Feeds a slice of each source, which take about as long.
fn feed_round(feed: &mut Feed, sources: &mut [Source]) -> Result<(), PaperError> {
    let slices: Vec<Vec<Record>> = sources.iter_mut().map(Source::slice).collect();
    let instructions = |thread: usize| slices[thread].len() as u64 * sources[thread].stream.instructions;
    let fed: Vec<_> =
        slices.iter().enumerate().map(|(cpu, slice)| (cpu, slice.as_slice(), instructions(cpu))).collect();
    feed.round(&fed)
}

impl Paces {
    fn of(&self, kind: usize, beside: Option<usize>, draw: u64) -> Pace {
        let paces = &self.paces[kind][beside.unwrap_or(KINDS.len())];
        paces.get(draw as usize % paces.len().max(1)).copied().unwrap_or_default()
    }

    /// Returns how many times as long a kind takes beside another as alone.
    pub fn slower(&self, kind: usize, beside: usize) -> f64 {
        let mean = |paces: &[Pace]| paces.iter().map(|pace| pace.cycles).sum::<f64>() / paces.len().max(1) as f64;
        mean(&self.paces[kind][beside]) / mean(&self.paces[kind][KINDS.len()])
    }
}

/// Tasks of the four kinds in turn, each with as much to do as takes the same time alone.
pub struct Mix<'a> {
    paces: &'a Paces,
    seed: u64,
    tick_cycles: f64,
    /// Instructions that are left, by task.
    left: Vec<f64>,
}

impl<'a> Mix<'a> {
    /// Creates so many tasks; `seed` draws placements, and which number has which kind.
    pub fn new(paces: &'a Paces, machine: &Machine, tasks: usize, seed: u64) -> Self {
        let second = f64::from(machine.clock_mhz) * 1e6;
        let work = |task: usize| ALONE_SECONDS * second / paces.of(kind(task, seed), None, 0).cycles;
        let (tick_cycles, left) = (second / TICKS_PER_SECOND as f64, (0..tasks).map(work).collect());
        Mix { paces, seed, tick_cycles, left }
    }
}

fn kind(task: usize, seed: u64) -> usize {
    // Each kind once in four numbers, in an order of the seed's.
    let order = mix(&[seed, task as u64 / 4]) as usize;
    let turned = (task + order) % 4;
    if order & 64 != 0 { 3 - turned } else { turned }
}

impl Work for Mix<'_> {
    fn tasks(&self) -> usize {
        self.left.len()
    }

    fn tick(&mut self, core: usize, running: [Option<usize>; THREADS]) -> [Did; THREADS] {
        std::array::from_fn(|thread| {
            let Some(task) = running[thread] else { return Did::default() };
            let beside = running[1 - thread].map(|other| kind(other, self.seed));
            let draw = mix(&[self.seed, core as u64, task as u64]);
            let pace = self.paces.of(kind(task, self.seed), beside, draw);
            let instructions = self.tick_cycles / pace.cycles;
            self.left[task] -= instructions;
            Did { cycles: self.tick_cycles, instructions, misses: instructions * pace.misses }
        })
    }

    fn is_done(&self, task: usize) -> bool {
        self.left[task] <= 0.0
    }

    fn share(&self, _: usize, _: usize) -> Option<bool> {
        None
    }
}
