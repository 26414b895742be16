//! Speed of the model's replay: records a second of this thread's CPU time on synthetic streams, medians of interleaved
//! rounds. Each replay starts with cold caches.
//!
//! `cargo run --release -p nearmiss-machine --example model_bench -- [PART OF A NAME]`

use nearmiss_machine::curve::{Curve, Geometries};
use nearmiss_machine::describe::{cut, preset};
use nearmiss_machine::model::{Counts, Engine, Fast, ModelOptions, Replay};
use nearmiss_machine::observer::NullObserver;
use nearmiss_record::abi::ChunkHeader;
use nearmiss_record::machine::{Machine, Replacement};
use nearmiss_record::policy::{Order, Policy};
use nearmiss_record::reference::{Kind, Record};
use nearmiss_record::run::Filter;
use nearmiss_record::trace::TraceHeader;
use nearmiss_record::units::InsnId;
use rustix::time::{ClockId, clock_gettime};
use std::error::Error;

const RECORDS: usize = 1 << 20;
const CHUNK: usize = 4095;
const ROUNDS: usize = 3;

fn cpu_seconds() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % limit
    }
}

fn stream(mut next: impl FnMut(&mut Numbers, usize) -> (u64, bool)) -> Vec<Record> {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    (0..RECORDS)
        .map(|i| {
            let (address, store) = next(&mut numbers, i);
            let kind = if store { Kind::Store } else { Kind::Load };
            Record::reference(kind, address, 8, 0, InsnId(i as u32 & 255), address >> 12, 3)
        })
        .collect()
}

/// Misses and seconds; building the caches is not timed.
type Run = Result<(u64, f64), Box<dyn Error>>;

fn replay<E: Engine>(machine: &Machine, cpus: u32, records: &[Record]) -> Run {
    let filter = Filter { fetches: true, line_log2: 6, clear_on_slice: true, ..Filter::default() };
    let options = ModelOptions::of(&TraceHeader { cpus, filter, ..TraceHeader::default() }, Order::Recorded);
    let mut model = Replay::<E, NullObserver>::new(machine, &Policy::default(), &options, NullObserver)?;
    let start = cpu_seconds();
    for (seq, chunk) in records.chunks(CHUNK).enumerate() {
        let vcpu = (seq / 16) as u32 % cpus;
        let header = ChunkHeader { seq: seq as u64, vcpu, records: chunk.len() as u32, ..ChunkHeader::default() };
        model.chunk(&header, chunk)?;
    }
    let seconds = cpu_seconds() - start;
    Ok((model.finish()?.0.sum().levels[0].misses(), seconds))
}

fn pass(records: &[Record], mut each: impl FnMut(u64)) -> f64 {
    let start = cpu_seconds();
    records.iter().for_each(|r| each(r.paddr()));
    cpu_seconds() - start
}

type Work<'a> = Box<dyn Fn() -> Run + 'a>;

fn main() -> Result<(), Box<dyn Error>> {
    let hits = stream(|n, i| (n.below(if i % 50 == 0 { 1 << 20 } else { 24 << 10 }) & !7, i % 4 == 0));
    let runs = stream(|_, i| ((i as u64 * 16) % (20 << 10), i % 4 == 0));
    let flows = stream(|_, i| ((i as u64 * 8) % (64 << 20), i % 3 == 0));
    let misses = stream(|n, i| (n.below(64 << 20) & !7, i % 4 == 0));
    let nearer = stream(|n, i| (n.below(384 << 10) & !7, i % 4 == 0));
    let whole = preset("zen3-milan").ok_or("no such preset")?.machine()?;
    let mut lru = whole.clone();
    lru.caches.iter_mut().for_each(|c| c.replacement = Replacement::Lru);
    let (one, one_lru, four) = (cut(&whole, 1), cut(&lru, 1), cut(&whole, 4));

    let mut works: Vec<(String, Work)> = Vec::new();
    for (name, records) in [
        ("near a first level", &hits),
        ("runs in a first level", &runs),
        ("a flow", &flows),
        ("random, 384 KiB", &nearer),
        ("random, 64 MiB", &misses),
    ] {
        for (who, machine, cpus) in [("1 CPU", &one, 1), ("1 CPU, LRU", &one_lru, 1), ("4 CPUs", &four, 4)] {
            works.push((format!("{name}, {who}"), Box::new(move || replay::<Fast>(machine, cpus, records))));
        }
        for (who, machine) in [("1 CPU", &one), ("1 CPU, LRU", &one_lru)] {
            works.push((
                format!("{name}, {who}, counts alone"),
                Box::new(move || replay::<Counts>(machine, 1, records)),
            ));
        }
        works.push((
            format!("{name}, one LRU geometry"),
            Box::new(move || {
                let mut g = Geometries::new(6..=6, 8);
                let seconds = pass(records, |address| g.reference(address >> 6));
                Ok((g.misses(64, 8).unwrap_or(0), seconds))
            }),
        ));
        works.push((
            format!("{name}, 64 LRU geometries"),
            Box::new(move || {
                let mut g = Geometries::new(5..=12, 8);
                let seconds = pass(records, |address| g.reference(address >> 6));
                Ok((g.misses(64, 8).unwrap_or(0), seconds))
            }),
        ));
        works.push((
            format!("{name}, miss-ratio curve"),
            Box::new(move || {
                let mut curve = Curve::new(64);
                let seconds = pass(records, |address| curve.reference(address));
                Ok((curve.finish(0, true).points[0].1, seconds))
            }),
        ));
    }
    if let Some(part) = std::env::args().nth(1) {
        works.retain(|(name, _)| name.contains(&part));
    }
    let mut times = vec![Vec::new(); works.len()];
    let mut counts = vec![0; works.len()];
    for _ in 0..ROUNDS {
        for (i, (_, work)) in works.iter().enumerate() {
            let (count, seconds) = work()?;
            counts[i] = count;
            times[i].push(seconds);
        }
    }
    println!("{RECORDS} records, median of {ROUNDS} interleaved rounds, CPU time on this machine: measured");
    for (i, (name, _)) in works.iter().enumerate() {
        times[i].sort_by(f64::total_cmp);
        println!("{:8.1} M records/s  {name} ({} misses)", RECORDS as f64 / times[i][ROUNDS / 2] / 1e6, counts[i]);
    }
    Ok(())
}
