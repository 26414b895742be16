//! Waits for lines that are fetched ahead.

use super::tests::{followed, from, interval, run_on};
use super::*;
use nearmiss_code::Chain;
use nearmiss_record::machine::{Region, Streams as Followed};

#[test]
fn a_stream_of_memory_that_leaves_lines_out_takes_what_is_fetched_in_vain() {
    let ends = [(64, 300), (112, 300), (128, 300), (128, 40)].map(|(bytes, latency)| {
        let mut interval = interval();
        interval.streams = Some(Streams::new(&followed(8, 1 << 30)));
        run_on(interval, (0..1000).map(|n| (1, Kind::Load, 1, 0x4000_0000 + n * bytes, latency)), &[]).1
    });
    assert_eq!(ends, [9891, 24831, 29811, 2397], "elements of 64, 112 and 128 bytes in memory, and nearer");
}

#[test]
fn rows_that_are_made_a_line_longer_take_no_longer() {
    let chain = [(1, from(&[1], Some(Chain { instructions: 4, cycles: 4.0 })))];
    let end = |stride: u64, chained: bool| {
        let walk = (0..3000u64).map(|n| (4, Kind::Load, 1, 0x4000_0000 + n * stride * 64, 300));
        let mut interval = interval();
        interval.streams = Some(Streams::new(&followed(64, 1 << 30)));
        run_on(interval, walk, if chained { &chain } else { &[] }).1
    };
    for (crowded, chained) in (60..70).chain(120..136).chain(250..260).flat_map(|n| [(n, false), (n, true)]) {
        let [before, after] = [end(crowded, chained), end(crowded + 1, chained)];
        assert!(after as f64 <= 1.03 * before as f64, "{crowded} lines: {before}, one more: {after}");
    }
}

#[test]
fn atomics_wait_one_by_one_or_as_loads_do() {
    let end = |kind: Kind, atomics_window: u64| {
        let interval = Interval { atomics_window, ..interval() };
        run_on(interval, (0..100).map(|n| (10, kind, 1, n * 7 % 61 * 8192 + n * 5 % 60 * 64, 300)), &[]).1
    };
    assert_eq!(end(Kind::Atomic, 0), 1000 + 100 * 300, "the core waits for each");
    assert_eq!(end(Kind::Atomic, 100), end(Kind::Load, 0), "their lines are requested ahead");
    assert!(end(Kind::Load, 0) < 10_000);
}

#[test]
fn a_line_that_comes_with_a_missed_one_takes_few_cycles_behind_it() {
    let chain = [(1, from(&[2], None)), (2, from(&[1], None))];
    let end = |region: Option<Region>| {
        let second_line = |n: u64| n % 2 * 2 * 64;
        let visits = (0..100).map(|n| (10, Kind::Load, 1 + n as u32 % 2, (8 + n / 2) * 8192 + second_line(n), 300));
        let mut interval = interval();
        interval.streams = Some(Streams::new(&Followed { region, ..followed(8, 4096) }));
        run_on(interval, visits, &chain).1
    };
    let all = 10 + 100 * 300 - 100;
    assert_eq!([end(None), end(Some(Region { lines: 1, wait_cycles: 30 }))], [all; 2], "two lines away");
    let saved = 48 * 300 * 9 / 10;
    assert_eq!(end(Some(Region { lines: 4, wait_cycles: 30 })), all - saved, "from the third visit on");
}

#[test]
fn a_line_near_a_missed_one_comes_no_later_than_on_its_own() {
    // A list whose credit and link lie two lines apart; both addresses come from the link before.
    let chain = [(1, from(&[1], None)), (2, from(&[1], None))];
    let end = |region: Option<Region>| {
        let line = |n: u64| (n + 1) % 2 * 2 * 64;
        let visits = (0..100).map(|n| (10, Kind::Load, 2 - n as u32 % 2, (8 + n / 2) * 8192 + line(n), 40));
        let mut interval = interval();
        interval.streams = Some(Streams::new(&Followed { region, ..followed(8, 4096) }));
        run_on(interval, visits, &chain).1
    };
    assert_eq!(end(Some(Region { lines: 4, wait_cycles: 30 })), end(None));
}

#[test]
fn the_first_lines_of_a_stream_are_on_their_way_when_they_are_needed() {
    // Six lines in a row of each of many places; what the sixth one holds decides where to go on.
    let chain = [(1, from(&[2], None)), (2, from(&[2], None))];
    let end = |trained_by: u32| {
        let line = |n: u64| (8 + n / 6) * 8192 + n % 6 * 64;
        let visits = (0..600).map(|n| (2, Kind::Load, 1 + u32::from(n % 6 == 5), line(n), 40));
        let mut interval = interval();
        interval.streams = Some(Streams::new(&Followed { trained_by, ..followed(8, 4096) }));
        run_on(interval, visits, &chain).1
    };
    let visits = 100;
    assert!(end(1) >= 100 * (40 - 2) * 9 / 10, "{} for {visits} visits of 40 cycles each", end(1));
}
