//! Random machines and random streams, small enough that everything collides.

use nearmiss_record::machine::*;
use nearmiss_record::policy::{
    AddressPolicy, Bound, CallSite, Home, HomePolicy, HomeRule, PlacePolicy, Placed, Policy,
};
use nearmiss_record::policy::{Shifted, StorePolicy};
use nearmiss_record::reference::{
    ControlKind, FLAG_CONT, FLAG_FIRST_HIT, FLAG_KERNEL, HeapOp, Kind, MARK_PART, Record,
};
use nearmiss_record::units::{Bytes, InsnId};
use proptest::prelude::*;

const REPLACEMENTS: [Replacement; 4] =
    [Replacement::Lru, Replacement::TreePlru, Replacement::Random, Replacement::Srrip];
const SHARINGS: [Sharing; 5] = [Sharing::Thread, Sharing::Core, Sharing::Cluster, Sharing::Package, Sharing::Node];
/// Packages, cores a package, threads a core, cores a cluster.
const TOPOLOGIES: [(u32, u32, u32, u32); 7] =
    [(1, 1, 1, 0), (2, 1, 1, 0), (1, 1, 2, 0), (2, 2, 1, 0), (1, 4, 1, 2), (2, 1, 2, 0), (2, 2, 2, 1)];

/// Parameters of a level, as small numbers.
type LevelParameters = (usize, u32, usize, usize, usize, usize, bool);

fn cache(level: u8, kind: CacheKind, l: &LevelParameters, line: u64, sharing: Sharing, beyond_page: bool) -> Cache {
    let &(sets, ways, replacement, inclusion, index, _, _) = l;
    let replacement = REPLACEMENTS[replacement];
    let ways = if replacement == Replacement::TreePlru { 1 << (ways % 3) } else { ways };
    let sets = if beyond_page { 8192 / line } else { [1, 2, 4, 3][sets] };
    Cache {
        level,
        kind,
        size: Bytes(sets * u64::from(ways) * line),
        ways,
        line: Bytes(line),
        shared_by: sharing,
        replacement,
        seed: u64::from(ways),
        inclusion: [Inclusion::None, Inclusion::Inclusive, Inclusion::Exclusive][inclusion],
        index: [Index::Physical, Index::Virtual, Index::Hashed][index],
        hashed_bits: u32::from(ways % 2 == 1),
        others_lines: if replacement == Replacement::Lru && level > 1 { [0, 2_000, 20_000, 0][l.0] } else { 0 },
    }
}

/// Any machine the model takes, with the number of its CPUs.
pub(super) fn machines() -> impl Strategy<Value = Machine> {
    let level = (0..4usize, 1..4u32, 0..4usize, 0..3usize, 0..3usize, 0..5usize, any::<bool>());
    let levels = prop::collection::vec(level, 2..5);
    (0..TOPOLOGIES.len(), levels, 0..3usize, 0..4u32, any::<bool>(), 1..3u32, 0..3usize).prop_map(
        |(topology, levels, protocol, overlap, two_nodes, channels, placement)| {
            let (packages, cores_per_package, threads_per_core, cores_per_cluster) = TOPOLOGIES[topology];
            let mut caches = Vec::new();
            let mut line = 32;
            let mut sharing = 0;
            for (i, l) in levels.iter().enumerate() {
                let level = i as u8 + 1;
                let beyond = i == 0 && l.6;
                if i == 0 {
                    sharing = l.5.min(1);
                    caches.push(cache(1, CacheKind::Data, l, line, SHARINGS[sharing], beyond));
                    caches.push(cache(1, CacheKind::Instruction, &levels[1], line, SHARINGS[l.5.min(1)], false));
                    continue;
                }
                sharing = sharing.max(l.5);
                let grown = if l.6 && line < 128 { line * 2 } else { line };
                let mut unified = cache(level, CacheKind::Unified, l, grown, SHARINGS[sharing], false);
                if unified.inclusion == Inclusion::Exclusive {
                    unified.line = Bytes(line);
                    unified.size = Bytes(unified.size.0 / grown * line);
                } else {
                    line = grown;
                }
                caches.push(unified);
            }
            Machine {
                name: "random".into(),
                title: String::new(),
                isa: "x86_64".into(),
                clock_mhz: 1000,
                cycles_per_instruction: 0.75,
                topology: Topology { packages, cores_per_package, threads_per_core, cores_per_cluster },
                memory: Memory {
                    nodes: if two_nodes && packages == 2 { 2 } else { 1 },
                    page_size: Bytes(4096),
                    placement: [Placement::Random, Placement::AsRecorded, Placement::Sequential][placement],
                    placement_seed: 3,
                    first_touch_cycles: None,
                    large_first_touch_cycles: None,
                },
                latency: Latency {
                    level_cycles: [1, 11, 23, 47][..levels.len()].to_vec(),
                    core_clean_cycles: 61,
                    core_modified_cycles: 67,
                    remote_cache_cycles: 211,
                    memory_local_cycles: 101,
                    memory_remote_cycles: 173,
                },
                caches,
                coherence: [Protocol::Msi, Protocol::Mesi, Protocol::Moesi][protocol],
                tlb: None,
                core: None,
                streams: None,
                store_aliasing: None,
                overlap: f64::from(overlap) / 4.0,
                bus: Bus {
                    transaction_cycles: 9,
                    shared_by: if two_nodes { BusSharing::Node } else { BusSharing::Machine },
                    channels,
                },
                write_combining_buffers: 2,
                noise: None,
                sources: Default::default(),
            }
        },
    )
}

/// Any policy that keeps references on their recorded CPUs.
pub(super) fn policies() -> impl Strategy<Value = Policy> {
    (0..4usize, 0..5usize, 0..3usize).prop_map(|(address, home, store)| Policy {
        address: match address {
            0 => AddressPolicy::Color {
                ranges: vec![(0, 3 * 4096), (9 * 4096, 10 * 4096)],
                align: 2048,
                colors: 3,
                line: 32,
            },
            1 => AddressPolicy::Shift {
                objects: vec![
                    Shifted { from: 4096, to: 3 * 4096, by: 96 },
                    Shifted { from: 5 * 4096 + 64, to: 7 * 4096, by: -64 },
                ],
            },
            _ => AddressPolicy::Recorded,
        },
        home: homes(home),
        store: match store {
            0 => StorePolicy::NonTemporal { sites: sites() },
            1 => StorePolicy::Plain { sites: sites() },
            _ => StorePolicy::Recorded,
        },
        ..Policy::default()
    })
}

fn sites() -> Vec<CallSite> {
    [(0, 3), (0, 70), (1, 3), (2, 4)].map(|(context, insn)| CallSite { context, insn }).to_vec()
}

fn homes(number: usize) -> HomePolicy {
    let rule = |pages, task, home| HomeRule { pages, task, home };
    match number {
        0 => HomePolicy::Recorded,
        1 => HomePolicy::everywhere(Home::FirstTouch),
        2 => HomePolicy::everywhere(Home::Interleave),
        // Pages are mapped twice, and tasks change: the first in the list often fits last.
        3 => HomePolicy::Rules(vec![
            rule(Some((9 * 4096, 11 * 4096)), None, Home::Node(0)),
            rule(None, Some(5), Home::FirstTouch),
        ]),
        _ => HomePolicy::Rules(vec![
            rule(None, Some(6), Home::Interleave),
            rule(None, None, Home::Pool),
            rule(None, None, Home::FirstTouch),
        ]),
    }
}

/// Tasks on other CPUs than they were recorded on, all of them or not, window by window or in the recorded order.
pub(super) fn places(cpus: u32) -> impl Strategy<Value = PlacePolicy> {
    (prop::collection::vec(0..cpus, 1..4), prop_oneof![Just(0), 1..40u64]).prop_map(|(on, window_instructions)| {
        let on = on.iter().zip(5..);
        match window_instructions {
            // Some stay where they were.
            0 => PlacePolicy::InOrder {
                tasks: on.map(|(&cpu, pid)| Bound { pid, cpu: Some(cpu).filter(|_| pid < 7) }).collect(),
            },
            _ => PlacePolicy::Tasks { tasks: on.map(|(&cpu, pid)| Placed { pid, cpu }).collect(), window_instructions },
        }
    })
}

/// One step of a stream; the last field is the number of its kind.
type Op = (usize, u64, u64, u32, u32, u8, u8);

fn records(op: &Op) -> Vec<Record> {
    let &(page, line, byte, size, insn, instructions, what) = op;
    let physical = [0, 1, 2, 300][page];
    let offset = (line * 32 + byte) % 4000;
    // Some pages are mapped twice: the same line under two virtual indexes.
    let vaddr = (physical + if insn % 5 == 0 { 9 } else { 0 }) << 12 | offset;
    let make = |kind, size, flags| Record::reference(kind, vaddr, size, flags, InsnId(insn), physical, instructions);
    let kernel = if insn % 7 == 0 { FLAG_KERNEL } else { 0 };
    match what {
        0..40 => vec![make(Kind::Load, size, kernel)],
        40..65 => vec![make(Kind::Store, size, kernel)],
        65..70 => vec![make(Kind::Atomic, size.min(8), kernel)],
        70..78 => vec![make(Kind::NtStore, size, kernel)],
        78..86 => vec![make(Kind::Fetch, size.min(16), kernel)],
        86..92 => {
            let second =
                Record::reference(Kind::Load, vaddr + u64::from(size), size, FLAG_CONT, InsnId(insn), physical, 1);
            vec![make(Kind::Load, size, 0), second]
        }
        92..94 => vec![make(Kind::Store, size, FLAG_CONT | FLAG_FIRST_HIT)],
        94..96 => vec![Record::control(ControlKind::Fence, 0, 0, 0)],
        96 => vec![Record::control(ControlKind::Halt, 0, 0, 0)],
        97 => {
            let mut switch = vec![Record::default(); 6];
            let pid = u64::from(5 + insn % 3);
            switch[0] = Record::control(ControlKind::Switch, 64, 0, pid | (pid % 2) << 32);
            switch[1].a = u64::from(insn) % 3;
            switch
        }
        98..100 => vec![Record::control(ControlKind::Share, (physical << 12 | offset) >> 6, 0, u64::MAX >> size)],
        100..102 => vec![Record::control(ControlKind::Context, u64::from(insn % 3), 0, 0)],
        102..104 => {
            let mut pause = vec![Record::control(ControlKind::Mark, MARK_PART, 0, 0)];
            pause.resize(1 + pause[0].payload_records().unwrap_or(0), Record::default());
            pause
        }
        _ => {
            let op = if instructions < 4 { HeapOp::Alloc } else { HeapOp::Free };
            let place = Record { a: vaddr, b: u64::from(size) * 100 };
            vec![Record::control(ControlKind::Heap, op as u64, 0, 0), place, Record::default()]
        }
    }
}

/// A stream: each chunk's vCPU (modulo those there are), slice, records and instructions counted ahead.
pub(super) fn streams() -> impl Strategy<Value = Vec<(u32, bool, Vec<Record>, u64)>> {
    let op = (0..4usize, 0..12u64, 0..32u64, 1..33u32, 0..80u32, 0..6u8, 0..105u8);
    let chunk = (0..8u32, any::<bool>(), prop::collection::vec(op, 0..40), 0..20u64);
    prop::collection::vec(chunk, 1..12).prop_map(|chunks| {
        let flat = |ops: &Vec<Op>| ops.iter().flat_map(records).collect();
        chunks.iter().map(|(cpu, same, ops, ahead)| (*cpu, *same, flat(ops), *ahead)).collect()
    })
}

/// A pause, and then as many references to so many lines as it takes to estimate which lines the caches had.
pub(super) fn estimated(lines: u64) -> Vec<Record> {
    let mut records = vec![Record::control(ControlKind::Mark, MARK_PART, 0, 0)];
    records.resize(1 + records[0].payload_records().unwrap_or(0), Record::default());
    let load = |at: u64| {
        Record::reference(Kind::Load, (1 << 20) | (at % lines * 32), 8, 0, InsnId(1), 256 + at % lines / 128, 1)
    };
    records.extend((0..1200).map(load));
    records
}
