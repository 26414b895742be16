use super::super::interval::tests::{from_afar, run, scattered};
use super::*;
use nearmiss_record::reference::Kind;

#[test]
fn what_is_computed_from_a_value_is_waited_for_as_well() {
    // The second load's address takes 20 cycles from the first one's value, and the next turn's 30 more.
    let turn = |n: u64| [1, 2].map(|insn| (25, Kind::Load, insn, scattered(2 * n + u64::from(insn)), 300));
    let behind = |load: u32, cycles: f32| Origin { cycles: vec![cycles], ..from_afar(&[(load, 25)], None) };
    let (_, end) = run((0..10).flat_map(turn), &[(1, behind(2, 30.0)), (2, behind(1, 20.0))]);
    assert_eq!(end, 25 + 20 * 300 + 10 * 20 + 9 * 30 - 100);
}

#[test]
fn a_value_comes_behind_turns_of_a_search_that_hit() {
    // A search of eight turns: its first load misses, the others hit. The entry's load misses, the next search begins
    // with its value.
    let search =
        |n: u64| [(5, 1, 0), (39, 2, 1)].map(|(after, insn, at)| (after, Kind::Load, insn, scattered(2 * n + at), 300));
    let turn = Some(Chain { instructions: 5, cycles: 5.0 });
    let origins = [(1, from_afar(&[(1, 5), (2, 5)], turn)), (2, from_afar(&[(1, 4)], None))];
    let (_, end) = run((0..10).flat_map(search), &origins);
    assert_eq!(end, 5 + 20 * 300 + 10 * 7 * 5 - 100);
}

#[test]
fn misses_of_one_run_of_a_loop_wait_for_values_from_before_it() {
    // Runs of eight turns of ten instructions, and five between: the fourth and the seventh turn miss. The load's own
    // value of the last turn forms the addresses of the next run.
    let runs = (0..5u64).flat_map(|n| {
        [(if n == 0 { 30 } else { 55 }, 2 * n), (30, 2 * n + 1)]
            .map(|(after, at)| (after, Kind::Load, 1, scattered(at), 300))
    });
    let own = from_afar(&[(1, 15)], Some(Chain { instructions: 15, cycles: 7.0 }));
    let given = Given { head: 0x1000, instructions: 10, at: 0, inside: vec![true] };
    let within = Origin { given: Some(given), ..own.clone() };
    let end = |origin: &Origin| run(runs.clone(), &[(1, origin.clone())]).1;
    // Two cycles from the value to the address beyond the first level's five; the second line of a run comes up to ten
    // cycles after the first.
    let chained = 30 + 30 + 5 * 300 + 4 * 2 - 100;
    assert!((chained..chained + 5 * 10).contains(&end(&within)), "a miss of each run waits: {}", end(&within));
    assert!(end(&own) > 9 * 300, "else all ten do");
}
