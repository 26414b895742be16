//! The fast engine against the slow one: every event and every counter, on random machines and streams.

use super::Slow;
use super::generate::{estimated, machines, places, policies, streams};
use crate::model::{Access, Drained, Engine, Fast, ModelError, ModelOptions, ModelTotals, Replay, Sites};
use crate::observer::{Effective, Observer, Outcome};
use nearmiss_record::abi::ChunkHeader;
use nearmiss_record::machine::{Inclusion, Index, Machine, Protocol, Topology};
use nearmiss_record::model::{ByClass, LevelTally, MissClass, Tally};
use nearmiss_record::policy::{Order, Policy};
use nearmiss_record::reference::{Control, ControlKind, Kind, Record};
use nearmiss_record::run::Filter;
use proptest::prelude::*;

/// All events, in order.
#[derive(Debug, Default, PartialEq)]
struct Log(Vec<Event>);

#[derive(Debug, PartialEq)]
enum Event {
    Control(u32, String),
    Hit(Effective),
    Miss(Effective, Outcome),
    Instructions(u32, u64),
    Drained(Effective, u8, u8, u8),
}

impl Observer for Log {
    fn control(&mut self, vcpu: u32, control: &Control<'_>) {
        self.0.push(Event::Control(vcpu, format!("{control:?}")));
    }
    fn hit(&mut self, reference: &Effective) {
        self.0.push(Event::Hit(*reference));
    }
    fn miss(&mut self, reference: &Effective, outcome: &Outcome) {
        self.0.push(Event::Miss(*reference, *outcome));
    }
    fn instructions(&mut self, vcpu: u32, instructions: u64) {
        self.0.push(Event::Instructions(vcpu, instructions));
    }
    fn drained(&mut self, last: &Effective, full: u8, partial: u8, home: u8) {
        self.0.push(Event::Drained(*last, full, partial, home));
    }
}

/// The slow engine, its invariant checked after every access.
struct Checked(Slow);

impl Engine for Checked {
    fn new(machine: &Machine, policy: &Policy, options: &ModelOptions) -> Result<Self, ModelError> {
        Slow::new(machine, policy, options).map(Checked)
    }
    fn hit(&mut self, cpu: usize, kind: Kind, address: u64, vaddr: u64) -> bool {
        self.0.hit(cpu, kind, address, vaddr)
    }
    fn access(&mut self, access: &Access, outcome: &mut Outcome) -> u8 {
        let missed = self.0.access(access, outcome);
        self.0.check().unwrap();
        missed
    }
    fn fence(&mut self, cpu: usize, now: u64, sink: &mut dyn FnMut(Drained)) {
        self.0.fence(cpu, now, sink);
    }
    fn share(&mut self, address: u64, owner: usize, written: u64) {
        self.0.share(address, owner, written);
    }
    fn control(&mut self, cpu: usize, control: &Control<'_>) {
        self.0.control(cpu, control);
    }
    fn node(&self, cpu: usize) -> u8 {
        self.0.node(cpu)
    }
    fn finish(self, sites: &Sites, sink: &mut dyn FnMut(Drained)) -> ModelTotals {
        self.0.finish(sites, sink)
    }
}

type Stream = [(u32, bool, Vec<Record>, u64)];

fn run<E: Engine>(
    m: &Machine,
    p: &Policy,
    o: &ModelOptions,
    stream: &Stream,
) -> Result<(ModelTotals, Log), ModelError> {
    let mut replay = Replay::<E, Log>::new(m, p, o, Log::default())?;
    let mut slice = 0;
    let mut instructions = [0u64; 64];
    for (seq, (cpu, same, records, ahead)) in stream.iter().enumerate() {
        let vcpu = cpu % o.cpus;
        slice += u64::from(!same);
        let total = &mut instructions[vcpu as usize];
        *total += records.iter().map(|r| r.instructions()).sum::<u64>() + ahead;
        let count = records.len() as u32;
        let header =
            ChunkHeader { seq: seq as u64, slice, vcpu, records: count, instructions: *total, ..Default::default() };
        replay.chunk(&header, records)?;
    }
    replay.finish()
}

fn sums_hold(t: &ModelTotals) {
    let sum: Tally = t.sum();
    for (level, tally) in sum.levels.iter().enumerate() {
        for class in 0..6 {
            let of = |pick: fn(&nearmiss_record::model::LevelTally) -> [u64; 6]| -> u64 {
                t.caches.iter().filter(|c| usize::from(c.level) == level + 1).map(|c| pick(&c.references)[class]).sum()
            };
            assert_eq!(tally.load_misses[class], of(|l| l.load_misses));
            assert_eq!(tally.store_misses[class], of(|l| l.store_misses));
            assert_eq!(tally.fetch_misses[class], of(|l| l.fetch_misses));
        }
    }
    for cache in &t.caches {
        assert_eq!(cache.accesses, cache.hits + cache.line_misses.iter().sum::<u64>());
        assert!(cache.references.misses() <= cache.line_misses.iter().sum());
    }
    for map in &t.sets {
        let of = |c: &&crate::model::CacheTotals| c.name == map.cache;
        assert_eq!(
            map.misses.iter().sum::<u64>(),
            t.caches.iter().filter(of).map(|c| c.references.misses()).sum::<u64>()
        );
        assert_eq!(map.lines.iter().sum::<u64>(), t.caches.iter().filter(of).map(|c| c.line_misses[0]).sum::<u64>());
    }
    let mut nodes = Tally::default();
    for bus in &t.nodes {
        nodes += &Tally { bus: *bus, ..Tally::default() };
    }
    assert_eq!(nodes.bus, sum.bus);
}

fn compare(m: &Machine, p: &Policy, o: &ModelOptions, stream: &Stream) -> Result<(), TestCaseError> {
    let fast = run::<Fast>(m, p, o, stream);
    let slow = run::<Checked>(m, p, o, stream);
    match (fast, slow) {
        (Ok((totals, log)), Ok((slow_totals, slow_log))) => {
            for (i, (event, slow_event)) in log.0.iter().zip(&slow_log.0).enumerate() {
                prop_assert_eq!(event, slow_event, "event {}", i);
            }
            prop_assert_eq!(&log, &slow_log);
            prop_assert_eq!(&totals.cpus, &slow_totals.cpus);
            for (cache, slow_cache) in totals.caches.iter().zip(&slow_totals.caches) {
                prop_assert_eq!(cache, slow_cache);
            }
            prop_assert_eq!(&totals.sets, &slow_totals.sets);
            prop_assert_eq!(&totals.pollution, &slow_totals.pollution);
            prop_assert_eq!(&totals, &slow_totals);
            sums_hold(&totals);
            prop_assert_eq!(totals.cpus.iter().map(|c| c.instructions).sum::<u64>(), log_instructions(&log));
        }
        (fast, slow) => prop_assert_eq!(fast.err(), slow.err()),
    }
    Ok(())
}

fn log_instructions(log: &Log) -> u64 {
    log.0.iter().map(|e| if let Event::Instructions(_, n) = e { *n } else { 0 }).sum()
}

/// A trace that carries every policy.
fn everything() -> Filter {
    Filter { contexts: true, ordered_stores: true, by_task: true, heap: true, ..Filter::default() }
}

fn options(m: &Machine, order: Order, filter_line_log2: u32, only_user: bool) -> ModelOptions {
    let nodes = m.memory.nodes as usize;
    ModelOptions {
        order,
        only_user,
        coherence: true,
        filter: Filter { line_log2: filter_line_log2, fetches: true, clear_on_slice: true, ..everything() },
        node_bytes: [64 * 4096, 1 << 24][..nodes].to_vec(),
        cpus: m.topology.cpus(),
        starts_late: false,
        reasons: true,
        code: None,
        even_slices: false,
    }
}

/// The stream as a filter of 32-byte lines leaves it: each record in one line of every cache.
fn split(stream: &Stream) -> Vec<(u32, bool, Vec<Record>, u64)> {
    let shorten = |r: &Record| match r.kind() {
        Some(Kind::Control) | None => *r,
        _ => Record { a: r.a & !(63 << 52 | 31) | (r.a & 24) | 7 << 52, ..*r },
    };
    let shortened = |records: &[Record]| {
        let mut records = records.to_vec();
        let mut at = 0;
        while at < records.len() {
            let payload = if records[at].kind() == Some(Kind::Control) { records[at].payload_records() } else { None };
            records[at] = shorten(&records[at]);
            at += 1 + payload.unwrap_or(0);
        }
        records
    };
    stream.iter().map(|(cpu, same, records, ahead)| (*cpu, *same, shortened(records), *ahead)).collect()
}

/// Returns the events and counts without the class of conflict misses.
fn without_conflicts((mut totals, mut log): (ModelTotals, Log)) -> (ModelTotals, Log) {
    let merge = |classes: &mut ByClass| {
        classes[MissClass::Capacity as usize] += std::mem::take(&mut classes[MissClass::Conflict as usize]);
    };
    let merge_all = |level: &mut LevelTally| {
        [&mut level.load_misses, &mut level.store_misses, &mut level.fetch_misses].into_iter().for_each(merge);
    };
    totals.cpus.iter_mut().flat_map(|cpu| &mut cpu.levels).for_each(merge_all);
    for cache in &mut totals.caches {
        merge(&mut cache.line_misses);
        merge_all(&mut cache.references);
    }
    totals.pollution.clear();
    totals.sets.clear();
    for event in &mut log.0 {
        let Event::Miss(_, outcome) = event else { continue };
        for class in outcome.missed.iter_mut().flatten().filter(|class| **class == MissClass::Conflict) {
            *class = MissClass::Capacity;
        }
    }
    (totals, log)
}

/// Returns the stream without records that identify lines by the filter's size.
fn without_shares(stream: &Stream) -> Vec<(u32, bool, Vec<Record>, u64)> {
    let kept = |records: &[Record]| {
        let (mut kept, mut at) = (Vec::new(), 0);
        while let Some(record) = records.get(at) {
            let is_control = record.kind() == Some(Kind::Control);
            let end = at + 1 + record.payload_records().filter(|_| is_control).unwrap_or(0);
            if !is_control || record.control_kind() != Some(ControlKind::Share) {
                kept.extend_from_slice(&records[at..end]);
            }
            at = end;
        }
        kept
    };
    stream.iter().map(|(cpu, same, records, ahead)| (*cpu, *same, kept(records), *ahead)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn fast_and_slow_agree(m in machines(), p in policies(), stream in streams(), modelled: bool, only_user: bool) {
        let order = if modelled { Order::Modelled } else { Order::Recorded };
        compare(&m, &p, &options(&m, order, 0, only_user), &stream)?;
    }

    #[test]
    fn fast_and_slow_agree_on_tasks_that_were_placed(
        (m, place) in machines().prop_flat_map(|m| (Just(m.clone()), places(m.topology.cpus()))),
        p in policies(), stream in streams(), modelled: bool,
    ) {
        let order = if modelled { Order::Modelled } else { Order::Recorded };
        compare(&m, &Policy { place, ..p }, &options(&m, order, 0, false), &stream)?;
    }

    #[test]
    fn fast_and_slow_agree_on_records_that_were_split(m in machines(), stream in streams(), modelled: bool) {
        let stream = split(&stream);
        let order = if modelled { Order::Modelled } else { Order::Recorded };
        compare(&m, &Policy::default(), &options(&m, order, 5, false), &stream)?;
    }

    #[test]
    fn fast_and_slow_agree_without_coherence(mut m in machines(), stream in streams(), virtual_tags: bool, whole: bool) {
        if virtual_tags {
            m.caches.iter_mut().for_each(|c| c.index = Index::Virtual);
        }
        let (stream, filter_line_log2) = if whole { (stream, 0) } else { (split(&stream), 5) };
        let o = ModelOptions { coherence: false, ..options(&m, Order::Recorded, filter_line_log2, false) };
        compare(&m, &Policy::default(), &o, &stream)?;
    }

    #[test]
    fn fast_and_slow_agree_on_straight_misses_of_one_cpu(m in machines(), stream in streams(), only_user: bool) {
        let mut m = Machine { coherence: Protocol::Mesi, ..m };
        m.topology = Topology { packages: 1, cores_per_package: 1, threads_per_core: 1, cores_per_cluster: 0 };
        for cache in &mut m.caches {
            cache.index = if cache.index == Index::Virtual { Index::Physical } else { cache.index };
            cache.inclusion = if cache.inclusion == Inclusion::Exclusive { Inclusion::None } else { cache.inclusion };
        }
        compare(&m, &Policy::default(), &options(&m, Order::Recorded, 5, only_user), &split(&stream))?;
    }

    #[test]
    fn fast_and_slow_agree_on_what_caches_had_behind_a_pause(
        m in machines(), p in policies(), stream in streams(), lines in 1..250u64, modelled: bool,
    ) {
        let order = if modelled { Order::Modelled } else { Order::Recorded };
        let stream = [vec![(0, false, estimated(lines), 0)], stream].concat();
        compare(&m, &p, &options(&m, order, 0, false), &stream)?;
    }

    #[test]
    fn without_reasons_all_else_is_the_same(
        m in machines(), p in policies(), stream in streams(), modelled: bool, only_user: bool, whole: bool,
    ) {
        let order = if modelled { Order::Modelled } else { Order::Recorded };
        let (stream, filter_line_log2) = if whole { (stream, 0) } else { (split(&stream), 5) };
        let o = options(&m, order, filter_line_log2, only_user);
        let with_reasons = run::<Fast>(&m, &p, &o, &stream).map(without_conflicts);
        let without_reasons = run::<Fast>(&m, &p, &o.without_reasons(), &stream).map(|(mut totals, log)| {
            assert!(totals.pollution.is_empty() && totals.sets.iter().all(|map| map.misses.iter().all(|m| *m == 0)));
            totals.sets.clear();
            (totals, log)
        });
        prop_assert_eq!(with_reasons, without_reasons);
    }

    #[test]
    fn the_short_way_moves_records_as_the_long_way_does(
        m in machines(), p in policies(), stream in streams(), modelled: bool, only_user: bool,
    ) {
        let order = if modelled { Order::Modelled } else { Order::Recorded };
        let stream = without_shares(&split(&stream));
        let long = run::<Fast>(&m, &p, &options(&m, order, 0, only_user), &stream);
        let short = run::<Fast>(&m, &p, &options(&m, order, 5, only_user), &stream);
        if short.is_ok() {
            prop_assert_eq!(long, short);
        }
    }
}
