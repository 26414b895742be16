use super::super::interval::tests::{from, interval};
use super::super::interval::{Interval, Waiting};
use super::super::translation::ApartWalks;
use super::*;
use crate::describe::preset;
use nearmiss_code::Needed;
use nearmiss_record::machine::{SecondTlb, Tlb};
use nearmiss_record::reference::Kind;

const ENTRIES_A_LINE: u64 = 8;

/// Levels of 1 MiB and 4 MiB behind the first, 10, 50 and 400 cycles away.
fn page_table() -> PageTable {
    let mut machine = preset("zen4-genoa").unwrap().machine().unwrap();
    machine.caches.iter_mut().for_each(|cache| match cache.level {
        2 => cache.size.0 = 1 << 20,
        3 => cache.size.0 = 4 << 20,
        _ => {}
    });
    machine.latency.level_cycles = vec![4, 10, 50];
    machine.latency.memory_local_cycles = 400;
    PageTable::new(&machine)
}

/// Ticks of a walk to one entry twice, with so many misses of each level from the second on between.
fn again(second: u64, third: u64) -> Ticks {
    let mut table = page_table();
    table.line(5);
    (0..second).for_each(|_| table.fills(0b011));
    (0..third).for_each(|_| table.fills(0b101));
    table.line(5)
}

#[test]
fn a_line_goes_out_when_as_many_have_come_in() {
    let (second, third) = ((1 << 20) / 64, (4 << 20) / 64);
    assert_eq!([again(0, 0), again(second - 1, 0)], [0; 2]);
    assert_eq!([again(second, 0), again(second, third - 1)], [ticks(40); 2]);
    assert_eq!(again(second, third), ticks(390));
    assert_eq!(again(0, third), 0, "the second level still has it");
}

#[test]
fn a_line_without_a_walk_is_in_the_outermost_cache_and_serves_its_neighbours_then() {
    let mut table = page_table();
    assert_eq!([table.line(8), table.line(9), table.line(15)], [ticks(40), 0, 0]);
    assert_eq!(table.line(8 + ENTRIES_A_LINE), ticks(40));
}

#[test]
fn walks_push_out_each_others_lines() {
    let held = (1 << 20) / 64;
    let second_round = |lines: u64| {
        let mut table = page_table();
        let mut round = || (0..lines).map(|line| table.line(line * ENTRIES_A_LINE)).max().unwrap();
        round();
        round()
    };
    assert_eq!([second_round(held), second_round(held + 1)], [0, ticks(40)]);
}

#[test]
fn a_walk_to_one_table_of_too_many_takes_longer() {
    let mut machine = preset("zen4-genoa").unwrap().machine().unwrap();
    let second = SecondTlb { walk_cycles: 30, far_walk_cycles: 90, ..SecondTlb::default() };
    machine.tlb = Some(Tlb { second: Some(second), ..Tlb::default() });
    let again = |tables: u64, is_large: bool| {
        let mut table = PageTable::new(&machine);
        table.walk(0, is_large);
        (1..tables).for_each(|number| _ = table.walk(number << TABLE_LOG2, is_large));
        table.walk(0, is_large)
    };
    assert_eq!(again(TABLES.into(), false), Way { wait: 0, is_far: false });
    assert_eq!(again(u64::from(TABLES) + 1, false), Way { wait: ticks(60), is_far: true });
    assert_eq!(again(u64::from(TABLES) + 1, true), Way { wait: 0, is_far: false }, "a large page has no such table");
}

/// A load from memory that the core comes to with this instruction.
fn load(vaddr: u64, instructions: u64, stalls: u64) -> Waiting<'static> {
    Waiting {
        kind: Kind::Load,
        insn: 1,
        vaddr,
        size: 8,
        latency_cycles: 300,
        missed: 7,
        writes_back: false,
        reread: None,
        lost: false,
        needed: Needed::default(),
        instructions,
        clock: ticks(instructions + stalls),
        pace: ticks(1),
        at: None,
        origin: None,
    }
}

#[test]
fn a_page_that_no_level_holds_is_walked_to() {
    let mut interval = interval();
    assert!(interval.looks_up(0x5000, 0x3000, 2));
    // 7 + 30 cycles for the walk, 36 for its entry in the third level instead of the second, less a window of 100.
    assert_eq!(interval.waits(&load(0x5000, 0, 0)), 300 + 7 + 30 + 36 - 100);
    assert!(!interval.looks_up(0x5008, 0x3008, 2));
}

/// Wait for three loads in a row from pages that no level holds.
fn three_walks(mut interval: Interval) -> u32 {
    (0..3).fold(0, |stalls, page| {
        assert!(interval.looks_up(page << 12, (page * 3) << 12, 2));
        stalls + interval.waits(&load(page << 12, page, stalls.into()))
    })
}

#[test]
fn a_walk_begins_so_long_behind_the_one_before() {
    let mut apart = interval();
    apart.apart_walks = ApartWalks { small: ticks(25), large: ticks(10), far: ticks(25) };
    // All three entries are on one line.
    let side_by_side = 300 + 7 + 30 + 36 - 100;
    assert_eq!([three_walks(interval()), three_walks(apart)], [side_by_side, side_by_side + 2 * 25 - 36 - 2]);
}

#[test]
fn walks_of_late_addresses_take_turns_as_others_do() {
    // Twelve loads by the values of another one, which comes from the second level.
    let by_index = |index_cycles: u32| {
        let mut apart = interval();
        apart.apart_walks = ApartWalks { small: ticks(25), large: ticks(10), far: ticks(25) };
        let near = |insn: u32, load: Waiting<'static>| Waiting { insn, latency_cycles: 20, missed: 1, ..load };
        apart.waits(&Waiting { latency_cycles: index_cycles, ..near(2, load(0, 0, 0)) });
        let origin = from(&[2], None);
        (1..13).fold(0, |stalls, page| {
            apart.looks_up(page << 12, (page * 3) << 12, 2);
            stalls + apart.waits(&Waiting { origin: Some(&origin), ..near(1, load(page << 12, page, stalls.into())) })
        })
    };
    assert_eq!(by_index(60), by_index(20));
    assert!(by_index(20) > 10 * 25 - 100 - 12);
}
