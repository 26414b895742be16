#![allow(clippy::unwrap_used)]

use super::*;
use crate::describe::preset;

const TRANSFER: u32 = 100;

fn contended() -> Contended {
    let mut machine = preset("zen4-genoa").unwrap().machine().unwrap();
    machine.latency.core_modified_cycles = TRANSFER;
    Contended::new(&machine, &super::super::tests::core())
}

fn loss(line: u64, now: u64) -> Loss {
    let (vaddr, now, instructions) = (line * 64, ticks(now), now);
    Loss { vaddr, now, instructions, latency_cycles: TRANSFER, size: 8, needed: Needed::default() }
}

/// A store that found its line gone, behind `others` to lines of their own.
fn store_behind(contended: &mut Contended, others: u64, loss: &Loss) -> Option<Takes> {
    (0..others).for_each(|other| contended.buffers((1000 + other) * 64, loss.instructions));
    contended.buffers(loss.vaddr, loss.instructions);
    contended.stores(loss)
}

/// Waits for these lines, in turn, of a core that computes `after` cycles between two accesses: of additions, or of
/// stores alone; `others`: stores to lines of their own between.
fn takes(lines: &[u64], loaded: bool, after: u64, others: u64) -> Vec<Option<Takes>> {
    let mut contended = contended();
    let mut now = Moment::default();
    let mut next = |line: &u64| {
        now = Moment { now: now.now + ticks(after), instructions: now.instructions + 10 };
        let at = |now: Moment| Loss { now: now.now, instructions: now.instructions, ..loss(*line, 0) };
        now.now += if loaded { contended.loads(&at(now)).unwrap_or(0) } else { 0 };
        let takes = store_behind(&mut contended, others, &at(now));
        now.now += if let Some(Takes::AtOnce(wait)) = takes { wait } else { 0 };
        takes
    };
    lines.iter().map(&mut next).collect()
}

#[test]
fn additions_to_one_line_take_more_the_longer_the_core_computes_between_them() {
    let mut contended = contended();
    let mut adds = |now| {
        let load = contended.loads(&loss(5, now)).unwrap_or(0);
        let Some(Takes::AtOnce(store)) = store_behind(&mut contended, 0, &loss(5, now)) else { return load };
        load + store
    };
    adds(1);
    // A fifth of a cycle an instruction: 32 cycles at 160.
    assert_eq!(adds(41), ticks(8));
    assert_eq!(adds(141), ticks(20));
    assert_eq!(adds(142), ticks(2), "as by a core that does nothing else");
}

#[test]
fn loads_of_what_the_core_has_not_stored_go_by_the_share_of_the_window() {
    let part = |at: u64, apart: u64, now: u64| Loss { vaddr: at, instructions: apart, ..loss(0, now) };
    // So many cycles computed, and instructions, from one use to the next.
    let adds_and_loads = |apart: u64, computed: u64| {
        let mut contended = Contended { loads: [0, ticks(70), ticks(70)], ..contended() };
        contended.loads(&part(0, 0, 1));
        store_behind(&mut contended, 0, &part(0, 0, 1));
        let of_addition = contended.loads(&part(0, apart, 1 + computed)).unwrap_or(0);
        store_behind(&mut contended, 0, &part(0, apart, 1 + computed));
        let behind = |contended: &Contended| part(8, apart, contended.done >> 16);
        let of_other = contended.hits(&behind(&contended));
        assert_eq!(contended.hits(&part(0, apart, contended.done >> 16)), 0, "the core's own");
        [of_addition, of_other].map(|ticks| ticks >> 16)
    };
    // A cycle an instruction from use to use, at most a transfer beyond what is computed.
    assert_eq!(adds_and_loads(60, 20), [12, 40 - 12]);
    assert_eq!(adds_and_loads(60, 80), [12, 0]);
    assert_eq!(adds_and_loads(150, 30), [30, 70 - 30]);
    let mut reader = Contended { loads: [0, ticks(70), ticks(70)], ..contended() };
    let waits = [(0, 1), (60, 21), (120, 121)].map(|(apart, now)| reader.loads(&part(0, apart, now)));
    assert_eq!(waits, [None, Some(ticks(40)), Some(ticks(12))]);
}

#[test]
fn stores_between_two_additions_leave_in_turn() {
    // Five turns of 12 cycles, as measured; the load's wait of 2 is a part of them.
    assert_eq!(takes(&[5, 5], true, 1, 4)[1], Some(Takes::AtOnce(ticks(60 - 1))));
    assert_eq!(takes(&[5, 5], true, 10, 1)[1], Some(Takes::AtOnce(ticks(24 - 10))));
    // What is computed takes longer than five turns, and no store waits.
    assert_eq!(takes(&[5, 5], true, 70, 4)[1], Some(Takes::AtOnce(0)));
    assert_eq!(takes(&[5, 5], true, 1, 40)[1], Some(Takes::AtOnce(ticks(70))), "a transfer at most");
    assert_eq!(takes(&[5, 5], false, 30, 4)[1], Some(Takes::InTheBuffer(ticks(60))), "without loads as well");
}

#[test]
fn stores_that_find_a_line_lost_a_moment_ago_leave_in_turn_as_well() {
    let hits = |others: u64, loaded: bool, now: u64| {
        let mut contended = contended();
        for now in [1, 2] {
            if loaded {
                contended.loads(&loss(5, now));
            }
            store_behind(&mut contended, 1, &loss(5, now));
        }
        let hit = Loss { instructions: 20, ..loss(5, (contended.done >> 16) + now) };
        (0..others).for_each(|other| contended.buffers((1000 + other) * 64, hit.instructions));
        contended.buffers(hit.vaddr, hit.instructions);
        contended.stores_again(&hit)
    };
    // Two turns of 12 cycles, of which some are computed.
    assert_eq!([1, 10, 30].map(|now| hits(1, true, now)), [23, 14, 0].map(|wait| Some(Takes::AtOnce(ticks(wait)))));
    assert_eq!(hits(1, false, 10), Some(Takes::InTheBuffer(ticks(24))));
    assert_eq!(hits(0, true, 10), None, "no store to another line lies between");
    assert_eq!(hits(1, true, 2 * u64::from(TRANSFER) + 1), None, "the line was lost long ago");
}

#[test]
fn an_older_file_has_one_store_between() {
    let mut machine = preset("zen4-genoa").unwrap().machine().unwrap();
    machine.latency.core_modified_cycles = TRANSFER;
    let mut core = super::super::tests::core();
    core.contended.as_mut().unwrap().between_stores_cycles = None;
    // 20 cycles beyond the 10 of the measurement, in two turns.
    assert_eq!(Contended::new(&machine, &core).turn, ticks(15));
}

#[test]
fn without_figures_of_far_uses_a_core_waits_for_what_is_left_of_a_transfer() {
    let waits = |computed: u64| {
        let mut contended = Contended { far_addition: None, loads: [0; 3], ..contended() };
        store_behind(&mut contended, 0, &loss(0, 1));
        contended.loads(&loss(0, 1 + computed));
        store_behind(&mut contended, 0, &loss(0, 1 + computed))
    };
    // 35 cycles beyond the 10 of the measurement are half of the 70 of several lines: half the way from 2 to 70.
    assert_eq!(waits(45), Some(Takes::AtOnce(ticks(36 + 10 - 45))));
    assert_eq!(waits(80), Some(Takes::AtOnce(0)), "the other CPU has the line meanwhile");
}

#[test]
fn the_time_of_a_load_is_taken_off_one_store_alone() {
    let mut contended = contended();
    for now in [1, 2] {
        contended.loads(&loss(0, now));
        store_behind(&mut contended, 4, &loss(0, now));
    }
    let next = store_behind(&mut contended, 4, &loss(0, 62));
    assert!(matches!(next, Some(Takes::AtOnce(wait)) if wait > ticks(50)), "{next:?}");
}

#[test]
fn additions_to_several_lines_take_a_transfer_each() {
    let taken: Vec<_> = takes(&[5, 9, 5, 9, 1, 5], true, 30, 0);
    let [two, more] = [ticks(70 + 10 - 30), ticks(70 + 10 - 30)].map(|takes| Some(Takes::AtOnce(takes)));
    assert_eq!(taken, [None, None, two, two, None, more]);
}

#[test]
fn stores_alone_wait_in_the_buffer_by_the_lines_in_play() {
    let [one, two, more] = [ticks(8), ticks(40), ticks(60)].map(|takes| Some(Takes::InTheBuffer(takes)));
    assert_eq!(takes(&[5, 5, 9, 5, 9], false, 30, 0), [None, one, None, two, two]);
    assert_eq!(takes(&[5, 9, 1, 5, 9, 9, 9, 9], false, 30, 0), [None, None, None, more, more, more, two, one]);
}

#[test]
fn atomics_wait_for_what_is_left_of_a_transfer() {
    let mut contended = contended();
    assert_eq!([1, 2].map(|now| contended.atomics(&loss(0, now))), [None, Some(ticks(30))]);
    // 20 cycles beyond the 25 of the measurement are a third of the 60 of several lines.
    let mut later = super::tests::contended();
    assert_eq!([1, 46].map(|now| later.atomics(&loss(0, now)))[1], Some(ticks(40 + 25 - 45)));
    assert_eq!(later.atomics(&loss(0, 240)), Some(0));
}

#[test]
fn loads_have_figures_of_their_own() {
    let mut contended = contended();
    assert_eq!([1, 11].map(|now| contended.loads(&loss(1, now))), [None, Some(ticks(3))]);
    let mut stored = Contended { loads: [ticks(90); 3], ..super::tests::contended() };
    assert_eq!([1, 11].map(|now| stored.loads(&loss(0, now))), [None, Some(ticks(90))]);
    stored.stores(&loss(0, 91));
    let next = stored.loads(&loss(0, 91));
    assert_eq!(next, Some(ticks(2)), "no longer than an addition by a CPU that stores to the line as well");
}

/// So many cycles in fifty instructions.
fn chain(cycles: u32) -> Needed {
    Needed { cycles, instructions: 50 }
}

#[test]
fn a_load_waits_the_longer_the_more_is_computed_from_its_value() {
    let waits_behind = |needed: u32, apart: u64, stores: bool, computed: u64| {
        let mut contended = Contended { far_addition: Some(0.0), far_load: 0.0, ..contended() };
        for now in [1, 2] {
            contended.loads(&loss(0, now));
            if stores {
                contended.stores(&loss(0, now));
            }
        }
        let begins = (contended.done >> 16) + computed;
        contended.loads(&Loss { needed: chain(needed), instructions: 2 + apart, ..loss(0, begins) })
    };
    let waits = |needed, apart, stores| waits_behind(needed, apart, stores, if stores { 90 } else { 60 });
    // 128 cycles from the value take 96 where the core adds, and else 64.
    assert_eq!(waits(0, 100, true), Some(ticks(2)));
    assert_eq!([128, 400].map(|needed| waits(needed, 100, true)), [Some(ticks(96)); 2]);
    assert_eq!(waits(80, 100, true), Some(ticks(48)));
    assert_eq!(waits(400, 10, true), Some(ticks(48)), "a fifth of the chain's instructions");
    assert_eq!(waits(400, 100, false), Some(ticks(64)));
    let longer = [96, 140, 300].map(|computed| waits_behind(400, 100, true, computed));
    assert_eq!(longer, [96, 52, 0].map(|cycles| Some(ticks(cycles))), "192 cycles from use to use, or as computed");
}

#[test]
fn a_load_behind_the_one_that_found_the_line_gone_waits_as_that_would() {
    let mut contended = Contended { far_addition: Some(0.0), far_load: 0.0, ..contended() };
    let at = |now: u64, needed: u32| Loss { needed: chain(needed), instructions: 100, ..loss(0, now) };
    contended.loads(&Loss { instructions: 1, ..at(1, 0) });
    assert_eq!(contended.loads(&at(71, 0)), Some(ticks(2)));
    assert!(contended.is_in_play(0) && !contended.is_in_play(64));
    assert_eq!(contended.hits(&at(73, 0)), 0);
    assert_eq!(contended.hits(&at(75, 300)), ticks(2 * 64 - 70 - 2));
    assert_eq!(contended.hits(&at(140, 300)), 0, "the line is there");
    assert_eq!(contended.hits(&at(140 + 2 * u64::from(TRANSFER), 300)), 0);
}

#[test]
fn a_line_that_comes_back_late_is_handed_over_and_not_contended() {
    assert_eq!(takes(&[5, 5], false, (1 << 14) + 1, 0), [None, None]);
    assert_eq!(takes(&[5, 5], false, 1 << 14, 0), [None, Some(Takes::InTheBuffer(ticks(8)))]);
    // Two windows of 100 instructions.
    let after = |instructions| {
        let mut contended = contended();
        [0, instructions].map(|at| contended.stores(&Loss { instructions: at, ..loss(0, at + 1) }))[1]
    };
    assert_eq!([after(200), after(201)], [Some(Takes::InTheBuffer(ticks(8))), None]);
}

#[test]
fn a_line_from_farther_takes_longer_in_proportion() {
    let mut contended = contended();
    let mut stores = |now, cycles| contended.stores(&Loss { latency_cycles: cycles, ..loss(0, now) });
    stores(1, 3 * TRANSFER);
    assert_eq!(stores(2, 3 * TRANSFER), Some(Takes::InTheBuffer(ticks(24))));
    assert_eq!(stores(3, TRANSFER / 2), Some(Takes::InTheBuffer(ticks(8))));
}

#[test]
fn a_machine_without_times_has_no_contended_lines() {
    let nothing = [0; 3];
    let mut contended =
        Contended { additions: nothing, stores: nothing, atomics: nothing, loads: nothing, ..contended() };
    assert_eq!([1, 2].map(|now| contended.stores(&loss(0, now))), [None, None]);
    assert_eq!([3, 4].map(|now| contended.atomics(&loss(0, now))), [None, None]);
    assert_eq!([5, 6].map(|now| contended.loads(&loss(0, now))), [None, None]);
}

#[test]
fn a_line_that_is_seldom_lost_and_used_all_the_time_is_contended() {
    // Two windows are 200 instructions; the line is lost each 2000.
    let takes_again = |stores_apart: u64| {
        let mut contended = contended();
        let mut lost_at = |now: u64| {
            let taken = contended.loads(&loss(5, now)).is_some();
            let stored = store_behind(&mut contended, 1, &loss(5, now)).is_some();
            (1..2000 / stores_apart).for_each(|n| contended.buffers(5 * 64, now + n * stores_apart));
            (taken, stored)
        };
        lost_at(10);
        lost_at(2010)
    };
    assert_eq!(takes_again(150), (true, true));
    assert_eq!(takes_again(300), (false, false), "it is handed over");
}

#[test]
fn a_load_long_ago_does_not_make_the_core_wait_for_stores() {
    let second_store = |loaded_before: u64| {
        let (mut contended, loaded_at) = (contended(), 100);
        contended.loads(&loss(5, loaded_at));
        store_behind(&mut contended, 1, &loss(5, loaded_at + loaded_before - 50));
        store_behind(&mut contended, 1, &loss(5, loaded_at + loaded_before))
    };
    assert!(matches!(second_store(60), Some(Takes::AtOnce(_))));
    assert!(matches!(second_store((WITHIN >> 16) + 1), Some(Takes::InTheBuffer(_))));
}
