//! Sharers of the bytes of a line, on streams that are small enough to follow by hand: the same answer for any first
//! miss, and misses that go when the tenants lie apart.
#![allow(clippy::unwrap_used)]

use crate::support::*;
use nearmiss_machine::attribution::{Attribution, ModelledRun, Options, RecordedData};
use nearmiss_machine::model::{Model, ModelOptions, ModelTotals};
use nearmiss_machine::observer::{Effective, NullObserver, Observer, Outcome};
use nearmiss_machine::passing::Passing;
use nearmiss_record::abi::ChunkHeader;
use nearmiss_record::model::{LineSharing, MissClass, ModelRecord, SharedLineRow, Tenant};
use nearmiss_record::policy::{AddressPolicy, Moved, Order, Policy};
use nearmiss_record::reference::{Control, ControlKind, HeapOp, Kind, Record};
use nearmiss_record::side::{Insn, SideTables};
use nearmiss_record::symbols::{Function, Symbols};
use nearmiss_record::units::Bytes;

const BLOCK: u64 = 0x1000;

fn load4(address: u64, insn: u32) -> Record {
    access(Kind::Load, address, 4, insn)
}

fn store4(address: u64, insn: u32) -> Record {
    access(Kind::Store, address, 4, insn)
}

fn switch(tid: u32) -> Vec<Record> {
    let mut records = vec![Record::default(); 6];
    records[0] = Record::control(ControlKind::Switch, u64::from(tid) << 12, 0, u64::from(tid) | 7 << 32);
    records[1].a = 0x8000 + u64::from(tid);
    // The command's: its begin is marked.
    records.extend([
        Record::control(ControlKind::Mark, 1, 0, 0),
        Record::default(),
        Record::default(),
        Record::default(),
    ]);
    records
}

fn allocated(address: u64, bytes: u64) -> Vec<Record> {
    vec![
        Record::control(ControlKind::Heap, HeapOp::Alloc as u64, 0, 0),
        Record { a: address, b: bytes },
        Record::default(),
    ]
}

fn names() -> Symbols {
    let function = |name: &str| Function { name: name.into(), ..Function::default() };
    Symbols {
        modules: vec![String::new()],
        functions: ["", "f", "g", "h"].map(function).to_vec(),
        files: vec![String::new(), "a.c".into()],
        insns: (0..8).map(|insn| (insn / 2, 1, 10 + insn)).collect(),
        ..Symbols::default()
    }
}

/// CPUs 0 and 1, with threads 101 and 102, take turns; blocks are allocated first.
fn take_turns(blocks: &[(u64, u64)], turns: usize, first: &[Record], second: &[Record]) -> ModelRecord {
    take(blocks, &vec![[first.to_vec(), second.to_vec()]; turns])
}

/// CPUs 0 and 1 take turns with these records of each turn.
fn take(blocks: &[(u64, u64)], turns: &[[Vec<Record>; 2]]) -> ModelRecord {
    let m = two_levels(2, 1);
    let o = options(2);
    let mut chunks = vec![(0, 0, switch(101)), (1, 1, switch(102))];
    chunks[0].2.extend(blocks.iter().flat_map(|(address, bytes)| allocated(*address, *bytes)));
    for (turn, [first, second]) in turns.iter().enumerate() {
        chunks.push((0, 2 + 2 * turn as u64, first.clone()));
        chunks.push((1, 3 + 2 * turn as u64, second.clone()));
    }
    let options = Options { cpus: 2, levels: 2, line_bytes: 64, crowds: None, aliasing: None };
    let attribution = Attribution::new(options, Box::new(RecordedData::default()));
    let (totals, attribution) = replay_on(&m, &Policy::default(), &o, &chunks, attribution);
    let side = SideTables { insns: vec![Insn::default(); 8], ..SideTables::default() };
    attribution.into_record(ModelledRun {
        machine: m,
        policy: Policy::default(),
        order: Order::Recorded,
        only_user: false,
        notes: Vec::new(),
        totals,
        curve: None,
        side: &side,
        symbols: &names(),
    })
}

/// Offset, bytes, group, writers and readers of a tenant.
type TenantRow = (u64, u32, u32, Vec<u32>, Vec<u32>);

/// The one line, with its tenants.
fn only_line(record: &ModelRecord) -> (&SharedLineRow, Vec<TenantRow>) {
    let [line] = record.shared_lines.as_slice() else { panic!("{:?}", record.shared_lines) };
    let tenant = |t: &Tenant| (t.offset, t.bytes, t.group, t.writers.clone(), t.readers.clone());
    (line, line.tenants.iter().map(tenant).collect())
}

#[test]
fn counters_of_two_threads_share_falsely() {
    let add = |at: u64, insn| [load4(BLOCK + at, insn), store4(BLOCK + at, insn)];
    let record = take_turns(&[(BLOCK, 64)], 10, &add(0, 2), &add(8, 4));
    let (line, tenants) = only_line(&record);
    // The first miss of each CPU is its first touch of the line. For one miss it is unknown what was written before the
    // line was watched, and two stays are not over.
    assert_eq!((line.true_sharing, line.false_sharing, line.needless), (0, 18, 15));
    assert_eq!(tenants, [(0, 4, 0, vec![101], vec![101]), (8, 4, 1, vec![102], vec![102])]);
    assert_eq!(line.tenants[1].written_at, ["a.c:14 g"]);
    assert_eq!((line.tenants[0].object_address, line.tenants[0].object_bytes), (BLOCK, 64));
    assert_eq!(line.sharing(), LineSharing::False);
    assert_eq!(line.references, 36, "4 of the 40 came before the line was watched");
}

/// Like a mutex: its kind is read first, then its state is taken and given back.
fn lock(at: u64) -> Vec<Record> {
    vec![load4(at + 16, 2), access(Kind::Atomic, at, 4, 3), store4(at + 8, 4), access(Kind::Atomic, at, 4, 5)]
}

#[test]
fn a_lock_alone_on_its_line_is_shared_truly_by_any_byte_looked_at_first() {
    let record = take_turns(&[(BLOCK, 40)], 10, &lock(BLOCK), &lock(BLOCK));
    let (line, tenants) = only_line(&record);
    assert_eq!((line.true_sharing, line.false_sharing, line.needless), (0, 18, 0), "every miss is on the kind");
    let both = || vec![101, 102];
    assert_eq!(tenants, [(0, 4, 0, both(), both()), (8, 4, 1, both(), vec![]), (16, 4, 2, vec![], both())]);
    assert_eq!(line.sharing(), LineSharing::True);
    // The other way round.
    let mut state_first = lock(BLOCK);
    state_first.rotate_left(1);
    let record = take_turns(&[(BLOCK, 40)], 10, &state_first, &state_first);
    let line = only_line(&record).0;
    assert_eq!((line.true_sharing, line.false_sharing, line.needless), (18, 0, 0));
    assert_eq!(line.sharing(), LineSharing::True);
}

#[test]
fn a_lock_and_what_it_protects_are_shared_truly_and_a_counter_beside_it_falsely() {
    let mut protected = lock(BLOCK);
    protected.insert(3, store4(BLOCK + 24, 6));
    let record = take_turns(&[(BLOCK, 40)], 10, &protected, &protected);
    assert_eq!(only_line(&record).0.sharing(), LineSharing::True);

    // One thread takes the lock, the other one only counts.
    let record = take_turns(&[(BLOCK, 40)], 10, &lock(BLOCK), &[load4(BLOCK + 32, 6), store4(BLOCK + 32, 6)]);
    let (line, tenants) = only_line(&record);
    assert_eq!((line.needless, line.sharing()), (15, LineSharing::False));
    assert_eq!(tenants.last(), Some(&(32, 4, 1, vec![102], vec![102])), "all of the lock is one thread's");
}

#[test]
fn a_flag_beside_a_counter_is_shared_falsely_and_read_alone_costs_nothing() {
    let count = [load4(BLOCK + 8, 4), store4(BLOCK + 8, 4)];
    let record = take_turns(&[(BLOCK, 16)], 10, &[load4(BLOCK, 2)], &count);
    let (line, tenants) = only_line(&record);
    assert_eq!((line.false_sharing, line.needless), (9, 7), "the writer upgrades and never misses");
    assert_eq!(tenants, [(0, 4, 0, vec![], vec![101]), (8, 4, 1, vec![102], vec![102])]);
    assert_eq!(line.sharing(), LineSharing::False);
    assert!(take_turns(&[(BLOCK, 16)], 10, &[load4(BLOCK, 2)], &[load4(BLOCK + 8, 4)]).shared_lines.is_empty());
}

#[test]
fn blocks_of_one_line_have_rows_of_their_own_and_rare_users_are_not_named() {
    let add = |at: u64, insn| [load4(at, insn), store4(at, insn)];
    // The first thread looks at the other block once.
    let mut begins = add(BLOCK, 2).to_vec();
    begins.extend(std::iter::repeat_n(add(BLOCK, 2), 9).flatten());
    let m = take_turns(&[(BLOCK, 24), (BLOCK + 32, 24)], 100, &begins, &add(BLOCK + 40, 4));
    let (line, tenants) = only_line(&m);
    assert_eq!(tenants, [(0, 4, 0, vec![101], vec![101]), (8, 4, 1, vec![102], vec![102])]);
    let blocks: Vec<(u64, u64)> = line.tenants.iter().map(|t| (t.object_address, t.object_bytes)).collect();
    assert_eq!(blocks, [(BLOCK, 24), (BLOCK + 32, 24)]);
}

#[test]
fn blocks_name_a_line_that_was_shared_before_their_allocation() {
    let add = |at: u64, insn| vec![load4(BLOCK + at, insn), store4(BLOCK + at, insn)];
    let mut turns = vec![[add(0, 2), add(40, 4)]; 10];
    // Another call allocates, once the line is watched.
    turns[4][1].push(Record::control(ControlKind::Context, 1, 0, 0));
    turns[4][1].extend([(0, 24), (32, 24)].map(|(at, bytes)| allocated(BLOCK + at, bytes)).concat());
    let record = take(&[(BLOCK, 64)], &turns);
    let (line, _) = only_line(&record);
    let blocks: Vec<(u64, u64)> = line.tenants.iter().map(|t| (t.object_address, t.object_bytes)).collect();
    assert_eq!(blocks, [(BLOCK, 24), (BLOCK + 32, 24)]);
}

fn replayed(address: AddressPolicy, order: Order) -> ModelTotals {
    let add = |at: u64| vec![load4(BLOCK + at, 2), store4(BLOCK + at, 2)];
    let chunks: Vec<_> = (0..4000u64).map(|n| ((n % 2) as u32, n, add(n % 2 * 8))).collect();
    let policy = Policy { address, ..Policy::default() };
    replay_on(&two_levels(2, 1), &policy, &ModelOptions { order, ..options(2) }, &chunks, NullObserver).0
}

fn coherence_misses(totals: &ModelTotals) -> u64 {
    let level = &totals.sum().levels[0];
    level.class(MissClass::TrueSharing) + level.class(MissClass::FalseSharing)
}

#[test]
fn tenants_apart_do_not_take_each_others_line_in_either_order() {
    let moved = vec![Moved { from: BLOCK + 8, to: BLOCK + 16, line: 0 }];
    // In the modelled order a CPU that has the line makes all its additions while the other one waits for it.
    for (order, misses) in [(Order::Recorded, 3998), (Order::Modelled, 2)] {
        assert_eq!(coherence_misses(&replayed(AddressPolicy::Recorded, order)), misses);
        let apart = replayed(AddressPolicy::Apart { moved: moved.clone(), spacing: 64 }, order);
        assert_eq!(coherence_misses(&apart), 0);
        assert_eq!(apart.sum().levels[0].misses(), 2, "one first touch each");
        let copies = AddressPolicy::Copies { ranges: vec![(BLOCK, BLOCK + 64)], spacing: 64 };
        assert_eq!(coherence_misses(&replayed(copies, order)), 0);
    }
}

#[test]
fn a_reference_over_two_tenants_touches_both_lines() {
    let m = two_levels(1, 1);
    let moved = vec![Moved { from: BLOCK + 8, to: BLOCK + 16, line: 0 }];
    let policy = Policy { address: AddressPolicy::Apart { moved, spacing: 64 }, ..Policy::default() };
    let wide = access(Kind::Load, BLOCK + 4, 8, 1);
    let t = replay_on(&m, &policy, &options(1), &[(0, 0, vec![wide, wide])], NullObserver).0.sum();
    assert_eq!((t.loads, t.line_accesses, t.levels[0].misses()), (2, 4, 1), "a reference misses once");
    assert_eq!(t.bus.reads(), 2);
}

#[test]
fn lines_closer_than_the_machines_are_refused() {
    let policy = |spacing| Policy {
        address: AddressPolicy::Apart { moved: vec![Moved { from: 0, to: 8, line: 0 }], spacing },
        ..Policy::default()
    };
    let refused = Model::new(&two_levels(1, 1), &policy(32), &options(1), NullObserver).err().unwrap().to_string();
    assert!(refused.contains("has lines of 64"), "{refused}");
    assert!(Model::new(&two_levels(1, 1), &policy(64), &options(1), NullObserver).is_ok());
}

/// References that waited for other CPUs.
struct Waited(u64);

impl Observer for Waited {
    fn control(&mut self, _: u32, _: &Control<'_>) {}
    fn hit(&mut self, _: &Effective) {}
    fn miss(&mut self, _: &Effective, outcome: &Outcome) {
        self.0 += u64::from(outcome.waited_for_others());
    }
    fn instructions(&mut self, _: u32, _: u64) {}
}

#[test]
fn no_more_references_wait_in_the_modelled_order_than_a_count_of_the_trace_allows() {
    let machine = two_levels(2, 1);
    let mut tight = 0;
    for seed in 1..200u64 {
        let mut state = seed;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let lines = 1 + next(12);
        let chunks: Vec<(u32, u64, Vec<Record>)> = (0..40)
            .map(|slice| {
                let kind = |store: bool| if store { Kind::Store } else { Kind::Load };
                let records = (0..next(6)).map(|_| access(kind(next(3) == 0), BLOCK + next(lines) * 64, 8, 1));
                let records = records.collect();
                (next(2) as u32, slice, records)
            })
            .collect();
        let waits = |order| {
            let options = ModelOptions { order, ..options(2) };
            replay_on(&machine, &Policy::default(), &options, &chunks, Waited(0)).1.0
        };
        let mut passing = Passing::new(&machine);
        for (vcpu, slice, records) in &chunks {
            let header =
                ChunkHeader { vcpu: *vcpu, slice: *slice, records: records.len() as u32, ..Default::default() };
            passing.chunk(&header, records);
        }
        let (recorded, modelled) = (waits(Order::Recorded), waits(Order::Modelled));
        assert!(modelled <= recorded + passing.may_wait(), "seed {seed}: {modelled}, {recorded}");
        tight += u64::from(modelled > recorded);
    }
    assert!(tight > 20, "{tight} of the streams wait more often in the modelled order");
}

#[test]
fn an_object_that_is_read_again_has_a_curve_over_sizes_of_caches() {
    const BYTES: u64 = 5 << 20;
    let pass: Vec<Record> = (0..BYTES).step_by(64).map(|at| load4(BYTES + at, 2)).collect();
    let record = take_turns(&[(BYTES, BYTES)], 10, &pass, &[load4(BLOCK, 4)]);
    let curves: Vec<_> = record.objects.iter().filter_map(|row| row.curve.as_ref()).collect();
    let [curve] = curves.as_slice() else { panic!("{curves:?}") };
    assert_eq!(curve.least_dividing(Bytes(1 << 20), 10), Some(Bytes(6 << 20)), "all but the first pass");
    assert_eq!(curve.least_dividing(Bytes(1 << 20), 11), None);
}
