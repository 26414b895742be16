use super::*;
use crate::describe::preset;
use crate::model::core::values::COUNTED_TOGETHER;
use nearmiss_code::Chain;
use nearmiss_record::machine::{SecondTlb, Streams as Followed, Tlb};
use nearmiss_record::units::{Bytes, InsnId};
use proptest::prelude::*;

/// Cycles of a line that another CPU has.
const TRANSFER: u32 = 300;

/// A cycle an instruction, a window of 100, four fill buffers.
pub(in super::super) fn interval() -> Interval {
    of_core(0, 0.0)
}

pub(super) fn followed(longest_stride_lines: u32, within: u64) -> Followed {
    let line_cycles = vec![2.0, 4.0, 10.0];
    let (within, apart_line_cycles) = (Bytes(within), vec![2.5, 4.0, 30.0]);
    Followed { followed: 4, trained_by: 2, longest_stride_lines, within, line_cycles, apart_line_cycles, region: None }
}

fn of_core(fetch_ahead_instructions: u32, fill_cycles: f64) -> Interval {
    let mut machine = preset("zen4-genoa").unwrap().machine().unwrap();
    machine.latency.core_modified_cycles = TRANSFER;
    let core = Core { fetch_ahead_instructions, fill_cycles, ..super::super::tests::core() };
    machine.streams = Some(followed(8, 4096));
    let second =
        Some(SecondTlb { entries: 8, ways: 4, walk_cycles: 30, large_walk_cycles: 20, ..SecondTlb::default() });
    machine.tlb = Some(Tlb { entries: 4, miss_cycles: 7, second, ..Tlb::default() });
    Interval::new(&machine, &core, &PagePolicy::Recorded)
}

/// Runs accesses, each so many instructions after the one before; returns the wait of each, and the end.
pub(in super::super) fn run(
    accesses: impl IntoIterator<Item = (u64, Kind, u32, u64, u32)>,
    origin: &[(u32, Origin)],
) -> (Vec<u32>, u64) {
    run_on(interval(), accesses, origin)
}

pub(super) fn run_on(
    mut interval: Interval,
    accesses: impl IntoIterator<Item = (u64, Kind, u32, u64, u32)>,
    origin: &[(u32, Origin)],
) -> (Vec<u32>, u64) {
    let (mut instructions, mut stalls) = (0, 0);
    let waits = accesses
        .into_iter()
        .map(|(after, kind, insn, vaddr, latency_cycles)| {
            instructions += after;
            let origin = origin.iter().find(|(of, _)| *of == insn).map(|(_, origin)| origin);
            let clock = ticks(instructions + stalls);
            let missed = match latency_cycles {
                0 => 0,
                1..=100 => 1,
                _ => 7,
            };
            let pace = ticks(1);
            let what = Waiting {
                kind,
                insn,
                vaddr,
                size: 8,
                latency_cycles,
                missed,
                writes_back: false,
                reread: None,
                lost: false,
                needed: Needed::default(),
                instructions,
                clock,
                pace,
                at: None,
                origin,
            };
            let wait = interval.waits(&what);
            stalls += u64::from(wait);
            wait
        })
        .collect();
    (waits, instructions + stalls)
}

/// Addresses that no stream has.
pub(in super::super) fn scattered(n: u64) -> u64 {
    (n * 7 % 61) * 8192 + (n * 5 % 60) * 64
}

fn loads(count: u64, after: u64, latency: u32) -> impl Iterator<Item = (u64, Kind, u32, u64, u32)> {
    (0..count).map(move |n| (after, Kind::Load, 1, scattered(n), latency))
}

pub(in super::super) fn from(loads: &[u32], own_chain: Option<Chain>) -> Origin {
    from_afar(&loads.iter().map(|load| (*load, 0)).collect::<Vec<_>>(), own_chain)
}

/// Loads and their distances.
pub(in super::super) fn from_afar(loads: &[(u32, u32)], own_chain: Option<Chain>) -> Origin {
    let cycles = vec![0.0; loads.len()];
    let (loads, distances) = loads.iter().map(|(id, distance)| (InsnId(*id), *distance)).unzip();
    Origin { loads, distances, cycles, own_chain, ..Origin::default() }
}

#[test]
fn a_miss_alone_waits_for_what_the_window_does_not_hide() {
    assert_eq!(run(loads(1, 10, 300), &[]).0, [200]);
    assert_eq!(run(loads(1, 10, 90), &[]).0, [0]);
}

#[test]
fn misses_within_the_window_wait_together_and_others_one_by_one() {
    assert_eq!(run(loads(3, 10, 300), &[]).0, [200, 0, 0]);
    assert_eq!(run(loads(3, 200, 300), &[]).0, [200, 200, 200]);
}

#[test]
fn misses_beyond_the_fill_buffers_wait_for_one() {
    let (waits, end) = run(loads(8, 1, 300), &[]);
    assert_eq!(waits, [200, 9, 9, 9, 269, 9, 9, 9], "{end}");
}

#[test]
fn misses_that_follow_one_another_through_memory_wait_one_by_one() {
    let chain = Some(Chain { instructions: 10, cycles: 4.0 });
    let (_, end) = run(loads(50, 10, 300), &[(1, from(&[1], chain))]);
    assert_eq!(end, 10 + 50 * 300 - 100, "the last one's line comes a window after its instruction");
    let through_another = [(0..50).map(|n| {
        if n % 2 == 0 { (10, Kind::Load, 1, scattered(n), 300) } else { (10, Kind::Load, 2, scattered(n), 300) }
    })];
    let (waits, _) = run(through_another.into_iter().flatten(), &[(2, from(&[1], None))]);
    assert_eq!(waits[..4], [200, 290, 0, 0], "the second needs the first's value, the third nobody's");
}

#[test]
fn loads_that_were_counted_together_follow_one_another_as_in_the_program() {
    // An entry, the quantity of its order, and by that the number of the next entry: all of them in one line of code.
    let turn = |n: u64| {
        [(20, 1), (0, 2), (0, 3)]
            .map(|(after, insn)| (after, Kind::Load, insn, scattered(3 * n + u64::from(insn)), 300))
    };
    let chain = Some(Chain { instructions: 20, cycles: 12.0 });
    let origins = [
        (1, from_afar(&[(1, 20), (2, 17), (3, 14)], chain)),
        (2, from_afar(&[(1, 3), (2, 20), (3, 17)], chain)),
        (3, from_afar(&[(1, 6), (2, 3), (3, 20)], chain)),
    ];
    assert_eq!(run((0..15).flat_map(turn), &origins).1, 20 + 45 * 300 - 100);
}

#[test]
fn a_link_that_lies_beside_a_key_comes_with_its_line() {
    // The key's load misses, the link's hits the line on its way; both addresses are the link before.
    let node = |n: u64| [(2, Kind::Load, 1, scattered(n), 300), (2, Kind::Load, 2, scattered(n) + 8, 0)];
    let origins = [(1, from(&[2], None)), (2, from(&[2], None))];
    let (_, end) = run((0..20).flat_map(node), &origins);
    assert!((5700..6100).contains(&end), "{end}");
}

#[test]
fn turns_of_a_chain_that_hit_count() {
    // Four cycles of a turn are the load's.
    let chain = Some(Chain { instructions: 5, cycles: 5.0 });
    let (_, end) = run(loads(11, 50, 300), &[(1, from(&[1], chain))]);
    assert_eq!(end, 50 + 11 * 300 + 10 * (9 * 5 + 1) - 100);
}

#[test]
fn a_load_nearer_than_its_distance_reads_the_value_of_the_turn_before() {
    // Two look-ups a turn of 20 instructions, both by the results of both in the turn before.
    let look_ups = || (0..40).map(|n| (10, Kind::Load, 1 + n % 2, scattered(n.into()), 300));
    let of_turns = |nearest: [u32; 2]| {
        let chain = Some(Chain { instructions: 20, cycles: 4.0 });
        let origin = |other, at: usize| {
            from_afar(&[(1, 20), (2, 20)].map(|(id, own)| (id, if id == other { nearest[at] } else { own })), chain)
        };
        run(look_ups(), &[(1, origin(2, 0)), (2, origin(1, 1))]).1
    };
    let by_the_turn = of_turns([10, 30]);
    let one_by_one = of_turns([10, 10]);
    assert_eq!(by_the_turn, 30 + 20 * 300 - 100, "the look-ups of a turn wait together");
    assert_eq!(one_by_one, 10 + 40 * 300 - 100);
}

#[test]
fn look_ups_of_an_inner_loop_wait_for_the_outer_loop_together() {
    // Four turns of an inner loop of 10 instructions, then 20 more, and the next four look-ups are by the results of
    // these.
    let look_ups = (0..40).map(|n| (if n % 4 == 0 { 30 } else { 10 }, Kind::Load, 1, scattered(n), 300));
    let chain = Some(Chain { instructions: 30, cycles: 4.0 });
    assert_eq!(run(look_ups, &[(1, from_afar(&[(1, 30)], chain))]).1, 90 + 10 * 300 - 100);
}

#[test]
fn lists_that_begin_anew_do_not_wait_for_one_another() {
    let chain = Some(Chain { instructions: 5, cycles: 4.0 });
    // The head of a list, and two entries, each 300 cycles later than the one before it, or than one between that hit.
    let lists = (0..2u64).flat_map(|list| {
        let load = |insn, n| (10, Kind::Load, insn, scattered(3 * list + n), 300);
        [load(2, 0), load(1, 1), load(1, 2)]
    });
    let anew = run(lists.clone(), &[(1, from(&[1, 2], chain))]);
    assert_eq!(anew.0, [200, 290, 294, 0, 0, 0], "the second list is there when the first one is");
    let one_chain = run(lists, &[(1, from(&[1], chain))]);
    assert!(one_chain.1 > anew.1 + 250, "{one_chain:?}");
}

#[test]
fn a_chain_that_was_left_long_ago_holds_up_nothing() {
    let chain = Some(Chain { instructions: 5, cycles: 5.0 });
    let waits = |after| run(loads(2, after, 300), &[(1, from(&[1], chain))]).0;
    assert_eq!(waits(100), [200, 300 - 100 + 19 * 5 + 1], "all between may be turns of the loop");
    assert_eq!(waits(600), [200, 200], "the core went on, so that the value was there");
}

#[test]
fn a_stream_takes_what_its_source_gives() {
    let stream = |after| (0..60).map(move |n| (after, Kind::Load, 1, 0x10000 + n * 64, 300));
    let (waits, _) = run(stream(2), &[]);
    assert_eq!(waits.iter().filter(|wait| **wait > 0).count(), 23, "the first miss hides the beginning");
    assert_eq!(waits[59], 8, "ten cycles a line, two of them computed");
    assert!(run(stream(20), &[]).0[3..].iter().all(|wait| *wait == 0), "slower than memory");
}

#[test]
fn stores_wait_where_the_buffer_is_full_and_atomics_at_once() {
    let stores = (0..4).map(|n| (10, Kind::Store, 1, scattered(n), 300));
    assert_eq!(run(stores, &[]).0, [180, 0, 0, 0]);
    let atomics = (0..2).map(|n| (10, Kind::Atomic, 1, scattered(n), 300));
    assert_eq!(run(atomics, &[]).0, [300, 300]);
}

#[test]
fn stores_that_push_out_one_anothers_lines_leave_one_by_one() {
    // 32 KiB of 8 ways: lines 4 KiB apart share a set. The eighth store is there at 36, by four fill buffers, and each
    // after it 9 later. The last one leaves 120 instructions behind the core.
    let end = |apart: u64| run((0..400u64).map(move |n| (2, Kind::Store, 1, 0x10_0000 + n % 32 * apart, 14)), &[]).1;
    assert_eq!(end(4096), 36 + 392 * 9 - 120);
    // Sixteen sets: four lines in 14 cycles.
    assert_eq!(end(4096 + 64), 36 + 98 * 14 - 120);
}

#[test]
fn stores_of_few_lines_and_of_sets_in_turn_take_less() {
    let end = |lines: u64, sets: u64| {
        let vaddr = move |n: u64| 0x10_0000 + n / sets % lines * 4096 + n % sets * 64;
        run((0..1920u64).map(move |n| (1, Kind::Store, 1, vaddr(n), 1)), &[]).1
    };
    // Cost of a store, of nine cycles, once all lines have come round.
    let each = |lines: u64, sets: u64| (end(lines, sets) as f64 / 1920.0 * 10.0).round() / 10.0;
    assert_eq!(each(32, 1), 8.9);
    // Eight ways: sixteen lines are a third of the way to 32.
    assert_eq!(each(16, 1), 3.0);
    assert_eq!(each(32, 2), 4.4);
}

#[test]
fn stores_go_one_by_one_behind_loads_that_push_out_their_lines() {
    // Each line is loaded, and stored to twice at once: the model's stores hit.
    let run_of = |apart: u64| {
        let turns = (0..200u64).flat_map(move |n| {
            let vaddr = 0x10_0000 + n % 32 * apart;
            [(2, Kind::Load, 1, vaddr, 14), (1, Kind::Store, 2, vaddr, 0), (1, Kind::Store, 3, vaddr + 8, 0)]
        });
        run(turns, &[]).1
    };
    // The seventh line's stores leave at 28. From the eighth line on the first store takes 21, as its line was pushed out,
    // written back and brought once more, and the second nothing; it is an instruction more.
    assert_eq!(run_of(4096), 28 + 193 * 21 - 120 + 1);
    assert_eq!(run_of(4096 + 64), 800, "sixteen sets");
}

/// Ends of so many accesses to one line that another CPU takes each time.
fn lost(kind: Kind, count: u64, after: u64) -> u64 {
    let mut interval = interval();
    let (mut instructions, mut stalls) = (0, 0);
    for _ in 0..count {
        instructions += after;
        stalls += u64::from(interval.waits(&Waiting {
            kind,
            insn: 1,
            vaddr: 0x5000,
            size: 8,
            latency_cycles: TRANSFER,
            missed: 1,
            writes_back: false,
            reread: None,
            lost: true,
            needed: Needed::default(),
            instructions,
            clock: ticks(instructions + stalls),
            pace: ticks(1),
            at: None,
            origin: None,
        }));
    }
    instructions + stalls
}

#[test]
fn lines_that_come_back_from_a_store_past_the_caches_come_one_by_one() {
    let end = |reread: Option<u32>| {
        let mut interval = interval();
        let (mut instructions, mut stalls) = (0, 0);
        for turn in 0..20 {
            instructions += 10;
            stalls += u64::from(interval.waits(&Waiting {
                kind: Kind::Load,
                insn: 1,
                // Lines of no stream.
                vaddr: 0x10_0000 * turn * (turn + 3),
                size: 8,
                latency_cycles: 300,
                missed: 7,
                writes_back: false,
                reread,
                lost: false,
                needed: Needed::default(),
                instructions,
                clock: ticks(instructions + stalls),
                pace: ticks(1),
                at: None,
                origin: None,
            }));
        }
        instructions + stalls
    };
    assert_eq!(end(Some(1000)) - end(Some(500)), 20 * 500);
    assert_eq!(end(Some(1)), end(None), "no sooner than any line of memory");
}

#[test]
fn accesses_that_contend_take_the_machines_time_each() {
    assert_eq!(lost(Kind::Atomic, 1, 10), 310, "a line that is handed over is waited for");
    // The wait for the first one is time in which the other CPU has the line.
    assert_eq!(lost(Kind::Atomic, 100, 10), 1000 + 300 + 98 * 30);
    // The last store leaves the buffer a store window behind the core.
    assert_eq!(lost(Kind::Store, 100, 2), 2 + 300 + 99 * 8 - 120);
    // The wait for the first load hides the ten behind it.
    assert_eq!(lost(Kind::Load, 100, 10), 1000 + 200 + 89 * 3);
}

#[test]
fn loads_that_wait_for_one_another_push_out_the_lines_of_no_store() {
    let chain = Some(Chain { instructions: 3, cycles: 4.0 });
    let run_of = |apart: u64| {
        let turns = (0..200u64).flat_map(move |n| {
            let vaddr = 0x10_0000 + n % 32 * apart;
            [(2, Kind::Load, 1, vaddr, 14), (1, Kind::Store, 2, vaddr, 0)]
        });
        run(turns, &[(1, from(&[1], chain))]).1
    };
    assert_eq!(run_of(4096), run_of(4096 + 64));
    assert_eq!(run_of(4096), 2 + 200 * 14 - 100 + 1, "the chain alone, and the last store");
}

#[test]
fn a_line_that_a_load_brings_takes_time_even_where_its_latency_is_hidden() {
    let of_one_set = |latency| (0..4u64).map(move |n| (10, Kind::Load, 1, n << 12, latency));
    let (waits, _) = run_on(of_core(0, 2.5), of_one_set(20), &[]);
    assert_eq!(waits, [2, 3, 2, 3]);
    let (waits, _) = run_on(of_core(0, 2.0), of_one_set(300), &[]);
    assert_eq!(waits, [200, 2, 2, 2], "what is waited anyway holds it");
}

#[test]
fn a_fetch_waits_but_for_what_was_waited_anyway() {
    let fetch = |latency| (10, Kind::Fetch, 9, 0x7000, latency);
    assert_eq!(run([fetch(300)], &[]).0, [300]);
    let load = (10, Kind::Load, 1, 0x9_0000, 300);
    assert_eq!(run([load, fetch(90)], &[]).0, [200, 0]);
    assert_eq!(run([load, fetch(250)], &[]).0, [200, 50]);
}

#[test]
fn the_front_end_hides_what_it_is_ahead() {
    let fetch = |after, latency| (after, Kind::Fetch, 9, 0x7000, latency);
    let waits = |fetches: [_; 3]| run_on(of_core(50, 0.0), fetches, &[]).0;
    // The second line is requested while the core waits for the first one, as soon as memory gives another.
    assert_eq!(waits([fetch(1000, 300), fetch(10, 300), fetch(500, 45)]), [250, 0, 0]);
    assert_eq!(
        waits([fetch(1000, 55), fetch(60, 51), fetch(1, 51)]),
        [5, 1, 1],
        "two cycles a line, one of them gone by"
    );
}

#[test]
fn a_chain_of_hits_on_pages_that_are_not_at_hand_takes_page_and_hit_each() {
    let chain = Some(Chain { instructions: 10, cycles: 4.0 });
    let hits: Vec<TimedLoad> = vec![(10, 1, 0, 37); 50];
    assert_eq!(end(interval(), &hits, &[(1, from(&[1], chain))]), 10 + 50 * (37 + 4) - 100);
}

/// Each load: so many instructions after the one before, its instruction, the latency of its miss or 0, and the wait for
/// its page.
type TimedLoad = (u64, u32, u32, u64);

/// Runs such loads as the model receives them; returns the end.
fn end(mut interval: Interval, loads: &[TimedLoad], origins: &[(u32, Origin)]) -> u64 {
    let (mut instructions, mut stalls) = (0, 0);
    for (n, &(after, insn, latency_cycles, page)) in loads.iter().enumerate() {
        instructions += after;
        // A hit that waits for no page is not reported.
        if latency_cycles == 0 && page == 0 {
            continue;
        }
        interval.walked = ticks(page);
        stalls += u64::from(interval.waits(&Waiting {
            kind: Kind::Load,
            insn,
            vaddr: (n as u64 * 7919) << 13,
            size: 8,
            latency_cycles,
            missed: if latency_cycles > 100 { 7 } else { u8::from(latency_cycles > 0) },
            writes_back: false,
            reread: None,
            lost: false,
            needed: Needed::default(),
            instructions,
            clock: ticks(instructions + stalls),
            pace: ticks(1),
            at: None,
            origin: origins.iter().find(|(of, _)| *of == insn).map(|(_, origin)| origin),
        }));
    }
    instructions + stalls
}

/// Instruction by instruction, as the module's text has it: when the last one would begin if nothing came after it.
fn slow_end(loads: &[TimedLoad], origins: &[(u32, Origin)], fill: u64) -> u64 {
    const HIT: u64 = 4;
    let (window, fills) = (100usize, 4usize);
    let last: usize = loads.iter().map(|load| load.0 as usize).sum();
    let mut begun = vec![0u64; last + window + 1];
    let mut done = vec![0u64; last + window + 1];
    // Latest two executions of each load, and when their values are there.
    let mut values = [[(0usize, 0u64); 2]; 4];
    let (mut lines, mut after) = (Vec::new(), [0u64; 3]);
    let mut at = loads.iter().scan(0, |at, load| {
        *at += load.0 as usize;
        Some((*at, load))
    });
    let (mut next, mut filled) = (at.next(), 0);
    for n in 1..=last + window {
        begun[n] = begun[n - 1] + 1 + std::mem::take(&mut filled);
        if n >= window {
            begun[n] = begun[n].max(done[..=n - window].iter().copied().max().unwrap_or(0));
        }
        let Some((_, &(_, insn, latency, page))) = next.filter(|(place, _)| *place == n) else { continue };
        let origin = origins.iter().find(|(of, _)| *of == insn);
        let of_load = |(load, distance): (&InsnId, &u32)| {
            values[load.0 as usize]
                .into_iter()
                .find(|(ran, _)| ran + distance.saturating_sub(COUNTED_TOGETHER) as usize <= n)
        };
        let latest = origin.iter().flat_map(|(_, o)| o.loads.iter().zip(&o.distances)).filter_map(of_load).max();
        let known = latest.unwrap_or_default().1;
        if latency == 0 {
            if page > 0 {
                done[n] = begun[n].max(known) + page + HIT;
                values[insn as usize] = [(n, done[n]), values[insn as usize][0]];
            }
            next = at.next();
            continue;
        }
        let free = if lines.len() < fills { 0 } else { lines[lines.len() - fills] };
        let source = if latency > 100 { 2 } else { 0 };
        let given = begun[n].max(after[source]);
        after[source] = given + [2, 4, 10][source];
        done[n] = given.max(begun[n].max(known) + page).max(free) + u64::from(latency);
        lines.push(done[n]);
        filled = fill;
        values[insn as usize] = [(n, done[n]), values[insn as usize][0]];
        next = at.next();
    }
    begun[last + window] - window as u64
}

proptest! {
    #[test]
    fn waits_are_those_of_a_core_followed_instruction_by_instruction(
        loads in proptest::collection::vec(
            (1u64..70, 1u32..4, prop_oneof![3 => 20u32..400, 1 => Just(0)], prop_oneof![2 => Just(0u64), 1 => 5u64..90]),
            1..40
        ),
        fill in 0u64..4,
        distance in 0u32..100
    ) {
        let origins = [(2, from(&[1], None)), (3, from_afar(&[(2, 0), (3, distance)], None))];
        prop_assert_eq!(end(of_core(0, fill as f64), &loads, &origins), slow_end(&loads, &origins, fill));
    }
}
