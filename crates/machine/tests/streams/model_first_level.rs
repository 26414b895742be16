//! A first level that the tap runs, in software, must not change the model's counts.
#![allow(clippy::unwrap_used)]

use crate::support::*;
use nearmiss_machine::describe::{filter_for, first_level_for};
use nearmiss_machine::model::{ModelOptions, ModelTotals};
use nearmiss_machine::observer::NullObserver;
use nearmiss_record::machine::*;
use nearmiss_record::policy::Policy;
use nearmiss_record::reference::*;
use nearmiss_record::run::{Associativity, Filter};
use nearmiss_record::units::InsnId;
use proptest::prelude::*;

#[derive(Clone, Copy)]
struct Line {
    address: u64,
    stored: bool,
    reported: bool,
    again: bool,
}

/// A set as the tap runs it, obviously.
struct Set {
    ways: Vec<Option<Line>>,
    /// Way of each use, the latest last.
    uses: Vec<usize>,
    tree: bool,
}

impl Set {
    fn new(of: Associativity) -> Self {
        Set { ways: vec![None; of.ways as usize], uses: Vec::new(), tree: of.tree }
    }

    /// The way that goes from a full set: the one used longest ago, or the one that a tree's bits point at, each of
    /// which the latest use beneath it turned away from itself.
    fn victim(&self) -> usize {
        let ways = self.ways.len();
        if !self.tree {
            return (0..ways).min_by_key(|way| self.uses.iter().rposition(|used| used == way)).unwrap();
        }
        let (mut low, mut high) = (0, ways);
        while high - low > 1 {
            let middle = (low + high) / 2;
            let latest = self.uses.iter().rev().find(|used| (low..high).contains(used));
            (low, high) = if latest.is_some_and(|used| *used < middle) { (middle, high) } else { (low, middle) };
        }
        low
    }

    /// Returns the tap's report of a use, if any: the way and whether the line there was used again.
    fn access(&mut self, address: u64, store: bool) -> Option<(usize, bool)> {
        let there = self.ways.iter().position(|line| line.is_some_and(|line| line.address == address));
        if let Some(way) = there {
            let again = self.uses.last() != Some(&way);
            self.uses.push(way);
            let line = self.ways[way].as_mut().unwrap();
            let news = !line.reported || store && !line.stored;
            line.again |= again;
            line.reported |= news;
            line.stored |= store;
            return news.then_some((0, false));
        }
        let way = self.ways.iter().position(Option::is_none).unwrap_or_else(|| self.victim());
        self.uses.push(way);
        let gone = self.ways[way].replace(Line { address, stored: store, reported: true, again: false });
        Some((way, gone.is_some_and(|line| line.again)))
    }
}

fn counted(totals: &ModelTotals) -> impl PartialEq + std::fmt::Debug {
    let conflict_and_capacity = |mut c: [u64; 6]| {
        c[4] += c[5];
        c[5] = 0;
        c
    };
    let caches: Vec<_> = totals
        .caches
        .iter()
        .map(|c| (c.level, c.fills, c.dirty_evictions, conflict_and_capacity(c.line_misses), c.accesses - c.hits))
        .collect();
    let sets: Vec<_> = totals.sets.iter().map(|s| (s.misses.clone(), s.lines.clone())).collect();
    (caches, sets, totals.nodes.clone(), totals.sum().bus.transactions())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn references_that_the_tap_drops_change_no_miss(
        trees in any::<[bool; 2]>(),
        ways in 0..3u32,
        exclusive in any::<bool>(),
        references in prop::collection::vec((0..100u8, 0..40u64, 0..8u64), 1..400),
        forget in 1..60usize,
    ) {
        let replacement = |tree| if tree { Replacement::TreePlru } else { Replacement::Lru };
        let l1 = |kind, tree| Cache { replacement: replacement(tree), ..cache(1, kind, 4, 1 << ways, 64, Sharing::Core) };
        let l2 = Cache {
            inclusion: if exclusive { Inclusion::Exclusive } else { Inclusion::None },
            ..cache(2, CacheKind::Unified, 8, 2, 64, Sharing::Core)
        };
        let m = machine(1, 1, vec![l1(CacheKind::Data, trees[0]), l1(CacheKind::Instruction, trees[1]), l2]);
        let first = first_level_for(&m).unwrap();
        let [data, fetch] = [first.data, first.fetch].map(Option::unwrap);
        let mut sets = [data, fetch].map(|of| [(); 4].map(|()| Set::new(of)));
        let (mut all, mut kept) = (Vec::new(), Vec::new());
        for (at, &(what, line, word)) in references.iter().enumerate() {
            let kind = match what {
                0..50 => Kind::Load,
                50..78 => Kind::Store,
                78..84 => Kind::Atomic,
                84..88 => Kind::NtStore,
                _ => Kind::Fetch,
            };
            // Fetches have pages of their own: code is not written.
            let page = if kind == Kind::Fetch { 2 } else { line / 20 };
            let address = (page << 12) + line * 64 % 4096 + word * 8;
            let record = Record::reference(kind, address, 8, 0, InsnId(1), page, 0);
            all.push(record);
            let (line, number) = (address / 64, address as usize / 64 % 4);
            if kind == Kind::NtStore {
                kept.push(record);
                for held in sets.iter_mut().flat_map(|level| &mut level[number].ways) {
                    *held = held.filter(|held| held.address != line);
                }
            } else {
                let stores = matches!(kind, Kind::Store | Kind::Atomic);
                let sent = sets[usize::from(kind == Kind::Fetch)][number].access(line, stores);
                // The tap sends an atomic where write-combining buffers may wait for one.
                if sent.is_some() || kind == Kind::Atomic {
                    let (way, again) = sent.unwrap_or_default();
                    kept.push(Record { b: record.b | (way as u64 | u64::from(again) << 4) << INSN_BITS, ..record });
                }
            }
            if at % forget == 0 {
                sets.iter_mut().flatten().flat_map(|set| set.ways.iter_mut().flatten()).for_each(|line| line.reported = false);
            }
        }
        let exact = ModelOptions { filter: filter_for(&m), ..options(1) };
        let with_first_level = ModelOptions { filter: Filter { first_level: Some(first), ..exact.filter }, ..exact };
        let whole = replay_on(&m, &Policy::default(), &options(1), &[(0, 0, all)], NullObserver).0;
        let short = replay_on(&m, &Policy::default(), &with_first_level, &[(0, 0, kept)], NullObserver).0;
        prop_assert_eq!(format!("{:?}", counted(&whole)), format!("{:?}", counted(&short)));
        // Lines in the first level at the end have no later use recorded.
        let blamed = |totals: &ModelTotals, cache: &str| {
            totals.pollution.iter().filter(|pair| pair.cache == cache).map(|pair| pair.misses).sum::<u64>()
        };
        prop_assert_eq!(blamed(&whole, "L2"), blamed(&short, "L2"));
        for (cache, lines) in [("L1d", data.ways * 4), ("L1i", fetch.ways * 4)] {
            let (exact, most) = (blamed(&whole, cache), blamed(&short, cache));
            prop_assert!(exact <= most && most <= exact + u64::from(lines), "{}: {} and {}", cache, exact, most);
        }
    }
}
