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
