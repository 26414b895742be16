//! Changes that the tap's modes allow a replay: stores around the caches, tasks on other CPUs. The plugin's own filter
//! code sends the replayed records; the slow twin is fed with the unfiltered stream, changed by hand.
#![allow(clippy::unwrap_used)]

use crate::support::filtered::{level, machines};
use crate::support::tap_filter::TapFilter;
use crate::support::*;
use nearmiss_machine::describe::filter_for;
use nearmiss_machine::model::{Engine, Fast, Model, ModelOptions, ModelTotals, Replay};
use nearmiss_machine::observer::NullObserver;
use nearmiss_machine::twin::Slow;
use nearmiss_record::abi::ChunkHeader;
use nearmiss_record::machine::*;
use nearmiss_record::model::MissClass::FalseSharing;
use nearmiss_record::policy::{AddressPolicy, CallSite, Order, PlacePolicy, Placed, Policy, StorePolicy};
use nearmiss_record::reference::*;
use nearmiss_record::run::Filter;
use nearmiss_record::units::InsnId;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::cell::RefCell;

/// A chunk: its CPU, instructions that the CPU has executed at its end, records.
type Chunk = (u32, u64, Vec<Record>);

fn feed<E: Engine>(m: &Machine, policy: &Policy, options: &ModelOptions, chunks: &[Chunk]) -> ModelTotals {
    let mut replay = Replay::<E, NullObserver>::new(m, policy, options, NullObserver).unwrap();
    for (seq, (vcpu, instructions, records)) in chunks.iter().enumerate() {
        let header = ChunkHeader {
            seq: seq as u64,
            slice: seq as u64,
            vcpu: *vcpu,
            records: records.len() as u32,
            instructions: *instructions,
            ..ChunkHeader::default()
        };
        replay.chunk(&header, records).unwrap();
    }
    replay.finish().unwrap().0
}

fn runner(cases: u32) -> TestRunner {
    TestRunner::new(ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() })
}

fn kind_of(what: u8, no_fetches: bool) -> Kind {
    match what {
        0..45 => Kind::Load,
        45..82 => Kind::Store,
        82..86 => Kind::Atomic,
        86..90 => Kind::NtStore,
        _ if no_fetches => Kind::Load,
        _ => Kind::Fetch,
    }
}

/// A word of a page that is everybody's, or a CPU's or task's own; code has pages of its own.
fn reference(kind: Kind, line: u64, word: u64, insn: u32, own: u64) -> Record {
    let page = if kind == Kind::Fetch { 2 } else { 0 } + 16 * [0, own][line as usize % 2];
    Record::reference(kind, (page << 12) + line * 64 + word * 8, 8, 0, InsnId(insn), page, 0)
}

/// One step of a slice: how, line, word and instruction.
type Step = (u8, u64, u64, u32);

/// Slices of two CPUs: CPU, calling context, steps.
fn store_slices() -> impl Strategy<Value = Vec<(u32, u32, Vec<Step>)>> {
    let steps = prop::collection::vec((0..105u8, 0..24u64, 0..8u64, 1..5u32), 1..80);
    prop::collection::vec((0..2u32, 0..3u32, steps), 1..10)
}

#[test]
fn stores_of_any_call_site_go_around_the_caches_as_if_nothing_was_filtered() {
    let Some(tap) = TapFilter::start() else { return };
    let tap = RefCell::new(tap);
    let sites = prop::collection::vec((0..3u32, 1..5u32), 1..6);
    let ran = runner(1500).run(&(machines(), store_slices(), sites, any::<bool>()), |(m, slices, sites, by_task)| {
        let sites: Vec<_> = sites.iter().map(|&(context, insn)| CallSite { context, insn }).collect();
        let mut tap = tap.borrow_mut();
        let filter = Filter { ordered_stores: true, by_task, contexts: true, ..filter_for(&m) };
        let no_fetches = m.caches[2].inclusion == Inclusion::Inclusive;
        tap.begin(filter, 2);
        let (mut all, mut kept) = (Vec::new(), Vec::new());
        for (cpu, context, steps) in &slices {
            tap.slice(*cpu, 1 + cpu);
            tap.context(*context);
            let mut whole = Vec::new();
            for &(what, line, word, insn) in steps {
                if what >= 100 {
                    tap.fence();
                    whole.push(fence());
                    continue;
                }
                let record = reference(kind_of(what, no_fetches), line, word, insn, 1 + u64::from(*cpu));
                tap.reference(record);
                let around =
                    record.kind() == Some(Kind::Store) && sites.contains(&CallSite { context: *context, insn });
                whole.push(if around { record.with_kind(Kind::NtStore) } else { record });
            }
            all.push((*cpu, 0, whole));
            kept.push((*cpu, 0, tap.sent()));
        }
        let exact = ModelOptions { filter, ..options(2) };
        let policy = Policy { store: StorePolicy::NonTemporal { sites }, ..Policy::default() };
        let whole = feed::<Slow>(&m, &Policy::default(), &exact, &all);
        let filtered = feed::<Fast>(&m, &policy, &exact, &kept);
        prop_assert_eq!(level(&whole), level(&filtered), "{:?}", filter);
        prop_assert_eq!(&whole.nodes, &filtered.nodes);
        prop_assert_eq!(whole.sum().nt_stores, filtered.sum().nt_stores);
        Ok(())
    });
    ran.unwrap();
}

/// The filter of 64 sets of one CPU.
fn of_64_sets() -> Filter {
    Filter { line_log2: 6, index_low: 6, index_bits: 6, contexts: true, fetches: true, ..Filter::default() }
}

/// The first level of [`of_64_sets`].
fn with_64_sets(packages: u32) -> Machine {
    let l1 = |kind| cache(1, kind, 64, 8, 64, Sharing::Core);
    let l2 = cache(2, CacheKind::Unified, 512, 8, 64, Sharing::Core);
    machine(packages, 1, vec![l1(CacheKind::Data), l1(CacheKind::Instruction), l2])
}

/// Replays the tap's records of one CPU's stores, all of them turned non-temporal; `None` if the tap cannot be built.
fn around(references: impl Iterator<Item = Record>) -> Option<(usize, ModelTotals)> {
    let mut tap = TapFilter::start()?;
    let filter = Filter { ordered_stores: true, ..of_64_sets() };
    tap.begin(filter, 1);
    tap.slice(0, 1);
    let mut chunks = Vec::new();
    let mut references = references.peekable();
    while references.peek().is_some() {
        references.by_ref().take(1 << 16).for_each(|record| tap.reference(record));
        chunks.push((0, 0, tap.sent()));
    }
    let sites = vec![CallSite { context: 0, insn: 2 }];
    let policy = Policy { store: StorePolicy::NonTemporal { sites }, ..Policy::default() };
    let totals = feed::<Fast>(&with_64_sets(1), &policy, &ModelOptions { filter, ..options(1) }, &chunks);
    Some((chunks.iter().map(|chunk| chunk.2.len()).sum(), totals))
}

#[test]
fn a_fill_by_words_makes_whole_lines_of_transactions() {
    let Some((sent, totals)) = around((0..1u64 << 20).map(|word| store(word * 8))) else { return };
    let bus = totals.sum().bus;
    assert_eq!((sent, bus.nt_full, bus.nt_partial, bus.reads()), (1 << 20, 131_072, 0, 0));
}

#[test]
fn a_copy_reads_each_line_once_and_writes_each_once() {
    let (from, to) = (0, 8 << 20);
    let copy = (0..1u64 << 16).flat_map(|line| {
        (0..8).map(move |i| {
            let at = line * 64 + i / 2 * 16;
            if i % 2 == 0 { access(Kind::Load, from + at, 16, 1) } else { access(Kind::Store, to + at, 16, 2) }
        })
    });
    let Some((sent, totals)) = around(copy) else { return };
    let bus = totals.sum().bus;
    // Source and target lie in one set: each store makes the set forget, so every load is sent.
    assert_eq!(sent, 8 << 16);
    assert_eq!((bus.nt_full, bus.nt_partial, bus.reads(), bus.write_backs), (1 << 16, 0, 1 << 16, 0));
}

/// A copy of so many lines by words, from 0 to `to`; `also` follows each line.
fn by_words(lines: u64, to: u64, also: impl Fn(u64) -> Vec<Record>) -> Vec<Record> {
    let word = |at: u64| [access(Kind::Load, at, 8, 1), access(Kind::Store, to + at, 8, 2)];
    let line = |line: u64| [(0..8).flat_map(|i| word(line * 64 + i * 8)).collect(), also(to + line * 64)].concat();
    (0..lines).flat_map(line).collect()
}

#[test]
fn a_copy_between_other_sets_makes_whole_lines_too() {
    let lines = 1 << 14;
    for (offset, sent_a_line) in [(0, 16), (0x200, 9)] {
        let copy = by_words(lines, (8 << 20) + offset, |_| Vec::new());
        let Some((sent, totals)) = around(copy.into_iter()) else { return };
        let bus = totals.sum().bus;
        // If the stores leave the source's set alone, the loads behind the first of a line repeat it, and are dropped.
        assert_eq!(sent as u64, lines * sent_a_line, "{offset:#x}");
        assert_eq!((bus.nt_full, bus.nt_partial, bus.reads(), bus.write_backs), (lines, 0, lines, 0), "{offset:#x}");
    }
}

#[test]
fn a_line_that_is_read_at_once_is_read_from_memory() {
    let lines = 1 << 12;
    let reader = |at| (0..8).map(|word| access(Kind::Load, at + word * 8, 8, 3)).collect();
    for offset in [0, 0x200] {
        let Some((_, totals)) = around(by_words(lines, (8 << 20) + offset, reader).into_iter()) else { return };
        let sum = totals.sum();
        // As recorded the reader would always hit: a plain store had brought the line. Now its first load of a line misses.
        assert_eq!((sum.bus.nt_full, sum.bus.nt_partial, sum.bus.reads()), (lines, 0, 2 * lines), "{offset:#x}");
        assert_eq!(sum.levels.iter().map(|level| level.misses()).collect::<Vec<_>>(), [2 * lines; 2], "{offset:#x}");
    }
}

/// A switch of tasks on a vCPU, with the instructions of the one that leaves.
fn switch(pid: u32, executed: u64) -> Vec<Record> {
    let usage = Usage { user_instructions: executed, ..Usage::default() };
    let mut records = vec![Record::control(ControlKind::Switch, u64::from(pid) << 12, 0, pid.into())];
    records.extend([Record::default(); 2]);
    records.extend_from_slice(bytemuck::cast_slice(&[usage]));
    records
}

/// The unfiltered stream of each CPU, window by window; one instruction a record.
fn interleaved(slices: &[(u32, Vec<Record>)], on: &[u32], window: u64) -> Vec<Chunk> {
    let mut lanes: [Vec<Record>; 2] = Default::default();
    for (task, records) in slices {
        lanes[on[*task as usize - 1] as usize].extend(records);
    }
    let windows = lanes.iter().map(|lane| lane.len().div_ceil(window as usize)).max().unwrap();
    let part = |number: usize, cpu: usize| {
        let windows: Vec<_> = lanes[cpu].chunks(window as usize).collect();
        windows.get(number).map_or(Vec::new(), |records| records.to_vec())
    };
    (0..windows).flat_map(|number| [(0, 0, part(number, 0)), (1, 0, part(number, 1))]).collect()
}

/// Slices of tasks 1 to 4 on two vCPUs: vCPU, task, steps.
fn task_slices() -> impl Strategy<Value = Vec<(u32, u32, Vec<Step>)>> {
    let steps = prop::collection::vec((0..86u8, 0..16u64, 0..8u64, 1..5u32), 1..60);
    let slices = prop::collection::vec((0..2u32, 1..5u32, steps), 1..14);
    // First every task stores to every shared line: drops of the filter before that are another matter.
    let all: Vec<Step> = (0..16).step_by(2).map(|line| (50, line, 0, 1)).collect();
    slices.prop_map(move |slices| {
        let first = [1, 2, 3, 4, 1].map(|task| (0, task, all.clone()));
        first.into_iter().chain(slices).collect()
    })
}

#[test]
fn tasks_on_other_cpus_miss_as_if_nothing_was_filtered() {
    let Some(tap) = TapFilter::start() else { return };
    let tap = RefCell::new(tap);
    let places = prop::collection::vec(0..2u32, 4);
    let ran = runner(1500).run(&(machines(), task_slices(), places, 1..30u64), |(mut m, slices, on, window)| {
        // Threads of one core share its first level: there the filter is approximate, and a note lists it.
        m.topology = Topology { packages: 2, threads_per_core: 1, ..m.topology };
        let mut tap = tap.borrow_mut();
        let filter = Filter { by_task: true, ..filter_for(&m) };
        tap.begin(filter, 2);
        let (mut all, mut kept) = (Vec::new(), Vec::new());
        let mut executed = [0; 2];
        for (vcpu, task, steps) in &slices {
            tap.slice(*vcpu, *task);
            let mut whole = Vec::new();
            for &(what, line, word, insn) in steps {
                let record = reference(kind_of(what, true), line, word, insn, 1 + u64::from(*task));
                tap.run(1);
                tap.reference(record);
                whole.push(record.with_instructions(1));
            }
            executed[*vcpu as usize] += steps.len() as u64;
            kept.push((*vcpu, executed[*vcpu as usize], [switch(*task, 0), tap.sent()].concat()));
            all.push((*task, whole));
        }
        let tasks = on.iter().zip(1..).map(|(&cpu, pid)| Placed { pid, cpu }).collect();
        let place = PlacePolicy::Tasks { tasks, window_instructions: window };
        let exact = ModelOptions { filter, ..options(2) };
        let whole = feed::<Slow>(&m, &Policy::default(), &exact, &interleaved(&all, &on, window));
        let filtered = feed::<Fast>(&m, &Policy { place, ..Policy::default() }, &exact, &kept);
        prop_assert_eq!(level(&whole), level(&filtered), "{:?}", filter);
        prop_assert_eq!(&whole.nodes, &filtered.nodes);
        prop_assert_eq!(whole.sum().instructions, filtered.sum().instructions);
        Ok(())
    });
    ran.unwrap();
}

/// A thread's additions to its own counter of a line that both have a counter in.
fn additions(thread: u32) -> [Record; 2] {
    let at = 0x1000 + u64::from(thread) * 8;
    [access(Kind::Load, at, 8, 1), access(Kind::Store, at, 8, 2)]
}

/// Both threads in turns of so many additions, thread `n` on vCPU `on[n]`.
fn recorded(filter: Filter, on: [u32; 2], turns: u32, additions_a_turn: u32) -> Option<Vec<Chunk>> {
    let mut tap = TapFilter::start()?;
    let vcpus = 1 + on[1];
    tap.begin(filter, vcpus);
    let mut executed = [0; 2];
    let chunk = |turn: u32| {
        let (thread, vcpu) = (turn % 2, on[turn as usize % 2]);
        tap.slice(vcpu, 1 + thread);
        for record in (0..additions_a_turn).flat_map(|_| additions(thread)) {
            tap.run(1);
            tap.reference(record);
        }
        executed[vcpu as usize] += 2 * u64::from(additions_a_turn);
        (vcpu, executed[vcpu as usize], [switch(1 + thread, 0), tap.sent()].concat())
    };
    Some((0..turns).map(chunk).collect())
}

#[test]
fn two_threads_of_one_cpu_show_on_two_the_false_sharing_of_two() {
    let m = with_64_sets(2);
    let filter = Filter { by_task: true, ..of_64_sets() };
    let Some(one) = recorded(filter, [0, 0], 40, 500) else { return };
    let Some(two) = recorded(of_64_sets(), [0, 1], 40, 500) else { return };
    let modelled = |filter, cpus| ModelOptions { filter, order: Order::Modelled, ..options(cpus) };
    let tasks = vec![Placed { pid: 1, cpu: 0 }, Placed { pid: 2, cpu: 1 }];
    let place = PlacePolicy::Tasks { tasks, window_instructions: 1000 };
    let placed = feed::<Fast>(&m, &Policy { place, ..Policy::default() }, &modelled(filter, 1), &one);
    let pinned = feed::<Fast>(&m, &Policy::default(), &modelled(of_64_sets(), 2), &two);
    let apart = feed::<Fast>(&m, &Policy::default(), &modelled(filter, 1), &one);
    let false_sharing = |totals: &ModelTotals| totals.sum().levels[0].class(FalseSharing);
    assert_eq!(false_sharing(&apart), 0, "as recorded, on one CPU");
    // Out of 20,000 additions; until the second thread comes the line is not marked shared, and its repeats are
    // dropped. A placed round has one window of each CPU, where the slices of a recorded one follow one another without
    // idling.
    assert_eq!((false_sharing(&placed), false_sharing(&pinned)), (12_191, 19_002));
}

#[test]
fn a_store_of_several_parts_sends_every_byte_that_another_task_may_miss() {
    let Some(mut tap) = TapFilter::start() else { return };
    tap.begin(Filter { by_task: true, ..of_64_sets() }, 1);
    tap.slice(0, 1);
    tap.reference(store(0x1000));
    tap.reference(store(0x1000));
    tap.reference(store(0x1008));
    tap.wide_store(0x1000, 4, 2);
    tap.wide_store(0x1038, 2, 2);
    let sent: Vec<_> = tap.sent().iter().map(|record| (record.vaddr(), record.size())).collect();
    assert_eq!(sent, [(0x1000, 8), (0x1008, 8), (0x1000, 32), (0x1038, 8), (0x1040, 8)]);
}

#[test]
fn no_access_is_dropped_where_fields_may_move() {
    let Some(mut tap) = TapFilter::start() else { return };
    for cpus in [1, 2] {
        tap.begin(Filter { every_access: true, ..of_64_sets() }, cpus);
        tap.slice(0, 1);
        let whole: Vec<_> =
            [load(0x1000), load(0x1000), store(0x1008), load(0x1008), store(0x1008), load(0x1010)].to_vec();
        whole.iter().for_each(|record| tap.reference(*record));
        let places = |records: &[Record]| records.iter().map(|r| (r.kind(), r.vaddr())).collect::<Vec<_>>();
        let sent: Vec<Record> = tap.sent().into_iter().filter(|r| r.kind() != Some(Kind::Control)).collect();
        assert_eq!(places(&sent), places(&whole), "{cpus} CPUs");
    }
}

#[test]
fn a_policy_is_refused_by_name_where_the_filter_dropped_what_it_needs() {
    let m = with_64_sets(2);
    let refused = |filter, policy: Policy| {
        let options = ModelOptions { filter, ..options(2) };
        Model::new(&m, &policy, &options, NullObserver).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let store = StorePolicy::NonTemporal { sites: vec![CallSite { context: 0, insn: 2 }] };
    let around = Policy { store, ..Policy::default() };
    let plain = of_64_sets();
    assert!(refused(plain, around.clone()).starts_with("the store policy needs every store"));
    let ordered = Filter { ordered_stores: true, ..plain };
    assert_eq!(refused(ordered, around.clone()), "");
    assert!(refused(Filter { contexts: false, ..ordered }, around).contains("the trace has no calling contexts"));
    let tasks = vec![Placed { pid: 1, cpu: 1 }];
    let place = Policy { place: PlacePolicy::Tasks { tasks, window_instructions: 1 }, ..Policy::default() };
    assert!(refused(ordered, place.clone()).contains("`nearmiss trace --carry tasks`"));
    assert_eq!(refused(Filter { by_task: true, ..plain }, place.clone()), "");
    let one_line = Filter { index_bits: 0, ..plain };
    assert!(refused(one_line, place.clone()).contains("`nearmiss trace --carry tasks`"));
    assert_eq!(refused(Filter { clear_on_slice: true, ..one_line }, place), "");
    let fields = Policy { address: AddressPolicy::Fields { arrays: Vec::new() }, ..Policy::default() };
    assert!(refused(one_line, fields.clone()).contains("`nearmiss trace --carry fields`"));
    assert_eq!(refused(Filter { every_access: true, ..one_line }, fields), "");
}
