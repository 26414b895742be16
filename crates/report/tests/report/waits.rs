//! Waits divided by reason.

#![allow(clippy::unwrap_used)]

use crate::support::{Builder, Event};
use nearmiss_record::model::MissClass::*;
use nearmiss_record::model::{ObjectKind, Tally};
use nearmiss_record::waits::{Reason, Wait, Waits};

const CACHES: &[(u8, u64, u32)] = &[(1, 32 << 10, 8), (2, 1 << 20, 16), (3, 16 << 20, 16)];

fn program() -> Builder {
    let mut b = Builder::new(&["program"], CACHES);
    b.function("main", "/bin/program").function("worker", "/bin/program").function("clear_page", "[kernel]");
    b.object(ObjectKind::Heap, "table", 1, None, Some(16)).object(ObjectKind::Global, "flag", 1, Some(64), Some(64));
    b.task(100, "program");
    b
}

#[test]
fn the_parts_of_a_wait_add_up_to_it_and_follow_what_a_miss_costs() {
    let mut b = program();
    // A conflict miss of L1 costs 14 - 4 cycles, a capacity miss of all levels 10 + 32 + 204.
    b.event(Event { object: "table", count: 1_000, missed: &[Conflict], ..Event::default() });
    b.event(Event { object: "table", count: 500, missed: &[Capacity, Capacity, Capacity], ..Event::default() });
    let waits = Waits::new(&b.model);
    let whole = b.model.totals.stall_cycles;
    assert_eq!(whole, 1_000 * 14 + 500 * 250);
    let parts = waits.of(&b.model.totals);
    let (conflict, capacity) = (1_000.0 * 10.0, 500.0 * 246.0);
    let share = |weight: f64| (whole as f64 * weight / (conflict + capacity)).round() as u64;
    assert_eq!(parts[Reason::Conflict as usize], share(conflict));
    assert_eq!(parts[Reason::Capacity as usize], share(capacity));
    assert!(parts.iter().sum::<u64>().abs_diff(whole) <= 4);
}

#[test]
fn a_wait_without_a_miss_has_no_better_reason() {
    let b = program();
    let tally = Tally { stall_cycles: 77, ..Tally::default() };
    assert_eq!(Waits::new(&b.model).of(&tally), [0, 0, 0, 0, 0, 0, 0, 77, 0]);
}

#[test]
fn no_miss_is_the_reason_of_a_wait_behind_a_branch() {
    let mut b = program();
    b.event(Event { object: "table", count: 1_000, missed: &[Conflict], ..Event::default() });
    let misses = b.model.totals.stall_cycles;
    b.model.totals.stall_cycles += 5_000;
    b.model.totals.mispredicted_cycles = 5_000;
    let parts = Waits::new(&b.model).of(&b.model.totals);
    assert_eq!([parts[Reason::Conflict as usize], parts[Reason::Misprediction as usize]], [misses, 5_000]);
    assert!(!Reason::Misprediction.can_be_saved());
}

#[test]
fn a_line_of_another_cpu_costs_its_transfer_once() {
    let mut b = program();
    b.event(Event { object: "flag", count: 100, missed: &[FalseSharing, FalseSharing], ..Event::default() });
    b.event(Event { object: "table", count: 100, missed: &[Capacity, Capacity], ..Event::default() });
    // Sharing: 10 at L1, 90 - 14 from the other CPU at L2. Capacity: 10 and 32.
    let parts = Waits::new(&b.model).of(&b.model.totals);
    let ratio = parts[Reason::FalseSharing as usize] as f64 / parts[Reason::Capacity as usize] as f64;
    assert!((ratio - 86.0 / 42.0).abs() < 0.001, "{parts:?}");
}

#[test]
fn the_heaviest_waits_name_function_level_and_object() {
    let mut b = program();
    let all = &[Capacity, Capacity, Capacity];
    b.event(Event { function: "worker", object: "table", count: 3_000, missed: all, ..Event::default() });
    b.event(Event { function: "main", object: "flag", count: 2_000, missed: &[Conflict], ..Event::default() });
    let first = &[Compulsory, Compulsory, Compulsory];
    b.event(Event { function: "clear_page", object: "table", count: 1_000, missed: first, ..Event::default() });
    let waits = Waits::new(&b.model).heaviest(3);
    let words: Vec<String> = waits.iter().map(Wait::words).collect();
    assert_eq!(
        words,
        ["73%: capacity misses of L3 in `worker` on `table`", "2.7%: conflict misses of L1 in `main` on `flag`",]
    );
    let reasons = Waits::new(&b.model).reasons(&b.model.totals);
    let words: Vec<&str> = reasons.iter().map(|(words, _)| words.as_str()).collect();
    assert_eq!(words, ["capacity misses of L3", "first touches", "conflict misses of L1"]);
}
