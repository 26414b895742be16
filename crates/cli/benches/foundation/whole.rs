//! (b) the whole machine, (c) replay, (d) many geometries, (e) boot, (f) memory: the command as a user runs it.

use super::{RUNS, spread};
use nearmiss_host::load;
use nearmiss_machine::curve::Geometries;
use nearmiss_machine::describe::cut;
use nearmiss_machine::model::{Model, ModelOptions};
use nearmiss_machine::observer::NullObserver;
use nearmiss_record::model::ModelRecord;
use nearmiss_record::policy::{Order, Policy};
use nearmiss_record::reference::Kind;
use nearmiss_record::run::{MANIFEST, MODEL, Manifest, RunDir, TRACE};
use nearmiss_record::trace::{Block, TraceReader};
use nearmiss_workload::{Stdio, Workload};
use std::error::Error;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

const SORT: [&str; 6] = ["sort", "-S", "20M", "--parallel=1", "-o", "/dev/null"];

/// The machine of a row: this host with one CPU, or one with the same filter on 1, 2 and 4.
const HOST: [&str; 2] = ["--cpus", "1"];
const FOUR_WAY: &str = "xeon-mp-4way-l3";

/// Name of a row, and the options of its traces.
type Row = (&'static str, &'static [&'static str], &'static [&'static str]);

const ROWS: [Row; 8] = [
    ("first level in the tap", &HOST, &["--no-trace", "--no-curve"]),
    ("the same, no stacks, no heap", &HOST, &["--no-trace", "--no-curve", "--no-stacks", "--no-heap"]),
    ("the same, host's clock", &HOST, &["--no-trace", "--no-curve", "--clock", "host"]),
    ("one-line filter", &HOST, &["--no-trace", "--no-curve", "--one-line-filter"]),
    ("xeon-mp-4way-l3, 1 CPU", &["-m", FOUR_WAY, "--cpus", "1"], &["--no-curve"]),
    ("xeon-mp-4way-l3, 2 CPUs", &["-m", FOUR_WAY, "--cpus", "2"], &["--no-curve"]),
    ("xeon-mp-4way-l3, 4 CPUs", &["-m", FOUR_WAY, "--cpus", "4"], &["--no-curve"]),
    // The last one's trace is replayed.
    ("set filter, trace kept", &HOST, &["--no-curve"]),
];

/// Prints (b) to (f).
pub fn measure() -> Result<(), Box<dyn Error>> {
    println!("(b) whole machine, kernel included, classes and attribution on: sort, on `host` with 1 CPU unless named");
    println!("    the guest has started `true` ahead of the window: that is in the boot, as in (a)");
    let mut runs: [Vec<_>; ROWS.len()] = Default::default();
    for _ in 0..RUNS {
        for ((_, machine, options), runs) in ROWS.iter().zip(&mut runs) {
            runs.push(trace(machine, options)?);
        }
    }
    for ((what, ..), runs) in ROWS.iter().zip(&runs) {
        print_row(what, runs);
    }
    replay(&RunDir::newest(Path::new("nearmiss-runs"))?)
}

fn print_row(what: &str, runs: &[(Manifest, ModelRecord, u64)]) {
    let times = |of: fn(&Manifest) -> u64| {
        spread(runs.iter().map(|(manifest, ..)| Duration::from_nanos(of(manifest))).collect())
    };
    let (window, shown) = times(|manifest| manifest.window_ns);
    // Instructions and accesses are the same in each, but for ticks.
    let model = &runs[0].1;
    let all = [&model.totals, &model.others, &model.idle, &model.ticks];
    let accesses: u64 = all.iter().map(|t| t.loads + t.stores).sum();
    let instructions: u64 = all.iter().map(|t| t.instructions).sum();
    let records = || runs.iter().map(|(manifest, ..)| manifest.records as f64 / 1e6);
    println!(
        "    {what:<32} {:>6.1} M accesses/s  window {shown}; {:.1} to {:.1} M records; ticks {:.1}% of the instructions; \
         (e) boot {}; (f) {} MiB beside the guest",
        accesses as f64 / window / 1e6,
        records().fold(f64::INFINITY, f64::min),
        records().fold(0.0, f64::max),
        model.ticks.instructions as f64 * 100.0 / instructions as f64,
        times(|manifest| manifest.boot_ns + manifest.warm.as_ref().map_or(0, |warm| warm.time_ns)).1,
        runs.iter().map(|(.., bytes)| bytes).max().unwrap_or(&0) >> 20
    );
}

fn trace(machine: &[&str], options: &[&str]) -> Result<(Manifest, ModelRecord, u64), Box<dyn Error>> {
    let mut argv: Vec<String> = vec![env!("CARGO_BIN_EXE_nearmiss").into(), "trace".into(), "-q".into()];
    argv.extend(["--memory", "1GiB"].iter().chain(machine).chain(options).map(|o| (*o).to_owned()));
    argv.push("--".into());
    argv.extend(SORT.iter().map(|a| (*a).to_owned()));
    argv.push("words".into());
    let running = Workload::new(argv).stdout(Stdio::Null).launch_suspended()?.resume()?;
    let finished = running.wait()?;
    let run = RunDir::newest(Path::new("nearmiss-runs"))?;
    Ok((run.read_json(MANIFEST)?, run.read_json(MODEL)?, finished.max_rss_bytes))
}

fn replay(run: &RunDir) -> Result<(), Box<dyn Error>> {
    let machine = cut(&load("host")?, 1);
    let mut reader = TraceReader::open(&run.file(TRACE))?;
    let header = reader.header().clone();
    let dropped: u64 = reader.side().insns.iter().map(|i| i.load_hits + i.store_hits).sum();
    let (mut decoding, mut modelling, mut records) = (Vec::new(), Vec::new(), 0);
    let mut lines = Vec::new();
    for n in 0..RUNS {
        let mut model =
            Model::new(&machine, &Policy::default(), &ModelOptions::of(&header, Order::Recorded), NullObserver)?;
        let mut block = Block::default();
        let (mut decode, mut replay) = (Duration::ZERO, Duration::ZERO);
        records = 0;
        for b in 0..reader.blocks() {
            let started = Instant::now();
            reader.read(b, &mut block)?;
            decode += started.elapsed();
            let started = Instant::now();
            for (head, chunk) in block.chunks() {
                model.chunk(head, chunk)?;
            }
            replay += started.elapsed();
            records += block.records().len() as u64;
            if n == 0 {
                let data = |k| matches!(k, Some(Kind::Load | Kind::Store));
                lines.extend(block.records().iter().filter(|r| data(r.kind())).map(|r| r.paddr() >> 6));
            }
        }
        black_box(model.finish()?);
        decoding.push(decode);
        modelling.push(replay);
    }
    let ((decode, decoded), (replay, replayed)) = (spread(decoding), spread(modelling));
    let bytes = std::fs::metadata(run.file(TRACE))?.len();
    println!(
        "\n(c) replay of that trace, totals only: {records} records in {:.2} bytes each, {dropped} more references dropped",
        bytes as f64 / records as f64
    );
    println!("    decode {decoded}: {:.1} M records/s", records as f64 / decode / 1e6);
    println!(
        "    model  {replayed}: {:.1} M records/s, {:.1} M references/s",
        records as f64 / replay / 1e6,
        (records + dropped) as f64 / replay / 1e6
    );

    // The trace's filter had 64 sets: what it let through is exact for caches of at least as many.
    let pass = |sets: std::ops::RangeInclusive<u32>, ways: usize| {
        let started = Instant::now();
        let mut geometries = Geometries::new(sets, ways);
        lines.iter().for_each(|line| geometries.reference(*line));
        black_box(&geometries);
        started.elapsed()
    };
    let (mut one, mut many) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        one.push(pass(6..=6, 8));
        many.push(pass(6..=13, 8));
    }
    let ((a, one), (b, many)) = (spread(one), spread(many));
    println!(
        "\n(d) {} references: one LRU geometry {one}; 8 numbers of sets × 8 of ways in one pass {many}: {:.1}×",
        lines.len(),
        b / a
    );
    Ok(())
}
