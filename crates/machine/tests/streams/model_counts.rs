//! Counts without classes must be the sums of the model's, and be had on one CPU alone.
#![allow(clippy::unwrap_used)]

use crate::support::*;
use nearmiss_machine::describe::{filter_for, first_level_for};
use nearmiss_machine::model::{Counter, Model, ModelOptions, ModelTotals};
use nearmiss_machine::observer::NullObserver;
use nearmiss_record::abi::ChunkHeader;
use nearmiss_record::machine::*;
use nearmiss_record::model::LevelTally;
use nearmiss_record::policy::Policy;
use nearmiss_record::reference::*;
use nearmiss_record::run::FirstLevel;
use nearmiss_record::units::{Bytes, InsnId};
use proptest::prelude::*;

fn counted(machine: &Machine, options: &ModelOptions, records: &[Record]) -> ModelTotals {
    let mut counter = Counter::new(machine, &Policy::default(), options, NullObserver).unwrap();
    let header = ChunkHeader { records: records.len() as u32, ..ChunkHeader::default() };
    counter.chunk(&header, records).unwrap();
    counter.finish().unwrap().0
}

/// Misses of loads, stores and fetches, classes added up.
fn by_kind(level: &LevelTally) -> [u64; 3] {
    [level.load_misses, level.store_misses, level.fetch_misses].map(|classes| classes.iter().sum())
}

/// Counts that both have, as text.
fn shared(totals: &ModelTotals) -> String {
    let sum = totals.sum();
    let levels: Vec<_> = sum.levels.iter().map(by_kind).collect();
    let references = (sum.instructions, sum.loads, sum.stores, sum.nt_stores, sum.line_accesses, totals.records);
    let caches: Vec<_> = totals
        .caches
        .iter()
        .map(|c| {
            let lines = (c.accesses, c.hits, c.line_misses.iter().sum::<u64>(), c.fills, c.dirty_evictions);
            (&c.name, c.level, c.instance, &c.cpus, lines, by_kind(&c.references))
        })
        .collect();
    let back: u64 = totals.nodes.iter().map(|node| node.write_backs).sum();
    format!("{levels:?}\n{references:?}\n{caches:#?}\n{} {back}", sum.bus.write_backs)
}

#[test]
fn a_small_walk_is_counted_as_by_hand() {
    let m = two_levels(1, 1);
    let wide = access(Kind::Load, 4 * 64 - 4, 8, 7);
    // Set 0 of the first level has lines 0 and 4, then 8 in place of 0, then 0 in place of 4. The wide load misses line
    // 3 of set 3 and finds line 4 gone, which the second level has.
    let records = [store(0), load(256), load(512), load(0), wide, access(Kind::Fetch, 4096, 4, 9), load(0)];
    let t = counted(&m, &options(1), &records);
    let sum = t.sum();
    assert_eq!((sum.loads, sum.stores, sum.line_accesses), (5, 1, 7));
    assert_eq!(by_kind(&sum.levels[0]), [4, 1, 1]);
    assert_eq!(by_kind(&sum.levels[1]), [3, 1, 1], "line 0 is in the second level when it comes back");
    let (l1d, l2) = (&t.caches[0], &t.caches[2]);
    assert_eq!((l1d.accesses, l1d.hits, l1d.fills, l1d.dirty_evictions), (7, 1, 6, 1));
    assert_eq!((l2.accesses, l2.hits, l2.fills, l2.dirty_evictions), (7, 2, 5, 0));
    assert_eq!(l1d.line_misses.iter().sum::<u64>(), 6, "the second half missed with its first");
    assert_eq!((sum.stall_cycles, sum.cycles), (0, sum.instructions));
}

#[test]
fn a_machine_that_cannot_be_counted_is_refused_in_a_sentence() {
    let refused = |m: &Machine, cpus| {
        let counter = Counter::new(m, &Policy::default(), &options(cpus), NullObserver);
        counter.err().unwrap().to_string()
    };
    assert!(refused(&two_levels(2, 1), 2).contains("of one CPU, and there are 2"));
    let mut m = two_levels(1, 1);
    m.caches[0] = Cache { index: Index::Virtual, ..cache(1, CacheKind::Data, 128, 2, 64, Sharing::Core) };
    assert!(refused(&m, 1).contains("L1d is indexed by virtual bits above the page offset"));
    let options = ModelOptions { coherence: false, ..options(1) };
    m.caches.iter_mut().for_each(|c| c.index = Index::Virtual);
    assert!(
        Counter::new(&m, &Policy::default(), &options, NullObserver).is_ok(),
        "the bits that identify lines index them too"
    );
}

/// Way of the records through the stream's front.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// Any reference, cut by the replay.
    Unfiltered,
    /// References of one line each: the short way.
    Filtered,
    /// The tap chooses the place of a line.
    PlacedByTap,
    FetchesPlacedByTap,
    /// Virtual tags without coherence, as in cachegrind.
    VirtualTags,
}

const REPLACEMENTS: [Replacement; 4] =
    [Replacement::Lru, Replacement::TreePlru, Replacement::Random, Replacement::Srrip];

/// A level: sets, ways, replacement, inclusion, whether its index is hashed.
type Level = (usize, usize, usize, usize, bool);

fn level() -> impl Strategy<Value = Level> {
    (0..5usize, 0..6usize, 0..4usize, 0..3usize, any::<bool>())
}

fn described(number: u8, kind: CacheKind, line: u64, (sets, ways, replacement, inclusion, hashed): Level) -> Cache {
    let (sets, ways) = ([1, 2, 3, 4, 7][sets] * u64::from(number), [1, 2, 3, 8, 16, 20_u32][ways]);
    let replacement = REPLACEMENTS[replacement];
    let replacement =
        if ways.is_power_of_two() || replacement != Replacement::TreePlru { replacement } else { Replacement::Lru };
    Cache {
        replacement,
        seed: 3,
        inclusion: [Inclusion::None, Inclusion::Inclusive, Inclusion::Exclusive][inclusion],
        index: if hashed { Index::Hashed } else { Index::Physical },
        ..cache(number, kind, sets, ways, line, Sharing::Core)
    }
}

/// One to three levels behind a split first one, the second split too or unified; lines may be longer farther out.
fn machines() -> impl Strategy<Value = Machine> {
    let shape = (any::<bool>(), any::<bool>(), 1..4usize, any::<bool>(), 0..3usize);
    (shape, prop::collection::vec(level(), 5)).prop_map(|((short, split, levels, moves, protocol), described_as)| {
        let mut nearest = described_as[0];
        nearest.4 = false;
        let line = if short { 32 } else { 64 };
        let mut caches = vec![
            described(1, CacheKind::Data, line, nearest),
            described(
                1,
                CacheKind::Instruction,
                line,
                Level::from((nearest.0, described_as[4].1, nearest.2, 0, false)),
            ),
        ];
        if levels > 1 {
            let mut second = described_as[1];
            // An exclusive level has the lines of the one before it.
            second.3 = if short && second.3 == 2 { 0 } else { second.3 };
            if split {
                caches.push(described(2, CacheKind::Data, 64, second));
                caches.push(described(2, CacheKind::Instruction, 64, second));
            } else {
                caches.push(described(2, CacheKind::Unified, 64, second));
            }
        }
        if levels > 2 {
            caches.push(described(3, CacheKind::Unified, 64, described_as[2]));
        }
        let mut m = machine(1, 1, caches);
        m.coherence = [Protocol::Msi, Protocol::Mesi, Protocol::Moesi][protocol];
        if moves {
            m.memory.placement = Placement::Random;
            m.memory.placement_seed = 5;
        }
        m
    })
}

/// Adapts a machine's first level so that a way of the records is possible.
fn suited(mut m: Machine, way: Way) -> (Machine, ModelOptions) {
    let mut o = options(1);
    match way {
        Way::Unfiltered => {}
        Way::Filtered => o.filter = filter_for(&m),
        Way::PlacedByTap | Way::FetchesPlacedByTap => {
            for first in m.caches.iter_mut().filter(|c| c.level == 1) {
                first.size = Bytes(4 * 64 * u64::from(first.ways.min(16)));
                (first.line, first.ways) = (Bytes(64), first.ways.min(16));
                first.replacement = Replacement::Lru;
            }
            for outer in m.caches.iter_mut().filter(|c| c.inclusion == Inclusion::Inclusive) {
                outer.inclusion = Inclusion::None;
            }
            o.filter = filter_for(&m);
            let whole = first_level_for(&m).unwrap();
            o.filter.first_level = Some(match way {
                Way::FetchesPlacedByTap => FirstLevel { data: None, ..whole },
                _ => whole,
            });
        }
        Way::VirtualTags => {
            m.caches.iter_mut().for_each(|c| c.index = Index::Virtual);
            o.coherence = false;
        }
    }
    (m, o)
}

/// `what`, line, offset, size and the way that the tap would name.
type Reference = (u8, u64, u64, u32, u64);

/// The records of a reference, cut at 64 bytes where a filter would.
fn records(&(what, line, offset, size, way): &Reference, whole: bool) -> Vec<Record> {
    let kind = match what {
        0..50 => Kind::Load,
        50..76 => Kind::Store,
        76..82 => Kind::Atomic,
        82..86 => Kind::NtStore,
        _ => Kind::Fetch,
    };
    let address = line * 64 + line / 40 * 4096 + offset;
    let size = if kind == Kind::Fetch { 1 } else { size };
    let record = |address: u64, size, flags| {
        let record = Record::reference(kind, address, size, flags, InsnId(1), (address >> 12) * 3 + 1, what % 5);
        Record { b: record.b | way << INSN_BITS, ..record }
    };
    let room = 64 - (offset % 64) as u32;
    if whole || size <= room {
        return vec![record(address, size, 0)];
    }
    let second = |flags| record(address + u64::from(room), size - room, flags);
    match way & 1 {
        0 => vec![record(address, room, 0), second(FLAG_CONT)],
        _ => vec![second(FLAG_CONT | FLAG_FIRST_HIT)],
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn counts_are_the_sums_of_the_model_s(
        m in machines(),
        way in prop::sample::select(vec![
            Way::Unfiltered,
            Way::Filtered,
            Way::PlacedByTap,
            Way::FetchesPlacedByTap,
            Way::VirtualTags
        ]),
        references in prop::collection::vec((0..100u8, 0..200u64, 0..64u64, 1..33u32, 0..16u64), 1..600),
    ) {
        let (m, o) = suited(m, way);
        let whole = matches!(way, Way::Unfiltered | Way::VirtualTags);
        let stream: Vec<Record> = references.iter().flat_map(|reference| records(reference, whole)).collect();
        let mut model = Model::new(&m, &Policy::default(), &o, NullObserver).unwrap();
        let header = ChunkHeader { records: stream.len() as u32, ..ChunkHeader::default() };
        model.chunk(&header, &stream).unwrap();
        let exact = model.finish().unwrap().0;
        prop_assert_eq!(shared(&counted(&m, &o, &stream)), shared(&exact), "{:?}", o.filter);
    }
}
