//! Upper bound of a suspicion, beside the savings of its rehearsal.
#![allow(clippy::unwrap_used)]

use nearmiss_analysis::{Case, Cost, Replays, Traced, seeds};
use nearmiss_machine::describe::{cut, filter_for, preset};
use nearmiss_record::abi::ChunkHeader;
use nearmiss_record::finding::Finding;
use nearmiss_record::machine::Machine;
use nearmiss_record::policy::{AddressPolicy, Order, Policy};
use nearmiss_record::reference::{ControlKind, Kind, Record};
use nearmiss_record::run::{MANIFEST, RunDir, SYMBOLS, TRACE};
use nearmiss_record::side::{Context, Insn, SideTables};
use nearmiss_record::symbols::{SCHEMA, Symbols};
use nearmiss_record::trace::{self, TraceHeader, TraceWriter};
use nearmiss_record::units::InsnId;
use nearmiss_remedies::color::REMEDY;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const BASE: u64 = 0x7f00_0000_0000;
const HEAP_ALLOC: u64 = 1;
const MEMORY_BYTES: u64 = 4 << 30;

fn random(mut state: u64) -> impl FnMut(u64) -> u64 {
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    }
}

fn load(address: u64) -> Record {
    Record::reference(Kind::Load, address, 8, 0, InsnId(1), (address % MEMORY_BYTES) >> 12, 4)
}

/// Makes a run with these reads of its heap blocks (first address, bytes).
fn run(place: &Path, machine: &Machine, blocks: &[(u64, u64)], reads: &[u64]) -> RunDir {
    let run = RunDir::create(place, "run").unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/fixtures/healthy").join(MANIFEST);
    std::fs::copy(fixture, run.file(MANIFEST)).unwrap();
    let symbols = Symbols { schema: SCHEMA.to_owned(), ..Symbols::default() };
    run.write_json(SYMBOLS, &symbols).unwrap();
    let schema = trace::SCHEMA.to_owned();
    let node_bytes = vec![MEMORY_BYTES];
    let header = TraceHeader { schema, cpus: 1, filter: filter_for(machine), node_bytes, ..TraceHeader::default() };
    let mut writer = TraceWriter::create(&run.file(TRACE), &header).unwrap();
    let mut records = vec![Record::control(ControlKind::Switch, 0x7000, 0, 7 << 32 | 7)];
    records.extend([Record::default(); 5]);
    records.extend([
        Record::control(ControlKind::Mark, 1, 0, 0),
        Record::default(),
        Record::default(),
        Record::default(),
    ]);
    records.push(Record::control(ControlKind::Context, 1, 0, 0));
    for (address, bytes) in blocks {
        records.push(Record::control(ControlKind::Heap, HEAP_ALLOC, 0, 0));
        records.extend([Record { a: *address, b: *bytes }, Record { a: 0, b: 0 }]);
    }
    let mut chunks = vec![records];
    chunks.extend(reads.chunks(4000).map(|reads| reads.iter().map(|address| load(*address)).collect()));
    for (seq, records) in chunks.iter().enumerate() {
        let head = ChunkHeader { seq: seq as u64, records: records.len() as u32, ..ChunkHeader::default() };
        writer.chunk(&head, records).unwrap();
    }
    let side = SideTables {
        insns: vec![Insn::default(); 4],
        contexts: vec![Context::default(), Context { parent: 0, call: 1 }],
        ..SideTables::default()
    };
    writer.finish(&side).unwrap();
    run
}

/// Returns the bound and the finding of each suspicion.
fn suspected(machine: &Machine, blocks: &[(u64, u64)], reads: &[u64]) -> Vec<(f64, Finding)> {
    let place = tempfile::tempdir().unwrap();
    let run = run(place.path(), machine, blocks, reads);
    let traced = Traced::open(&run, Some(machine), Some(Order::Recorded), &|_, _| ()).unwrap();
    let case = Case::from(traced);
    let suspicions = (REMEDY.detect)(&case).unwrap();
    suspicions.iter().map(|suspicion| (suspicion.most_gain(), suspicion.finding(&case).unwrap())).collect()
}

#[test]
fn nothing_saves_more_than_its_suspicion_allows() {
    let mut next = random(11);
    let mut found = 0;
    for case in 0..24 {
        let name = ["xeon-sapphire-rapids", "zen3-milan"][case % 2];
        let machine = cut(&preset(name).unwrap().machine().unwrap(), 1);
        let count = 6 + next(60);
        let apart = 4096 << next(3);
        let table = (BASE - (1 << 30), (8 << next(12)) << 10);
        let mut blocks: Vec<(u64, u64)> = (0..count).map(|n| (BASE + n * apart, apart)).collect();
        blocks.push(table);
        let share = next(5);
        let reads: Vec<u64> = (0..40_000)
            .map(|i| match next(8) < share {
                true => table.0 + next(table.1 / 8) * 8,
                false => BASE + i % count * apart + i / count * 8 % apart,
            })
            .collect();
        for (most, finding) in suspected(&machine, &blocks, &reads) {
            found += 1;
            let gain = finding.prediction.gain;
            assert!(gain <= most, "case {case}: {gain} of {most}: {}", finding.symptom);
            assert!(finding.prediction.high <= finding.evidence.most_gain, "case {case}");
        }
    }
    assert!(found >= 12, "{found} suspicions");
}

#[test]
fn blocks_are_counted_and_shifted_and_rows_padded() {
    let machine = cut(&preset("xeon-sapphire-rapids").unwrap().machine().unwrap(), 1);
    let lock_step = |count: u64| (0..count * 1024).map(move |i| BASE + i % count * 8192 + i / count * 8);
    for count in [14, 26, 40, 160] {
        let blocks: Vec<(u64, u64)> = (0..count).map(|n| (BASE + n * 8192, 8192)).collect();
        let reads: Vec<u64> = lock_step(count).collect();
        let found = suspected(&machine, &blocks, &reads);
        let [(_, finding)] = found.as_slice() else { panic!("{count} blocks: {} suspicions", found.len()) };
        assert!(finding.symptom.contains(&format!(" come from {count} malloc blocks of ")), "{}", finding.symptom);
        assert!(finding.apply.as_ref().is_some_and(|words| words.contains(&"--blocks".to_owned())));
        assert!(finding.prediction.gain > 0.05, "{}", finding.prediction.gain);
        // The same addresses within one block.
        let found = suspected(&machine, &[(BASE, count * 8192)], &reads);
        let [(_, finding)] = found.as_slice() else { panic!("{count} rows: {} suspicions", found.len()) };
        let change = format!("{:?}", finding.reach);
        assert!(finding.symptom.contains(&format!(" {count} pieces, 8 KiB apart, of ")), "{}", finding.symptom);
        assert!(change.contains("pad each row or part by a line: 8192 + 64 bytes apart"), "{change}");
    }
}

fn costs_of(case: &Traced, policies: &[Policy], seeds: &[u64], ranges: &[(u64, u64)]) -> Vec<Vec<Cost>> {
    Replays::of(case).policies(policies).placements(seeds).inside(ranges).run().unwrap()
}

#[test]
fn replays_in_one_pass_cost_what_each_costs_alone() {
    let place = tempfile::tempdir().unwrap();
    let machine = cut(&preset("zen3-milan").unwrap().machine().unwrap(), 1);
    let blocks: Vec<(u64, u64)> = (0..40).map(|n| (BASE + n * 8192, 8192)).collect();
    let mut next = random(5);
    let reads: Vec<u64> = (0..40_000).map(|i| BASE + i % 40 * 8192 + next(64) / 60 * 64).collect();
    let run = run(place.path(), &machine, &blocks, &reads);
    let case = Traced::open(&run, Some(&machine), Some(Order::Recorded), &|_, _| ()).unwrap();
    let ranges: Vec<(u64, u64)> = blocks.iter().map(|(base, bytes)| (*base, base + bytes)).collect();
    let colored = |colors| AddressPolicy::Color { ranges: ranges.clone(), align: 8192, colors, line: 64 };
    let policies = [AddressPolicy::Recorded, colored(2), colored(3), colored(8)];
    let policies = policies.map(|address| Policy { address, ..Policy::default() });
    let seeds = seeds(&machine, 5);
    let together = costs_of(&case, &policies, &seeds, &ranges);
    for (policy, costs) in policies.iter().zip(&together) {
        for (seed, cost) in seeds.iter().zip(costs) {
            let alone = costs_of(&case, std::slice::from_ref(policy), &[*seed], &ranges);
            assert_eq!(alone, [[cost.clone()]]);
        }
    }
    let misses: BTreeSet<u64> = together.iter().map(|costs| costs[0].misses[0]).collect();
    assert_eq!(misses.len(), 4, "the policies differ: {misses:?}");
}

#[test]
fn the_cost_of_a_run_as_it_was_is_found_once_and_equals_that_of_a_replay() {
    let place = tempfile::tempdir().unwrap();
    let machine = cut(&preset("zen3-milan").unwrap().machine().unwrap(), 1);
    let blocks: Vec<(u64, u64)> = (0..40).map(|n| (BASE + n * 8192, 8192)).collect();
    let reads: Vec<u64> = (0..20_000).map(|i| BASE + i % 40 * 8192 + i / 40 % 7 * 64).collect();
    let run = run(place.path(), &machine, &blocks, &reads);
    let mut case = Traced::open(&run, Some(&machine), Some(Order::Recorded), &|_, _| ()).unwrap();
    let replays = Arc::new(AtomicUsize::new(0));
    let whole = Arc::clone(&replays);
    case.on_progress = Box::new(move |_, of| whole.store(of, Ordering::Relaxed));
    let as_it_was = Policy::default();
    let seeds = seeds(&machine, 5);
    // No transaction is of the ranges, but a caller with ranges has replays of its own.
    let alone = costs_of(&case, std::slice::from_ref(&as_it_was), &seeds, &[(1, 2)]).remove(0);
    assert_eq!(replays.load(Ordering::Relaxed), 5, "one block in the trace");
    let colored = AddressPolicy::Color { ranges: vec![(BASE, BASE + 40 * 8192)], align: 8192, colors: 8, line: 64 };
    let colored = Policy { address: colored, ..Policy::default() };
    let each: Vec<(&Policy, u64)> = [&as_it_was, &colored].into_iter().zip([seeds[4], seeds[0]]).collect();
    let costs = Replays::of(&case).each(&each).unwrap();
    assert_eq!(costs[0], alone[4]);
    assert_eq!(costs[1], costs_of(&case, &[colored], &seeds[..1], &[(1, 2)])[0][0]);
    assert_ne!(costs[1], alone[0]);
    for _ in 0..2 {
        let again = costs_of(&case, std::slice::from_ref(&as_it_was), &seeds, &[]);
        assert_eq!(again, std::slice::from_ref(&alone));
    }
    replays.store(0, Ordering::Relaxed);
    costs_of(&case, &[as_it_was], &seeds, &[]);
    assert_eq!(replays.load(Ordering::Relaxed), 0, "nothing is replayed again");
}

#[test]
fn colors_are_compared_on_a_part_of_a_long_trace_and_gain_as_on_all_of_it() {
    let place = tempfile::tempdir().unwrap();
    let machine = cut(&preset("zen3-milan").unwrap().machine().unwrap(), 1);
    let blocks: Vec<(u64, u64)> = (0..40).map(|n| (BASE + n * 8192, 8192)).collect();
    let lock_step = |count: u64| (0..count).map(|i| BASE + i % 40 * 8192 + i / 40 * 8 % 8192);
    let one_line = |count: u64| (0..count).map(|_| BASE);
    // The part has the crowd, or nothing of it.
    for (reads, is_in_part) in
        [(lock_step(900_000).collect::<Vec<_>>(), true), (one_line(500_000).chain(lock_step(400_000)).collect(), false)]
    {
        let run = run(place.path(), &machine, &blocks, &reads);
        let found = |parts: u64| {
            let mut traced = Traced::open(&run, Some(&machine), Some(Order::Recorded), &|_, _| ()).unwrap();
            traced.manifest.records = reads.len() as u64;
            traced.part_records = traced.manifest.records / parts;
            let case = Case::from(traced);
            let suspicions = (REMEDY.detect)(&case).unwrap();
            let [suspicion] = suspicions.as_slice() else { panic!("{} suspicions", suspicions.len()) };
            suspicion.finding(&case).unwrap()
        };
        let (whole, part) = (found(1), found(8));
        let compared =
            |finding: &Finding| finding.prediction.approximate.iter().any(|line| line.contains("compared on"));
        assert_eq!((compared(&part), compared(&whole)), (is_in_part, false), "{:?}", part.prediction);
        assert_eq!((&part.apply, &part.treatment), (&whole.apply, &whole.treatment));
        assert!(part.prediction.gain > 0.05 && part.prediction.gain == whole.prediction.gain, "{:?}", part.prediction);
    }
}
