//! The tap's filter, in software, must not change the first level's misses on machines that it is exact for.
#![allow(clippy::unwrap_used)]

use crate::support::filtered::{level, machines};
use crate::support::tap_filter::TapFilter;
use crate::support::*;
use nearmiss_machine::describe::filter_for;
use nearmiss_machine::model::{ModelOptions, ModelTotals};
use nearmiss_machine::observer::NullObserver;
use nearmiss_record::machine::*;
use nearmiss_record::policy::Policy;
use nearmiss_record::reference::*;
use nearmiss_record::run::Filter;
use nearmiss_record::units::InsnId;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::cell::RefCell;

/// Instructions of an epoch of two vCPUs, and of the time for which a line stays shared (native/tap/sharing.c).
const EPOCH: u64 = 2 << 17;
const LIFETIME: u64 = 32 * EPOCH;

/// A slice: its CPU, its task, how many instructions precede its references, and those: what, line and word.
type SliceOf = (u32, u32, u64, Vec<(u8, u64, u64)>);

/// Three tasks wander between two CPUs; epochs go by between slices or not.
fn slices() -> impl Strategy<Value = Vec<SliceOf>> {
    let instructions = prop_oneof![Just(0), Just(1000), Just(EPOCH), Just(LIFETIME)];
    let references = prop::collection::vec((0..100u8, 0..24u64, 0..8u64), 1..60);
    prop::collection::vec((0..2u32, 1..4u32, instructions, references), 1..14)
}

fn kind_of(what: u8, no_fetches: bool) -> Kind {
    match what {
        0..50 => Kind::Load,
        50..82 => Kind::Store,
        82..88 => Kind::Atomic,
        88..92 => Kind::NtStore,
        _ if no_fetches => Kind::Load,
        _ => Kind::Fetch,
    }
}

#[test]
fn filtering_changes_no_miss() {
    let Some(tap) = TapFilter::start() else { return };
    let tap = RefCell::new(tap);
    let mut runner =
        TestRunner::new(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() });
    let ran = runner.run(&(machines(), slices()), |(m, slices)| {
        let mut tap = tap.borrow_mut();
        let filter = filter_for(&m);
        // Behind an inclusive unified level fetches push out data that the filter takes for held.
        let no_fetches = m.caches[2].inclusion == Inclusion::Inclusive;
        tap.begin(filter, 2);
        let (mut all, mut kept) = (Vec::new(), Vec::new());
        for (slice, (cpu, task, instructions, references)) in slices.iter().enumerate() {
            tap.slice(*cpu, *task);
            tap.run(*instructions);
            let mut whole = Vec::new();
            for &(what, line, word) in references {
                let kind = kind_of(what, no_fetches);
                // Fetches have pages of their own: code is not written. A third of the lines are one CPU's own, a third
                // one task's own.
                let page = if kind == Kind::Fetch { 2 } else { 0 };
                let page = page + 16 * [0, 1 + u64::from(*cpu), 3 + u64::from(*task)][line as usize % 3];
                let address = (page << 12) + line * 64 + word * 8;
                let record = Record::reference(kind, address, 8, 0, InsnId(0), page, 0);
                tap.reference(record);
                whole.push(record);
            }
            all.push((*cpu, slice as u64, whole));
            kept.push((*cpu, slice as u64, tap.sent()));
        }
        let exact = ModelOptions { filter, ..options(2) };
        let whole = replay_on(&m, &Policy::default(), &exact, &all, NullObserver).0;
        let filtered = replay_on(&m, &Policy::default(), &exact, &kept, NullObserver).0;
        prop_assert_eq!(level(&whole), level(&filtered), "{:?}", filter);
        prop_assert_eq!(&whole.nodes, &filtered.nodes);
        let lines = |totals: &ModelTotals| totals.sets.iter().map(|s| s.lines.clone()).collect::<Vec<_>>();
        prop_assert_eq!(lines(&whole), lines(&filtered));
        Ok(())
    });
    ran.unwrap();
}

/// Slices on the filter of 64 sets: CPU, task, instructions ahead, references; how many references each sent.
fn sent_of(tap: &mut TapFilter, slices: &[(u32, u32, u64, Vec<Record>)]) -> Vec<usize> {
    tap.begin(Filter { line_log2: 6, index_low: 6, index_bits: 6, ..Filter::default() }, 2);
    let mut sent = Vec::new();
    for (cpu, task, instructions, references) in slices {
        tap.slice(*cpu, *task);
        tap.run(*instructions);
        references.iter().for_each(|record| tap.reference(*record));
        sent.push(tap.sent().iter().filter(|record| record.kind() != Some(Kind::Control)).count());
    }
    sent
}

#[test]
fn a_line_that_two_tasks_write_on_two_cpus_is_sent_whole_for_as_long_as_they_do() {
    let Some(mut tap) = TapFilter::start() else { return };
    let slices: Vec<_> = (0..400u32).map(|n| (n % 2, 1 + n % 2, EPOCH, vec![store(0x1000); 100])).collect();
    let sent = sent_of(&mut tap, &slices);
    assert_eq!(sent[0], 1, "until another comes its line is its own");
    assert!(sent[1..].iter().all(|n| *n == 100), "{sent:?}");
}

#[test]
fn a_task_that_moves_takes_its_lines_along() {
    let Some(mut tap) = TapFilter::start() else { return };
    let mine: Vec<_> = (0..64 * 100).map(|n| store(0x1000 + n % 64 * 64)).collect();
    let slices: Vec<_> = (0..50u32).map(|n| (n % 2, 1, 1000, mine.clone())).collect();
    assert_eq!(sent_of(&mut tap, &slices), vec![64; 50], "each slice sends a line once");
}

#[test]
fn tasks_of_one_cpu_share_nothing_by_taking_turns() {
    let Some(mut tap) = TapFilter::start() else { return };
    let slices: Vec<_> = (0..50u32).map(|n| (0, 1 + n % 3, 1000, vec![store(0x1000); 100])).collect();
    let sent = sent_of(&mut tap, &slices);
    assert_eq!((sent[0], sent.iter().sum::<usize>()), (1, 1));
}

#[test]
fn a_line_is_shared_no_more_when_nothing_passes_for_a_while() {
    let Some(mut tap) = TapFilter::start() else { return };
    let touches = |cpu, task, instructions| (cpu, task, instructions, vec![store(0x1000); 10]);
    let slices = [
        touches(0, 1, 0),
        touches(1, 2, 0),
        touches(1, 2, LIFETIME / 2),
        touches(1, 2, LIFETIME / 2), // a lifetime after it passed to task 2
        touches(0, 1, LIFETIME),     // a lifetime apart: it passes, and is not shared for that
        touches(1, 2, EPOCH),        // and again
    ];
    assert_eq!(sent_of(&mut tap, &slices), [1, 10, 10, 1, 1, 10]);
}

#[test]
fn readers_are_filtered_and_what_one_of_them_writes_is_sent_to_all() {
    let Some(mut tap) = TapFilter::start() else { return };
    let reads = |cpu, task| (cpu, task, 0, vec![load(0x1000); 10]);
    let slices = [reads(0, 1), reads(1, 2), reads(0, 1), (1, 2, 0, vec![store(0x1000)]), reads(0, 1), reads(1, 2)];
    assert_eq!(sent_of(&mut tap, &slices), [1, 1, 0, 1, 10, 10]);
    // Written once and read by all from then on: shared for a lifetime, no longer.
    let later = [&slices[..4], &[(0, 1, LIFETIME, vec![load(0x1000); 10])]].concat();
    assert_eq!(sent_of(&mut tap, &later), [1, 1, 0, 1, 1]);
}
