use super::*;
use crate::additions::Additions;
use crate::describe::describe;
use crate::describe::tests::{a_calibration, found_two_sockets};
use crate::offsets::FirstTranslation;
use nearmiss_machine::describe::{check, is_assumed};
use proptest::prelude::*;

fn found(vendor: &str, family: u32) -> Found {
    Found { vendor: vendor.into(), family: Some(family), ..found_two_sockets() }
}

#[test]
fn a_latency_out_of_bounds_is_assumed_with_the_reason() {
    let zen = found("AuthenticAMD", 0x19);
    // 1171879 cycles of 2 GHz, as measured once beside other work.
    let calibration = Calibration {
        core_to_core_ns: Some(585_939.5),
        memory_local_ns: Some(900.0),
        level_ns: vec![2.0, 3.0, 25.0],
        ..a_calibration()
    };
    let machine = describe(&zen, Some(&calibration)).expect("a machine");
    check(&machine).expect("a good one");
    assert_eq!(
        machine.sources["latency.core_modified"],
        "assumed: usual of AMD family 19h; measured 585939.5 ns, where 3 to 400 is plausible"
    );
    assert_eq!(
        machine.sources["latency.L2"],
        "assumed: usual of AMD family 19h; measured 6 cycles, where 9 to 30 is plausible"
    );
    assert!(is_assumed(&machine.sources["latency.memory_local"]));
    assert!(machine.sources["latency.L3"].starts_with("measured"));
    assert_eq!((machine.latency.level_cycles, machine.latency.memory_local_cycles), (vec![4, 14, 50], 210));
    assert_eq!((machine.latency.core_clean_cycles, machine.latency.core_modified_cycles), (100, 100));
}

#[test]
fn families_differ_and_an_unknown_one_is_wide() {
    let level = |vendor: &str, family: u32, ns: f64| {
        let calibration = Calibration { level_ns: vec![2.0, 14.0, ns], ..a_calibration() };
        describe(&found(vendor, family), Some(&calibration)).expect("a machine").latency.level_cycles[2]
    };
    assert_eq!([level("GenuineIntel", 6, 49.0), level("AuthenticAMD", 0x17, 49.0)], [98, 98]);
    assert_eq!([level("GenuineIntel", 6, 9.0), level("AuthenticAMD", 0x17, 9.0), level("", 0, 9.0)], [65, 39, 28]);
}

#[test]
fn a_clock_that_is_none_leaves_the_kernels() {
    let calibration = Calibration { clock_mhz: Some(3), ..a_calibration() };
    let machine = describe(&found("AuthenticAMD", 0x19), Some(&calibration)).expect("a machine");
    assert_eq!((machine.clock_mhz, machine.latency.memory_local_cycles), (2451, 245));
    assert_eq!(
        machine.sources["clock_mhz"],
        "assumed: as without a measurement; measured 3 MHz, where 300 to 7000 is plausible"
    );
}

#[test]
fn figures_of_contended_lines_are_plausible_together_or_assumed() {
    let steady = |value| Some(Settled { value, spread: 0.01 });
    let [near, far] = [40.0, 1171879.0].map(steady);
    let core = CoreFigures { contended_cycles: [[near; 3], [near, far, near], [near; 3]], ..CoreFigures::default() };
    let calibration = Calibration { core, ..a_calibration() };
    let machine = describe(&found("AuthenticAMD", 0x19), Some(&calibration)).expect("a machine");
    let contended = machine.core.and_then(|core| core.contended).expect("figures of contended lines");
    assert_eq!((contended.store_cycles, contended.load_cycles), ([40; 3], [40; 3]));
    assert_eq!(contended.atomic_cycles, [30, 60, 75]);
    assert_eq!(
        machine.sources["core.contended.atomic"],
        "assumed: usual of AMD family 19h; measured 1171879 cycles, where 0 to 4000 is plausible"
    );
}

#[test]
fn more_than_the_last_level_is_not_left_of_it() {
    let others_use = |left| {
        let calibration = Calibration { last_level_left: left, ..a_calibration() };
        describe(&found_two_sockets(), Some(&calibration)).expect("a machine").caches[3].others_lines > 0
    };
    let lefts = [None, Some(13 << 20), Some(0), Some(1), Some(u64::MAX)];
    assert_eq!(lefts.map(others_use), [false, true, false, false, false]);
}

/// A time as a clock that jumps, a descheduled thread or a damaged file may make it.
fn reading() -> impl Strategy<Value = f64> {
    let odd = [0.0, -0.0, -1.0, 1e-300, 1e300, 1171879.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX];
    prop_oneof![prop::sample::select(odd.to_vec()), any::<f64>(), 0.0..600.0, 0.0..60.0]
}

fn whole() -> impl Strategy<Value = u64> {
    prop_oneof![prop::sample::select(vec![0, 1, u64::MAX, 1 << 63, 64]), any::<u64>(), 0u64..1 << 26]
}

fn figure() -> impl Strategy<Value = Settled> {
    (reading(), reading()).prop_map(|(value, spread)| Settled { value, spread })
}

fn figures(most: usize) -> impl Strategy<Value = Vec<Option<Settled>>> {
    prop::collection::vec(prop::option::of(figure()), most)
}

prop_compose! {
    fn calibrations()(
        clock in prop::option::of(prop_oneof![any::<u32>(), 0u32..6000]),
        level_ns in prop::collection::vec(reading(), 0..6),
        ns in prop::collection::vec(prop::option::of(reading()), 5),
        left in prop::option::of(whole()),
        reach in prop::option::of(whole()),
        translation in prop::option::of((prop_oneof![any::<u32>(), 0u32..300], prop::option::of(0u32..20), reading())),
        core in figures(21),
        streams in figures(4),
        apart_line_ns in prop::collection::vec(figure(), 0..5),
        line_ns in prop::collection::vec(figure(), 0..5),
        chained_line_ns in prop::collection::vec(figure(), 0..5),
        pages in figures(4),
        touches in figures(2),
    ) -> Calibration {
        Calibration {
            clock_mhz: clock,
            level_ns,
            last_level_left: left,
            memory_local_ns: ns[0],
            memory_remote_ns: ns[1],
            core_to_core_ns: ns[2],
            remote_cache_ns: ns[3],
            second_level_reach: reach,
            translation: translation.map(|(entries, ways, miss_ns)| FirstTranslation { entries, ways, miss_ns }),
            aliased_load_ns: ns[4],
            core: CoreFigures {
                chains: core[0],
                window: core[1],
                stores: core[2],
                width: core[3],
                forwarding_cycles: core[4],
                mispredict_cycles: core[5],
                fetch_ahead_instructions: core[6],
                crowded_store_cycles: core[7],
                fill_cycles: core[8],
                contended_addition_cycles: Additions {
                    one: core[9],
                    several: core[10],
                    lone: core[1],
                    between_stores: core[5],
                    far: core[6],
                    far_load: core[7],
                    needed: core[2],
                    needed_load: core[3],
                },
                atomics_beside: core[2],
                crowded_addition_cycles: core[11],
                crowded_beside_cycles: core[4],
                crowded_half_lines: core[8],
                second_level_cycles: [core[8], core[8], core[4], core[4]],
                second_level_written_cycles: [core[4], core[4], core[7], core[7]],
                contended_cycles: [12, 15, 18].map(|first| [core[first], core[first + 1], core[first + 2]]),
                reread_cycles: [core[0], core[3], core[7]],
            },
            streams: StreamFigures {
                line_ns,
                chained_line_ns,
                trained_by: streams[0],
                longest_stride_lines: streams[1],
                followed: streams[2],
                border: streams[3],
                region_lines: streams[0],
                region_wait_ns: streams[3],
                apart_line_ns,
            },
            second_translation: TranslationFigures {
                second_entries: pages[0],
                walk_ns: pages[1],
                apart_walk_ns: pages[1],
                large_apart_walk_ns: pages[3],
                far_walk_ns: pages[1],
                far_apart_walk_ns: pages[3],
                large_entries: pages[2],
                large_walk_ns: pages[3],
                large_pages_split: pages[3],
            },
            touches: TouchFigures { small_ns: touches[0], large_ns: touches[1] },
            noise: None,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn any_measurement_makes_a_machine(
        calibration in calibrations(),
        vendor in prop::sample::select(vec!["AuthenticAMD", "GenuineIntel", "0x41", ""]),
        family in prop::sample::select(vec![0, 6, 0x17, 0x19, 0x1a]),
    ) {
        let machine = describe(&found(vendor, family), Some(&calibration));
        let machine = machine.map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert!(check(&machine).is_ok());
        for source in machine.sources.values() {
            prop_assert!(source.len() < 600 && source.lines().count() == 1, "{source}");
        }
    }
}
