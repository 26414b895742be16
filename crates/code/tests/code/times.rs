//! Cycles of loops while every access hits.

use crate::support::Assembled;
use nearmiss_code::{CodeMap, CoreTimes, Needed};

/// Cycles of one turn of a loop, each with its bound.
fn assert_turns(source: &str, times: CoreTimes, expected: &[(&str, u32, f64)]) {
    let assembled = Assembled::new(source);
    let mut map = CodeMap::new(times);
    assembled.fill(&mut map);
    for &(label, instructions, cycles) in expected {
        let each = map.pace(assembled.id(label)).expect("known code");
        let turn = f64::from(each.cycles) / 65_536.0 * f64::from(instructions);
        assert!((turn - cycles).abs() < 0.001, "{label}: {turn} cycles a turn, expected {cycles}");
    }
}

const WIDE: CoreTimes = CoreTimes { width: 6, load_cycles: 5.0, forwarding_cycles: 4.0 };
const NARROW: CoreTimes = CoreTimes { width: 4, load_cycles: 4.0, forwarding_cycles: 5.0 };

#[test]
fn a_loop_costs_what_bounds_it() {
    let chains = [("clocked_turn", 10, 24.0), ("multiply_add_turn", 4, 4.0), ("float_chain_turn", 3, 4.0)];
    assert_turns("loops.s", WIDE, &chains);
    assert_turns("loops.s", WIDE, &[("chase_turn", 3, 5.0), ("indexed_chase_turn", 4, 6.0), ("hashed_turn", 11, 6.0)]);
    assert_turns("loops.s", WIDE, &[("loads_turn", 8, 2.0), ("stores_turn", 8, 3.0), ("float_sums_turn", 12, 5.0)]);
    assert_turns(
        "loops.s",
        WIDE,
        &[("products_turn", 8, 6.0), ("jumps_turn", 5, 4.0), ("integers_turn", 12, 2.2), ("spilled_turn", 5, 5.0)],
    );
    assert_turns("loops.s", NARROW, &[("loads_turn", 8, 3.0), ("stores_turn", 8, 6.0), ("chase_turn", 3, 4.0)]);
}

#[test]
fn variables_in_memory_cost_the_way_through_the_store_buffer() {
    assert_turns("plain.s", WIDE, &[("list_next", 8, 9.0), ("list_value", 8, 9.0), ("tree_child", 16, 19.0)]);
    assert_turns("optimized.s", NARROW, &[("list_next", 4, 4.0), ("strided_element", 4, 1.0)]);
}

#[test]
fn code_without_a_loop_costs_what_its_units_take() {
    assert_turns("optimized.s", NARROW, &[("called_next", 2, 1.0), ("fetched_second", 2, 1.0)]);
}

#[test]
fn loops_without_accesses_lie_in_the_loop_around_them() {
    let assembled = Assembled::new("inner.s");
    let mut map = CodeMap::new(WIDE);
    assembled.fill(&mut map);
    let mut inner = |label| map.pace(assembled.id(label)).expect("known code").inner;
    // Four cycles in four instructions, and one cycle in two.
    let [chain, count] = [65_536, 32_768].map(Some);
    for label in ["mixed_load", "mixed_store", "guarded_store", "calling_store", "straight_store"] {
        assert_eq!(inner(label), chain, "{label}");
    }
    assert_eq!(inner("both_store"), Some((65_536 * 5) / 6));
    assert_eq!(inner("counted_store"), count);
    for label in ["summed_load", "summed_store", "plain_store", "early_store"] {
        assert_eq!(inner(label), None, "{label}");
    }
    assert_eq!(map.pace(assembled.id("mixed_store")).map(|pace| pace.instructions), Some(9));
}

#[test]
fn a_value_is_needed_for_as_long_as_is_computed_from_it() {
    let assembled = Assembled::new("needed.s");
    let mut map = assembled.map();
    // A forwarded value takes 5 cycles, and a load 5. 256 instructions are followed: 85 turns of the inner loop.
    let expected = [
        ("counted_addition", 1),
        ("counted_apart_load", 2),
        ("carried_load", 1 + 3 * 3),
        ("from_memory_load", 1 + 5 + 3),
        ("inner_load", 85 * 4),
        ("pointer_load", 5 + 3),
        ("calling_load", 3 * 3),
        ("retried_load", 1 + 2 * 3),
    ];
    for (label, cycles) in expected {
        assert_eq!(map.needed(assembled.id(label)).map(|needed| needed.cycles), Some(cycles), "{label}");
    }
    let inner = map.needed(assembled.id("inner_load"));
    assert_eq!(inner, Some(Needed { cycles: 85 * 4, instructions: 1 + 84 * 3 + 1 }));
}
