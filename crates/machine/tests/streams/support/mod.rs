//! Small machines and small streams.
#![allow(clippy::unwrap_used)]

pub mod filtered;
pub mod tap_filter;

use nearmiss_machine::model::{Model, ModelOptions, ModelTotals};
use nearmiss_machine::observer::{NullObserver, Observer};
use nearmiss_record::abi::ChunkHeader;
use nearmiss_record::machine::*;
use nearmiss_record::policy::{Order, Policy};
use nearmiss_record::reference::{ControlKind, Kind, Record};
use nearmiss_record::run::Filter;
use nearmiss_record::units::{Bytes, InsnId};

pub fn cache(level: u8, kind: CacheKind, sets: u64, ways: u32, line: u64, shared_by: Sharing) -> Cache {
    Cache {
        level,
        kind,
        size: Bytes(sets * u64::from(ways) * line),
        ways,
        line: Bytes(line),
        shared_by,
        replacement: Replacement::Lru,
        seed: 0,
        inclusion: Inclusion::None,
        index: Index::Physical,
        hashed_bits: 0,
        others_lines: 0,
    }
}

/// Pages lie as recorded; every latency is its own power of ten, or nearly.
pub fn machine(packages: u32, threads: u32, caches: Vec<Cache>) -> Machine {
    let levels = caches.iter().map(|c| c.level).max().unwrap();
    Machine {
        name: "test".into(),
        title: String::new(),
        isa: "x86_64".into(),
        clock_mhz: 1000,
        cycles_per_instruction: 1.0,
        topology: Topology { packages, cores_per_package: 1, threads_per_core: threads, cores_per_cluster: 0 },
        memory: Memory {
            nodes: 1,
            page_size: Bytes(4096),
            placement: Placement::AsRecorded,
            placement_seed: 0,
            first_touch_cycles: None,
            large_first_touch_cycles: None,
        },
        caches,
        coherence: Protocol::Mesi,
        latency: Latency {
            level_cycles: [1, 10, 30, 60][..usize::from(levels)].to_vec(),
            core_clean_cycles: 40,
            core_modified_cycles: 50,
            remote_cache_cycles: 500,
            memory_local_cycles: 100,
            memory_remote_cycles: 200,
        },
        tlb: None,
        core: None,
        streams: None,
        store_aliasing: None,
        overlap: 0.0,
        bus: Bus { transaction_cycles: 1, shared_by: BusSharing::Machine, channels: 1 },
        write_combining_buffers: 2,
        noise: None,
        sources: Default::default(),
    }
}

/// Two levels: data and instruction caches of 4 sets × 2 ways, 16 sets × 4 ways behind, private to a core.
pub fn two_levels(packages: u32, threads: u32) -> Machine {
    let l2 = cache(2, CacheKind::Unified, 16, 4, 64, Sharing::Core);
    let (l1d, l1i) =
        (cache(1, CacheKind::Data, 4, 2, 64, Sharing::Core), cache(1, CacheKind::Instruction, 4, 2, 64, Sharing::Core));
    machine(packages, threads, vec![l1d, l1i, l2])
}

pub fn options(cpus: u32) -> ModelOptions {
    let filter = Filter { line_log2: 0, fetches: true, contexts: true, heap: true, ..Filter::default() };
    ModelOptions {
        order: Order::Recorded,
        only_user: false,
        coherence: true,
        filter,
        node_bytes: Vec::new(),
        cpus,
        starts_late: false,
        reasons: true,
        code: None,
        even_slices: false,
    }
}

pub fn access(kind: Kind, address: u64, size: u32, insn: u32) -> Record {
    Record::reference(kind, address, size, 0, InsnId(insn), address >> 12, 0)
}

pub fn load(address: u64) -> Record {
    access(Kind::Load, address, 8, 1)
}

pub fn store(address: u64) -> Record {
    access(Kind::Store, address, 8, 2)
}

pub fn fence() -> Record {
    Record::control(ControlKind::Fence, 0, 0, 0)
}

/// Chunks: each `(vcpu, slice, records)`.
pub fn replay_on<O: Observer>(
    machine: &Machine,
    policy: &Policy,
    options: &ModelOptions,
    chunks: &[(u32, u64, Vec<Record>)],
    observer: O,
) -> (ModelTotals, O) {
    let mut model = Model::new(machine, policy, options, observer).unwrap();
    for (seq, (vcpu, slice, records)) in chunks.iter().enumerate() {
        let header = ChunkHeader {
            seq: seq as u64,
            slice: *slice,
            vcpu: *vcpu,
            records: records.len() as u32,
            ..ChunkHeader::default()
        };
        model.chunk(&header, records).unwrap();
    }
    model.finish().unwrap()
}

/// In recorded order: runs of records by CPU.
pub fn replay(machine: &Machine, cpus: u32, runs: &[(u32, &[Record])]) -> ModelTotals {
    let chunks: Vec<_> = runs.iter().enumerate().map(|(i, (cpu, r))| (*cpu, i as u64, r.to_vec())).collect();
    replay_on(machine, &Policy::default(), &options(cpus), &chunks, NullObserver).0
}
