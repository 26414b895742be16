//! Figures compared with a filter that dropped records: which misses and transfers there were, not how often a cache
//! hit.
#![allow(clippy::unwrap_used)]

use super::{cache, machine};
use nearmiss_machine::model::ModelTotals;
use nearmiss_record::machine::*;
use proptest::prelude::*;

/// Fills by cache, modified lines evicted, misses by class, lookups that missed; then the bus.
pub fn level(total: &ModelTotals) -> Vec<(u64, u64, [u64; 6], u64)> {
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

/// Two levels of two CPUs, or of two threads of one core, in every way that matters to the filter.
pub fn machines() -> impl Strategy<Value = Machine> {
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
