//! Crowds of every shape, and streams that look like them: run through a model with crowds attributed.
#![allow(clippy::unwrap_used)]

use nearmiss_machine::attribution::{Attribution, Crowd, Options, RecordedData};
use nearmiss_machine::describe::{cut, preset};
use nearmiss_machine::model::{Model, ModelOptions};
use nearmiss_machine::observer::Observer;
use nearmiss_record::abi::ChunkHeader;
use nearmiss_record::machine::{Machine, Replacement};
use nearmiss_record::policy::{Order, Policy};
use nearmiss_record::reference::{Control, FLAG_KERNEL, HeapOp, Kind, Record, Usage};
use nearmiss_record::run::Filter;
use nearmiss_record::side::{Context, Insn, SideTables};
use nearmiss_record::symbols::Symbols;
use nearmiss_record::trace::TraceHeader;
use nearmiss_record::units::InsnId;

const BASE: u64 = 0x7f00_0000_0000;

/// `host`-like: 64 sets of 12 ways, then 2,048 sets of 16, both LRU.
fn twelve_ways() -> Machine {
    let mut machine = cut(&preset("xeon-sapphire-rapids").unwrap().machine().unwrap(), 1);
    machine.caches.iter_mut().for_each(|cache| cache.replacement = Replacement::Lru);
    machine
}

/// 64 sets of 8 ways, as trees of bits.
fn eight_ways() -> Machine {
    cut(&preset("zen3-milan").unwrap().machine().unwrap(), 1)
}

fn load(address: u64) -> Record {
    Record::reference(Kind::Load, address, 8, 0, InsnId(1), address >> 12, 1)
}

/// Returns the crowds when the blocks (first address, bytes; one call site each) are read so.
fn crowds(machine: &Machine, blocks: &[(u64, u64)], records: impl Iterator<Item = Record>) -> Vec<Crowd> {
    let options =
        Options { cpus: 1, levels: machine.levels(), line_bytes: 64, crowds: Some(machine.clone()), aliasing: None };
    let mut attribution = Attribution::new(options, Box::new(RecordedData::default()));
    let (task, usage) = (0xffff_8880_0000_0007, Usage::default());
    let switch = Control::Switch { task, pid: 7, tgid: 7, mm: 0, outgoing: 0, comm: "t7".to_owned(), usage };
    attribution.control(0, &switch);
    attribution.control(0, &Control::Mark { number: 1, usage: Usage::default() });
    attribution.control(0, &Control::Context(1));
    for (address, size) in blocks {
        let call = Control::Heap { op: HeapOp::Alloc, address: *address, size: *size, old: 0, alignment: 0 };
        attribution.control(0, &call);
    }
    let filter = Filter { fetches: true, line_log2: 6, clear_on_slice: true, ..Filter::default() };
    let options = ModelOptions::of(&TraceHeader { cpus: 1, filter, ..TraceHeader::default() }, Order::Recorded);
    let mut model = Model::new(machine, &Policy::default(), &options, attribution).unwrap();
    let records: Vec<Record> = records.collect();
    for (seq, chunk) in records.chunks(4095).enumerate() {
        let head = ChunkHeader { seq: seq as u64, records: chunk.len() as u32, ..ChunkHeader::default() };
        model.chunk(&head, chunk).unwrap();
    }
    let side = SideTables {
        insns: vec![Insn::default(); 4],
        contexts: vec![Context::default(), Context { parent: 0, call: 1 }],
        ..SideTables::default()
    };
    model.finish().unwrap().1.crowds(&side, &Symbols::default())
}

fn of_level(crowds: Vec<Crowd>, level: usize) -> Option<Crowd> {
    crowds.into_iter().find(|crowd| crowd.level == level)
}

/// Blocks of `bytes`, so far apart, read in lock-step twice.
fn lock_step(blocks: u64, bytes: u64, apart: u64) -> (Vec<(u64, u64)>, impl Iterator<Item = Record>) {
    let all = (0..blocks).map(move |block| (BASE + block * apart, bytes));
    let step = move |at: u64| (0..blocks).map(move |block| load(BASE + block * apart + at * 8));
    (all.collect(), (0..2).flat_map(move |_| (0..bytes / 8).flat_map(step)))
}

fn random(mut state: u64) -> impl FnMut(u64) -> u64 {
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    }
}

#[test]
fn blocks_in_lock_step_crowd_from_one_more_than_the_ways_on_and_are_counted() {
    for (machine, ways) in [(twelve_ways(), 12), (eight_ways(), 8)] {
        for blocks in [ways - 1, ways, ways + 1, 14, 22, 26, 32, 40, 64, 160, 512] {
            let (extents, records) = lock_step(blocks, 4096, 8192);
            let found = of_level(crowds(&machine, &extents, records), 0);
            if blocks <= ways {
                assert_eq!(found, None, "{blocks} blocks, {ways} ways");
                continue;
            }
            let found = found.unwrap_or_else(|| panic!("{blocks} blocks, {ways} ways"));
            assert_eq!(found.extents.len() as u64, blocks);
            assert_eq!(found.extents[0], (BASE, BASE + 4096, found.extents[0].2));
            assert!(found.within_one < 0.1, "{}", found.within_one);
            assert_eq!(found.alignment_bytes(), 8192);
            if ways == 12 {
                assert_eq!(found.sets.round(), 1.0, "{blocks} blocks");
                // Under LRU all but the first of a line's eight reads come back after all the others, every time.
                assert_eq!(found.lines_a_set, blocks as f64);
                let reads = 2 * blocks * 512;
                assert!(found.misses >= reads - 2 * blocks * 64 && found.misses <= reads, "{}", found.misses);
            }
        }
    }
}

#[test]
fn blocks_that_begin_a_line_apart_do_not_crowd() {
    for blocks in [13, 26, 40, 160] {
        let (extents, records) = lock_step(blocks, 4096, 8192 + 64);
        assert_eq!(crowds(&twelve_ways(), &extents, records), [], "{blocks}");
    }
}

#[test]
fn rows_read_by_columns_are_pieces_of_one_object_however_many() {
    for (rows, apart) in [(13, 4096), (40, 12288), (128, 4096), (256, 1024), (512, 4096), (700, 4096)] {
        let walk = (0..3).flat_map(move |_| {
            (0..64u64).flat_map(move |column| (0..rows).map(move |row| load(BASE + 16 + row * apart + column * 8)))
        });
        let found = of_level(crowds(&twelve_ways(), &[(BASE + 16, rows * apart)], walk), 0).unwrap();
        assert_eq!((found.pieces, found.spacing_bytes), (rows, apart));
        assert!(found.within_one > 0.99);
        let sets = 4096 / apart.min(4096);
        assert_eq!((found.sets.round() as u64, found.lines_a_set.round() as u64), (sets, rows / sets));
    }
}

#[test]
fn rows_beyond_the_first_level_crowd_in_the_second() {
    let walk = |apart: u64| {
        (0..3).flat_map(move |_| {
            (0..16u64).flat_map(move |column| (0..2000).map(move |row| load(BASE + row * apart + column * 8)))
        })
    };
    let found = crowds(&twelve_ways(), &[(BASE, 2000 * 8192)], walk(8192));
    assert_eq!(found.iter().map(|crowd| (crowd.level, crowd.pieces)).collect::<Vec<_>>(), [(1, 2000)]);
    assert_eq!(crowds(&twelve_ways(), &[(BASE, 2000 * 8256)], walk(8256)), []);
}

/// Frames of so many lines at one depth of as many stacks, in turn.
fn frames(threads: u64, lines: u64, apart: u64) -> impl Iterator<Item = Record> {
    let frame = move |thread: u64| (0..lines).map(move |line| load(BASE + thread * apart + 4096 + line * 64));
    (0..30).flat_map(move |_| (0..threads).flat_map(frame))
}

#[test]
fn frames_of_any_size_crowd_where_they_would_fit() {
    for (threads, lines) in [(13, 4), (16, 12), (20, 20), (14, 40), (18, 40)] {
        let stacks: Vec<_> = (0..threads).map(|n| (BASE + n * 0x80_1000, 0x80_0000)).collect();
        let found = of_level(crowds(&twelve_ways(), &stacks, frames(threads, lines, 0x80_1000)), 0);
        let found = found.unwrap_or_else(|| panic!("{threads} threads, {lines} lines"));
        assert_eq!(found.extents.len() as u64, threads);
        assert_eq!((found.sets.round() as u64, found.lines_a_set), (lines, threads as f64));
    }
    for (threads, lines) in [(12, 4), (12, 40)] {
        assert_eq!(crowds(&twelve_ways(), &[], frames(threads, lines, 0x80_1000)), []);
    }
}

#[test]
fn misses_of_the_kernel_between_hide_nothing() {
    let (blocks, records) = lock_step(26, 4096, 8192);
    let mut below = random(3);
    let with_kernel = records.flat_map(|record| {
        let page = 0x1_0000 + below(40);
        let address = 0xffff_8880_0000_0000 + page * 4096 + below(64) * 64;
        [record, Record::reference(Kind::Load, address, 8, FLAG_KERNEL, InsnId(2), page, 1)]
    });
    let found = of_level(crowds(&twelve_ways(), &blocks, with_kernel), 0).unwrap();
    assert_eq!((found.extents.len(), found.lines_a_set), (26, 26.0));
}

#[test]
fn slots_in_any_order_are_counted_and_padded_ones_are_well() {
    for (slots, bytes) in [(40, 8192), (100, 12288), (300, 65536)] {
        let mut below = random(5);
        let header = |bytes: u64| BASE + below(slots) * bytes;
        let walk: Vec<Record> = std::iter::repeat(bytes).map(header).take(60_000).map(load).collect();
        let found = of_level(crowds(&twelve_ways(), &[(BASE, slots * bytes)], walk.into_iter()), 0).unwrap();
        assert_eq!((found.pieces, found.spacing_bytes), (slots, bytes));
        let mut below = random(5);
        let padded = (0..60_000).map(|_| load(BASE + below(slots) * (bytes + 64)));
        assert_eq!(crowds(&twelve_ways(), &[(BASE, slots * (bytes + 64))], padded), []);
    }
}

#[test]
fn lines_at_random_do_not_crowd_though_they_conflict() {
    for machine in [twelve_ways(), eight_ways()] {
        for bytes in [32 << 10, 48 << 10, 60 << 10, 200 << 10, 1 << 20, 3 << 20, 8 << 20] {
            let mut below = random(bytes);
            let walk: Vec<Record> = (0..300_000).map(|_| load(BASE + below(bytes / 8) * 8)).collect();
            let found = crowds(&machine, &[(BASE, bytes)], walk.into_iter());
            assert_eq!(found, [], "{bytes} bytes on {}", machine.name);
        }
    }
}

#[test]
fn flows_and_chains_do_not_crowd() {
    let mut below = random(9);
    let mut nodes: Vec<u64> = (0..6000).map(|n| BASE + n * 176).collect();
    (1..nodes.len()).rev().for_each(|at| nodes.swap(at, below(at as u64 + 1) as usize));
    let chain = (0..10).flat_map(|_| nodes.iter().map(|node| load(*node)));
    assert_eq!(crowds(&twelve_ways(), &[(BASE, 6000 * 176)], chain), []);
    let flow = (0..10).flat_map(|_| (0..100_000).map(|n| load(BASE + n * 8)));
    assert_eq!(crowds(&twelve_ways(), &[(BASE, 800_000)], flow), []);
}

#[test]
fn crowds_of_one_run_are_the_same_every_time() {
    let run = || {
        let (blocks, records) = lock_step(26, 4096, 8192);
        crowds(&eight_ways(), &blocks, records)
    };
    assert_eq!(run(), run());
}
