//! The tap's filter, in software, must not change what the first level misses on machines that it is exact for.
#![allow(clippy::unwrap_used)]

mod support;

use nearmiss_machine::describe::filter_for;
use nearmiss_machine::model::{ModelOptions, ModelTotals};
use nearmiss_machine::observer::Deaf;
use nearmiss_record::machine::*;
use nearmiss_record::policy::Policy;
use nearmiss_record::reference::*;
use nearmiss_record::run::Filter;
use nearmiss_record::units::InsnId;
use proptest::prelude::*;
use std::collections::BTreeMap;
use support::*;

/// What the plugin keeps of one vCPU: by set (those of fetches apart), the line, and whether it was read and written.
#[derive(Default)]
struct Memory(BTreeMap<(bool, u64), (u64, bool, bool)>);

/// What the plugin knows of a line: who had it alone, what it wrote, and whether it is shared by now.
#[derive(Clone, Copy, Default)]
struct Sharers {
    cpus: u8,
    written_by: u8,
    mask: u64,
}

struct Plugin {
    filter: Filter,
    memories: Vec<Memory>,
    lines: BTreeMap<u64, Sharers>,
    last: u32,
}

impl Plugin {
    fn new(filter: Filter, cpus: u32) -> Self {
        let memories = (0..cpus).map(|_| Memory::default()).collect();
        Plugin { filter, memories, lines: BTreeMap::new(), last: 0 }
    }

    /// The records that the plugin sends for one reference.
    fn meet(&mut self, cpu: u32, record: Record) -> Vec<Record> {
        if self.filter.clear_on_slice && self.last != cpu {
            self.memories[cpu as usize].0.clear();
        }
        self.last = cpu;
        let line = record.paddr() >> self.filter.line_log2;
        let set = (record.paddr() >> self.filter.index_low) & ((1 << self.filter.index_bits) - 1);
        let kind = record.kind().unwrap();
        let set = (kind == Kind::Fetch && self.filter.index_bits > 0, set);
        let (reads, writes) = (kind != Kind::Store, !matches!(kind, Kind::Load | Kind::Fetch));
        let (_, read, written) =
            self.memories[cpu as usize].0.get(&set).copied().filter(|m| m.0 == line).unwrap_or_default();
        let sharers = self.lines.entry(line).or_default();
        let was_shared = sharers.cpus.count_ones() > 1 && sharers.written_by != 0;
        let mut sent = Vec::new();
        let before = *sharers;
        sharers.cpus |= 1 << cpu;
        if writes {
            sharers.written_by |= 1 << cpu;
            let from = record.paddr() & ((1 << self.filter.line_log2) - 1);
            sharers.mask |= (u64::MAX >> (64 - record.size())) << from;
        }
        let shared = sharers.cpus.count_ones() > 1 && sharers.written_by != 0;
        if shared && !was_shared && before.cpus.count_ones() == 1 {
            sent.push(Record::control(ControlKind::Share, line, before.cpus.trailing_zeros() as u8, before.mask));
        }
        let plain = matches!(kind, Kind::Load | Kind::Store | Kind::Fetch);
        // A store after loads only is sent, a load after stores only is a hit.
        let remembered = if writes { written } else { read || written };
        if !plain || shared || !remembered {
            sent.push(record);
        }
        if kind == Kind::NtStore {
            // Its line leaves the caches.
            self.memories.iter_mut().for_each(|m| m.0.retain(|_, held| held.0 != line));
        } else {
            self.memories[cpu as usize].0.insert(set, (line, read || reads, written || writes));
        }
        sent
    }
}

fn level(total: &ModelTotals) -> Vec<(u64, u64, [u64; 6], u64)> {
    let sum = total.sum();
    let sets = total.sets[0].misses.iter().sum::<u64>();
    let conflict_and_capacity = |mut c: [u64; 6]| {
        c[4] += c[5];
        c[5] = 0;
        c
    };
    let mut rows: Vec<_> = total
        .caches
        .iter()
        .map(|c| (c.fills, c.dirty_evictions, conflict_and_capacity(c.line_misses), c.accesses - c.hits))
        .collect();
    rows.push((sum.bus.reads(), sum.bus.transactions(), [0; 6], sets));
    rows
}

fn machines() -> impl Strategy<Value = Machine> {
    (0..3usize, 0..3usize, 0..3usize, 0..2usize, 0..3usize, any::<bool>()).prop_map(
        |(first, second, inclusion, threads, protocol, hashed)| {
            let replacement = [Replacement::Lru, Replacement::TreePlru, Replacement::Random];
            let (packages, threads) = [(2, 1), (1, 2)][threads];
            let l1 = |kind| Cache { replacement: replacement[first], ..cache(1, kind, 4, 2, 64, Sharing::Core) };
            let l2 = Cache {
                replacement: [Replacement::Lru, Replacement::Srrip, Replacement::Random][second],
                inclusion: [Inclusion::None, Inclusion::Inclusive, Inclusion::Exclusive][inclusion],
                index: if hashed { Index::Hashed } else { Index::Physical },
                ..cache(2, CacheKind::Unified, 8, 2, 64, Sharing::Core)
            };
            let mut m = machine(packages, threads, vec![l1(CacheKind::Data), l1(CacheKind::Instruction), l2]);
            m.coherence = [Protocol::Msi, Protocol::Mesi, Protocol::Moesi][protocol];
            m
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn filtering_changes_no_miss(
        m in machines(),
        runs in prop::collection::vec((0..2u32, prop::collection::vec((0..100u8, 0..24u64, 0..8u64), 1..60)), 1..10),
    ) {
        let filter = filter_for(&m);
        let mut plugin = Plugin::new(filter, 2);
        let (mut all, mut kept) = (Vec::new(), Vec::new());
        for (slice, (cpu, references)) in runs.iter().enumerate() {
            let (mut whole, mut sent) = (Vec::new(), Vec::new());
            for &(what, line, word) in references {
                let kind = match what {
                    0..50 => Kind::Load,
                    50..82 => Kind::Store,
                    82..88 => Kind::Atomic,
                    88..92 => Kind::NtStore,
                    // Behind an inclusive unified level fetches push out data that the filter takes for held.
                    _ if m.caches[2].inclusion == Inclusion::Inclusive && filter.index_bits > 0 => Kind::Load,
                    _ => Kind::Fetch,
                };
                // Fetches have pages of their own: code is not written.
                let page = if kind == Kind::Fetch { 2 } else { 0 };
                // Half of the lines are one CPU's own.
                let page = page + if line % 2 == 0 { 0 } else { 4 + u64::from(*cpu) * 4 };
                let address = (page << 12) + line * 64 + word * 8;
                let record = Record::reference(kind, address, 8, 0, InsnId(1), page, 0);
                sent.extend(plugin.meet(*cpu, record));
                whole.push(record);
            }
            all.push((*cpu, slice as u64, whole));
            kept.push((*cpu, slice as u64, sent));
        }
        let exact = ModelOptions { filter, ..options(2) };
        let whole = replay_on(&m, &Policy::default(), &exact, &all, Deaf).0;
        let filtered = replay_on(&m, &Policy::default(), &exact, &kept, Deaf).0;
        prop_assert_eq!(level(&whole), level(&filtered), "{:?}", filter);
        prop_assert_eq!(&whole.nodes, &filtered.nodes);
        prop_assert_eq!(whole.sets.iter().map(|s| &s.lines).collect::<Vec<_>>(), filtered.sets.iter().map(|s| &s.lines).collect::<Vec<_>>());
    }
}
