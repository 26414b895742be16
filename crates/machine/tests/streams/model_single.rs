//! One behaviour a test, with the numbers worked out by hand.
#![allow(clippy::unwrap_used)]

use crate::support::*;
use nearmiss_machine::observer::NullObserver;
use nearmiss_record::machine::*;
use nearmiss_record::model::MissClass::*;
use nearmiss_record::policy::{AddressPolicy, CallSite, Order, Policy, Shifted, StorePolicy};
use nearmiss_record::reference::*;
use nearmiss_record::units::{Bytes, InsnId};

const SET_STRIDE: u64 = 4 * 64;

#[test]
fn a_loop_over_more_lines_of_one_set_than_ways_is_all_conflict() {
    let m = two_levels(1, 1);
    let walk: Vec<Record> = (0..30).map(|i| load(i % 3 * SET_STRIDE)).collect();
    let t = replay(&m, 1, &[(0, &walk)]);
    let l1 = t.cpus[0].levels[0].load_misses;
    assert_eq!((l1[Compulsory as usize], l1[Conflict as usize], l1[Capacity as usize]), (3, 27, 0));
    assert_eq!(t.cpus[0].levels[1].load_misses, [3, 0, 0, 0, 0, 0], "three lines fit the second level");
    assert_eq!(t.cpus[0].stall_cycles, 3 * 100 + 27 * 10);
    assert_eq!(t.sets[0].misses, [30, 0, 0, 0]);
    assert_eq!(t.sets[0].conflict_misses, [27, 0, 0, 0]);
    assert_eq!(t.sets[0].lines, [3, 0, 0, 0]);
    assert_eq!(t.cpus[0].bus.read_local_none, 3);
}

#[test]
fn a_loop_over_one_line_more_than_the_cache_is_all_capacity() {
    let m = two_levels(1, 1);
    let walk: Vec<Record> = (0..9 * 12).map(|i| load(i % 12 * 64)).collect();
    let t = replay(&m, 1, &[(0, &walk)]);
    assert_eq!(t.cpus[0].levels[0].load_misses, [12, 0, 0, 0, 0, 8 * 12]);
}

#[test]
fn lines_that_come_up_behind_a_pause_were_in_the_outermost_cache() {
    let m = two_levels(1, 1);
    let walk = |lines: std::ops::Range<u64>| lines.map(|line| load(line * 64));
    let mut records: Vec<Record> = walk(0..4).collect();
    records.push(Record::control(ControlKind::Mark, MARK_PART, 0, 0));
    records.resize(records.len() + records[4].payload_records().unwrap(), Record::default());
    records.extend(walk(2..10));
    let t = replay(&m, 1, &[(0, &records)]);
    assert_eq!(t.cpus[0].levels[0].load_misses[Compulsory as usize], 10);
    assert_eq!(t.cpus[0].levels[1].load_misses, [4, 0, 0, 0, 0, 0], "those of the first part");
    assert_eq!(t.cpus[0].stall_cycles, 4 * 100 + 6 * 10);
    assert_eq!((t.cpus[0].bus.read_local_none, t.cpus[0].first_touch_cycles), (4, 4 * 100));
    assert_eq!(t.sets[1].lines.iter().sum::<u64>(), 4, "what was there is not new");
}

#[test]
fn one_reference_over_two_lines_is_one_miss_and_two_line_accesses() {
    let m = two_levels(1, 1);
    let wide = access(Kind::Load, 60, 8, 7);
    let t = replay(&m, 1, &[(0, &[wide, wide])]);
    let cpu = &t.cpus[0];
    assert_eq!((cpu.loads, cpu.line_accesses), (2, 4));
    assert_eq!(cpu.levels[0].load_misses, [1, 0, 0, 0, 0, 0]);
    assert_eq!(t.caches[0].line_misses, [2, 0, 0, 0, 0, 0]);
    assert_eq!((t.caches[0].fills, t.caches[0].hits), (2, 2));
    assert_eq!(cpu.bus.read_local_none, 2, "both halves come over the bus");
}

#[test]
fn halves_that_the_filter_split_are_joined_in_a_longer_line() {
    let m = two_levels(1, 1);
    let mut o = options(1);
    o.filter.line_log2 = 5;
    let half = |address, size, flags| Record::reference(Kind::Load, address, size, flags, InsnId(1), 0, 1);
    let records = vec![half(28, 4, 0), half(32, 4, FLAG_CONT), half(60, 4, 0), half(64, 4, FLAG_CONT)];
    let t = replay_on(&m, &Policy::default(), &o, &[(0, 0, records)], NullObserver).0;
    assert_eq!((t.cpus[0].loads, t.cpus[0].line_accesses, t.cpus[0].instructions), (2, 3, 4));
    assert_eq!(t.cpus[0].levels[0].load_misses, [2, 0, 0, 0, 0, 0], "the second half of the second is one of its own");
}

#[test]
fn the_bytes_separate_true_sharing_from_false() {
    let m = two_levels(2, 1);
    let t = replay(
        &m,
        2,
        &[(0, &[load(0), load(32)]), (1, &[store(0)]), (0, &[load(32)]), (1, &[store(0)]), (0, &[load(0)])],
    );
    let (l1, bus) = (&t.cpus[0].levels[0].load_misses, &t.cpus[0].bus);
    assert_eq!(l1[FalseSharing as usize], 1);
    assert_eq!(l1[TrueSharing as usize], 1);
    assert_eq!((bus.read_local_none, bus.read_local_modified), (1, 2));
    assert_eq!(bus.write_backs, 2, "MESI: a modified line that is read is written back");
    assert_eq!(
        (t.cpus[1].bus.read_local_shared, t.cpus[1].bus.invalidations),
        (1, 1),
        "read for ownership, then an upgrade"
    );
    assert_eq!((t.shared_lines.len(), t.shared_lines[0].true_sharing, t.shared_lines[0].false_sharing), (1, 1, 1));
}

#[test]
fn under_moesi_the_owner_answers_without_a_write_back() {
    let mut m = two_levels(2, 1);
    m.coherence = Protocol::Moesi;
    let t = replay(&m, 2, &[(0, &[store(0)]), (1, &[load(0)]), (0, &[store(0)])]);
    assert_eq!(t.cpus[1].bus.read_local_modified, 1);
    assert_eq!(t.cpus[1].stall_cycles, 50);
    assert_eq!((t.cpus[0].bus.write_backs, t.cpus[1].bus.write_backs), (0, 0));
    assert_eq!(t.cpus[0].bus.invalidations, 1);
}

#[test]
fn msi_requests_permission_before_the_first_write_of_a_line_nobody_else_has() {
    let mut m = two_levels(1, 1);
    m.coherence = Protocol::Msi;
    let t = replay(&m, 1, &[(0, &[load(0), store(0), store(8)])]);
    assert_eq!(t.cpus[0].bus.invalidations, 1);
    m.coherence = Protocol::Mesi;
    assert_eq!(replay(&m, 1, &[(0, &[load(0), store(0)])]).cpus[0].bus.invalidations, 0);
}

#[test]
fn an_inclusive_outer_cache_takes_lines_out_of_the_inner() {
    let mut m = two_levels(1, 1);
    m.caches[2] = Cache { inclusion: Inclusion::Inclusive, ..cache(2, CacheKind::Unified, 1, 2, 64, Sharing::Core) };
    // Sets 0, 1, 2 of the first level; two lines fit the second.
    let t = replay(&m, 1, &[(0, &[load(0), load(64), load(128), load(0)])]);
    assert_eq!(t.cpus[0].levels[0].load_misses, [3, 0, 0, 1, 0, 0]);
    assert_eq!(t.cpus[0].levels[1].load_misses, [3, 0, 0, 0, 0, 1]);
}

#[test]
fn an_exclusive_cache_holds_what_the_inner_gave_up() {
    let mut m = two_levels(1, 1);
    m.caches[0] = cache(1, CacheKind::Data, 1, 1, 64, Sharing::Core);
    m.caches[2] = Cache { inclusion: Inclusion::Exclusive, ..cache(2, CacheKind::Unified, 1, 1, 64, Sharing::Core) };
    // Two lines fit, one a level.
    let t = replay(&m, 1, &[(0, &[store(0), load(64), load(0), load(64), load(128), load(64), load(0)])]);
    let l2 = &t.caches[2];
    assert_eq!((l2.accesses, l2.hits), (7, 3));
    assert_eq!(t.cpus[0].bus.write_backs, 1, "line 0 is pushed out modified by the third line");
    assert_eq!(t.cpus[0].bus.reads(), 4);
}

#[test]
fn others_push_out_what_waits_while_they_fill_the_set() {
    let mut m = two_levels(1, 1);
    m.caches[0] = cache(1, CacheKind::Data, 1, 1, 64, Sharing::Core);
    // A line of theirs every 1020 cycles: the first set has 1/510 of the mean rate.
    m.caches[2] = Cache { others_lines: 500_000, ..cache(2, CacheKind::Unified, 1, 4, 64, Sharing::Core) };
    let misses = |between: usize| {
        // Each of the accesses between takes 10 cycles, and two other lines are used later than the first.
        let walk = (0..between).map(|n| load(64 + n as u64 % 2 * 64));
        let walk: Vec<Record> = std::iter::once(store(0)).chain(walk).chain([load(0)]).collect();
        let t = replay(&m, 1, &[(0, &walk)]);
        (t.cpus[0].levels[1].load_misses, t.cpus[0].bus.write_backs)
    };
    assert_eq!(misses(150), ([2, 0, 0, 0, 0, 0], 0), "one line of theirs has come");
    assert_eq!(misses(250), ([2, 0, 0, 0, 0, 1], 1), "two have, and the modified line went back");
    m.caches[2].others_lines = 0;
    assert_eq!(replay(&m, 1, &[(0, &[store(0), load(64), load(0)])]).cpus[0].levels[1].load_misses, [1, 0, 0, 0, 0, 0]);
}

#[test]
fn non_temporal_stores_go_by_lines_or_by_pieces() {
    let m = two_levels(1, 1);
    let nt = |address, size| access(Kind::NtStore, address, size, 9);
    let whole: Vec<Record> = (0..4).map(|i| nt(i * 16, 16)).collect();
    assert_eq!(replay(&m, 1, &[(0, &whole)]).cpus[0].bus.nt_full, 1);
    // 4 bytes at 0 and 16 bytes at 20: pieces 0, 2, 3, 4.
    let t = replay(&m, 1, &[(0, &[nt(0, 4), nt(20, 16), fence()])]);
    assert_eq!((t.cpus[0].bus.nt_full, t.cpus[0].bus.nt_partial), (0, 4));
    // Two buffers: a third line pushes the first out; an atomic drains the rest.
    let t = replay(&m, 1, &[(0, &[nt(0, 8), nt(64, 8), nt(128, 8)])]);
    assert_eq!(t.cpus[0].bus.nt_partial, 3, "one for lack of a buffer, two at the end");
    // A modified copy is written back first, and is gone after.
    let t = replay(&m, 1, &[(0, &[store(0), nt(0, 8), load(0)])]);
    assert_eq!((t.cpus[0].bus.write_backs, t.cpus[0].bus.reads()), (1, 2));
    assert_eq!((t.cpus[0].stores, t.cpus[0].nt_stores), (2, 1));
}

#[test]
fn a_policy_sends_stores_around_the_caches() {
    let m = two_levels(1, 1);
    let p = Policy {
        store: StorePolicy::NonTemporal { sites: vec![CallSite { context: 0, insn: 2 }] },
        ..Policy::default()
    };
    let chunk: Vec<Record> = (0..8).map(|i| store(i * 8)).collect();
    let t = replay_on(&m, &p, &options(1), &[(0, 0, chunk)], NullObserver).0;
    assert_eq!((t.cpus[0].nt_stores, t.cpus[0].bus.nt_full, t.cpus[0].levels[0].misses()), (8, 1, 0));
}

#[test]
fn colors_spread_aligned_objects_over_sets() {
    let m = two_levels(1, 1);
    let walk: Vec<Record> = (0..80).map(|i| load(i % 8 * 4096)).collect();
    let plain = replay(&m, 1, &[(0, &walk)]);
    assert_eq!(plain.cpus[0].levels[0].load_misses, [8, 0, 0, 0, 72, 0]);
    let address = AddressPolicy::Color { ranges: vec![(0, 8 * 4096)], align: 4096, colors: 4, line: 64 };
    let p = Policy { address, ..Policy::default() };
    let t = replay_on(&m, &p, &options(1), &[(0, 0, walk)], NullObserver).0;
    assert_eq!(t.cpus[0].levels[0].load_misses, [8, 0, 0, 0, 0, 0], "two a set");
}

#[test]
fn objects_move_as_a_whole_each_its_own_way() {
    let m = two_levels(1, 1);
    let walk: Vec<Record> = (0..80).map(|i| load(i % 4 * 4096 + 1024)).collect();
    assert_eq!(replay(&m, 1, &[(0, &walk)]).cpus[0].levels[0].load_misses, [4, 0, 0, 0, 76, 0]);
    let shifted = |page: u64, by| Shifted { from: page * 4096, to: (page + 1) * 4096, by };
    let policy = |objects| Policy { address: AddressPolicy::Shift { objects }, ..Policy::default() };
    let moved = policy(vec![shifted(3, -64), shifted(1, 64), shifted(0, 0)]);
    let t = replay_on(&m, &moved, &options(1), &[(0, 0, walk)], NullObserver).0;
    assert_eq!(t.cpus[0].levels[0].load_misses, [4, 0, 0, 0, 0, 0], "two, one, none, one a set");
    assert_eq!(t.sets[0].lines, [2, 1, 0, 1]);

    let overlapping = policy(vec![shifted(1, 64), Shifted { from: 8191, to: 9000, by: 0 }]);
    let refused = nearmiss_machine::model::Model::new(&m, &overlapping, &options(1), NullObserver).err().unwrap();
    assert!(refused.to_string().contains("overlap at 0x1fff"), "{refused}");
}

#[test]
fn a_hash_of_some_bits_spreads_one_page_offset_over_as_many_sets() {
    let mut m = two_levels(1, 1);
    let l2 = m.caches.iter_mut().find(|c| c.level == 2).unwrap();
    (l2.size, l2.ways, l2.index) = (Bytes(64 * 2 * 64), 2, Index::Hashed);
    let reached = |m: &Machine| {
        let walk: Vec<Record> = (0..64).map(|i| load(i * 4096)).collect();
        let t = replay(m, 1, &[(0, &walk)]);
        let l2 = t.sets.iter().find(|s| s.cache == "L2").unwrap();
        assert_eq!(l2.lines.len(), 64);
        l2.lines.iter().enumerate().filter(|(_, n)| **n > 0).map(|(set, _)| set).collect::<Vec<_>>()
    };
    assert_eq!(reached(&m).len(), 64, "all bits");
    m.caches.iter_mut().find(|c| c.level == 2).unwrap().hashed_bits = 3;
    assert_eq!(reached(&m), [0, 8, 16, 24, 32, 40, 48, 56], "the lowest three bits stay plain");
}

#[test]
fn pollution_blames_the_evictor_that_nobody_reused() {
    let mut m = two_levels(1, 1);
    m.caches[0] = cache(1, CacheKind::Data, 1, 2, 64, Sharing::Core);
    let a = |address, insn| access(Kind::Load, address, 8, insn);
    // A, B; stream S (insn 7) evicts A; A misses (insn 5), evicts B; B misses (insn 6) and evicts S, never reused.
    let t = replay(&m, 1, &[(0, &[a(0, 5), a(64, 6), a(128, 7), a(0, 5), a(64, 6)])]);
    let l1: Vec<_> =
        t.pollution.iter().filter(|p| p.cache == "L1d").map(|p| (p.polluter.insn, p.victim.insn, p.misses)).collect();
    assert_eq!(l1, [(5, 6, 1), (7, 5, 1)], "A, too, was not reused before the end");
}

#[test]
fn pollution_blames_the_caller_of_the_copy() {
    let mut m = two_levels(1, 1);
    m.caches[0] = cache(1, CacheKind::Data, 1, 2, 64, Sharing::Core);
    let context = |number| Record::control(ControlKind::Context, number, 0, 0);
    let a = |address, insn| access(Kind::Load, address, 8, insn);
    // Instruction 7 is the same copy for two callers: that of context 4 evicts what context 3 needs, that of 5 nothing.
    let copied = [context(4), a(128, 7), context(3), a(0, 5), context(5), a(64, 7)];
    let t = replay(&m, 1, &[(0, &[&[context(3), a(0, 5), a(64, 6)][..], &copied].concat())]);
    let site = |context, insn| CallSite { context, insn };
    let l1: Vec<_> =
        t.pollution.iter().filter(|p| p.cache == "L1d").map(|p| (p.polluter, p.victim, p.misses)).collect();
    assert_eq!(l1, [(site(3, 5), site(5, 7), 1), (site(4, 7), site(3, 5), 1)]);
}

#[test]
fn hardware_threads_share_their_cores_caches() {
    let m = two_levels(1, 2);
    let t = replay(&m, 2, &[(0, &[store(0)]), (1, &[load(0), store(0)]), (0, &[load(0)])]);
    assert_eq!(t.cpus[1].levels[0].misses(), 0);
    assert_eq!(t.cpus[0].levels[0].misses(), 1);
    assert_eq!(t.sum().bus.transactions(), 1);
}

#[test]
fn homes_follow_the_memory_of_the_node() {
    let mut m = two_levels(2, 1);
    m.memory.nodes = 2;
    let mut o = options(2);
    o.node_bytes = vec![1 << 20, 1 << 20];
    let chunk = vec![load(0), load((1 << 20) + 64)];
    let t = replay_on(&m, &Policy::default(), &o, &[(1, 0, chunk)], NullObserver).0;
    assert_eq!((t.cpus[1].bus.read_remote, t.cpus[1].bus.read_local_none), (1, 1));
    assert_eq!(t.cpus[1].stall_cycles, 300);
    assert_eq!((t.nodes[0].read_remote, t.nodes[1].read_local_none), (1, 1));
}

#[test]
fn the_modelled_order_interleaves_what_the_recorder_ran_in_turn() {
    let m = two_levels(2, 1);
    let ping =
        |address| (0..100).map(|_| Record::reference(Kind::Store, address, 8, 0, InsnId(1), 0, 1)).collect::<Vec<_>>();
    let chunks = [(0, 0, ping(0)), (1, 1, ping(8)), (0, 2, ping(0)), (1, 3, ping(8))];
    let coherence = |order| {
        let o = nearmiss_machine::model::ModelOptions { order, ..options(2) };
        let t = replay_on(&m, &Policy::default(), &o, &chunks, NullObserver).0.sum();
        t.levels[0].class(FalseSharing)
    };
    assert_eq!(coherence(Order::Recorded), 2, "once a change of slice, the first ones compulsory");
    assert!(coherence(Order::Modelled) > 50, "{}", coherence(Order::Modelled));
}

#[test]
fn a_cpu_that_was_woken_starts_where_its_waker_stood() {
    let m = two_levels(2, 1);
    let ping =
        |address| (0..100).map(|_| Record::reference(Kind::Store, address, 8, 0, InsnId(1), 0, 1)).collect::<Vec<_>>();
    let o = nearmiss_machine::model::ModelOptions { order: Order::Modelled, ..options(2) };
    let false_sharing = |first: Vec<Record>| {
        let chunks = [(0, 0, ping(0)), (1, 1, first), (0, 2, ping(0)), (1, 3, ping(8))];
        replay_on(&m, &Policy::default(), &o, &chunks, NullObserver).0.sum().levels[0].class(FalseSharing)
    };
    let halt = Record::control(ControlKind::Halt, 0, 0, 0);
    assert_eq!(false_sharing(vec![halt]), 0, "all of the waker's slice comes first");
    assert!(false_sharing(vec![load(1 << 13)]) > 50);
}

#[test]
fn damaged_streams_are_errors() {
    let m = two_levels(1, 1);
    let mut model = nearmiss_machine::model::Model::new(&m, &Policy::default(), &options(1), NullObserver).unwrap();
    let header = nearmiss_record::abi::ChunkHeader { records: 1, ..Default::default() };
    let bad = Record { a: 9 << 48, b: 0 };
    assert!(model.chunk(&header, &[bad]).unwrap_err().to_string().starts_with("chunk 0, record 0: no kind"));
    let switch = Record::control(ControlKind::Switch, 0, 0, 0);
    let next = nearmiss_record::abi::ChunkHeader { seq: 1, records: 1, ..Default::default() };
    assert!(model.chunk(&next, &[switch]).unwrap_err().to_string().contains("beyond its chunk"));
    assert!(model.chunk(&header, &[bad]).unwrap_err().to_string().contains("chunk 2 was expected"));
}
