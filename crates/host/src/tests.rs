use super::*;
use crate::additions::Additions;
use crate::offsets::FirstTranslation;
use crate::{Latencies, LoadError, Settled, TouchFigures, discover, host, load};
use nearmiss_machine::describe::{figures, is_assumed, parse, render, source_of};
use nearmiss_record::machine::SecondLevel;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().expect("a directory")).expect("made");
    fs::write(path, format!("{text}\n")).expect("written");
}

/// A cache: level, type, size, ways, shared list.
type Line<'a> = (u8, &'a str, &'a str, u32, String);

fn cpu(root: &Path, cpu: u32, package: u32, siblings: &str, caches: &[Line<'_>]) {
    let at = format!("sys/devices/system/cpu/cpu{cpu}");
    write(root, &format!("{at}/topology/physical_package_id"), &package.to_string());
    write(root, &format!("{at}/topology/thread_siblings_list"), siblings);
    for (i, (level, kind, size, ways, shared)) in caches.iter().enumerate() {
        let at = format!("{at}/cache/index{i}");
        write(root, &format!("{at}/level"), &level.to_string());
        write(root, &format!("{at}/type"), kind);
        write(root, &format!("{at}/size"), size);
        write(root, &format!("{at}/ways_of_associativity"), &ways.to_string());
        write(root, &format!("{at}/coherency_line_size"), "64");
        write(root, &format!("{at}/shared_cpu_list"), shared);
    }
}

/// Two sockets of 4 cores of 2 threads, numbered as Linux does: cores first, then their siblings.
fn two_sockets(root: &Path, l3: &str, l3_cores: u32) {
    write(root, "sys/devices/system/cpu/online", "0-15");
    write(root, "sys/devices/system/node/online", "0-1");
    write(root, "sys/devices/system/node/node0/cpulist", "0-3,8-11");
    write(root, "sys/devices/system/node/node1/cpulist", "4-7,12-15");
    write(root, "proc/cpuinfo", "vendor_id\t: AuthenticAMD\nmodel name\t: Test 16\ncpu MHz\t\t: 2450.5");
    for n in 0..16u32 {
        let core = n % 8;
        let pair = format!("{core},{}", core + 8);
        let low = core / l3_cores * l3_cores;
        let high = low + l3_cores - 1;
        let shared = format!("{low}-{high},{}-{}", low + 8, high + 8);
        cpu(
            root,
            n,
            core / 4,
            &pair,
            &[
                (1, "Data", "32K", 8, pair.clone()),
                (1, "Instruction", "32K", 8, pair.clone()),
                (2, "Unified", "512K", 8, pair.clone()),
                (3, "Unified", l3, 16, shared),
            ],
        );
    }
}

#[test]
fn two_sockets_with_hardware_threads() {
    let dir = tempfile::tempdir().expect("a directory");
    two_sockets(dir.path(), "32768K", 4);
    let m = describe(&discover(dir.path()).expect("found"), None).expect("a machine");
    assert_eq!(m.topology, Topology { packages: 2, cores_per_package: 4, threads_per_core: 2, cores_per_cluster: 0 });
    assert_eq!((m.memory.nodes, m.clock_mhz, m.coherence), (2, 2451, Protocol::Moesi));
    let sharing: Vec<_> = m.caches.iter().map(|c| (c.level, c.shared_by)).collect();
    assert_eq!(sharing, [(1, Sharing::Core), (1, Sharing::Core), (2, Sharing::Core), (3, Sharing::Package)]);
    assert_eq!(m.caches[3].size, Bytes(32 << 20));
    for figure in figures(&m) {
        assert!(source_of(&m, &figure).is_some(), "{figure}");
    }
    assert!(is_assumed(&m.sources["latency.memory_local"]) && !is_assumed(&m.sources["cache.L2"]));
}

#[test]
fn a_last_level_shared_by_part_of_a_package_makes_clusters() {
    let dir = tempfile::tempdir().expect("a directory");
    two_sockets(dir.path(), "16384K", 2);
    let m = describe(&discover(dir.path()).expect("found"), None).expect("a machine");
    assert_eq!(m.topology.cores_per_cluster, 2);
    assert_eq!(m.caches[3].shared_by, Sharing::Cluster);
}

#[test]
fn sliced_last_levels_are_rounded_to_a_power_of_two_of_sets_and_marked_so() {
    let dir = tempfile::tempdir().expect("a directory");
    // 54 MiB in 12 ways, as 36 slices of 1.5 MiB: 73,728 sets.
    two_sockets(dir.path(), "55296K", 4);
    let root = dir.path();
    for n in 0..16 {
        write(root, &format!("sys/devices/system/cpu/cpu{n}/cache/index3/ways_of_associativity"), "12");
    }
    let m = describe(&discover(root).expect("found"), None).expect("a machine");
    assert_eq!((m.caches[3].ways, m.caches[3].size), (14, Bytes(56 << 20)));
    assert!(m.sources["cache.L3"].contains("rounded"));
}

#[test]
fn cpus_that_differ_are_named_in_the_source() {
    let dir = tempfile::tempdir().expect("a directory");
    two_sockets(dir.path(), "32768K", 4);
    write(dir.path(), "sys/devices/system/cpu/cpu5/cache/index2/size", "256K");
    let m = describe(&discover(dir.path()).expect("found"), None).expect("a machine");
    assert!(m.sources["cache.L2"].contains("others have other caches"));
    write(dir.path(), "sys/devices/system/cpu/online", "0-14");
    let m = describe(&discover(dir.path()).expect("found"), None).expect("a machine");
    assert!(m.sources["topology"].contains("made regular"));
}

pub fn found_two_sockets() -> Found {
    static FOUND: LazyLock<Found> = LazyLock::new(|| {
        let dir = tempfile::tempdir().expect("a directory");
        two_sockets(dir.path(), "32768K", 4);
        discover(dir.path()).expect("found")
    });
    FOUND.clone()
}

pub fn a_calibration() -> Calibration {
    Calibration {
        clock_mhz: Some(2000),
        level_ns: vec![2.0, 14.0, 13.5],
        memory_local_ns: Some(100.0),
        memory_remote_ns: Some(180.0),
        core_to_core_ns: Some(40.0),
        remote_cache_ns: None,
        last_level_left: None,
        second_level_reach: None,
        translation: Some(FirstTranslation { entries: 64, ways: Some(4), miss_ns: 3.5 }),
        aliased_load_ns: Some(0.2),
        core: Default::default(),
        streams: Default::default(),
        second_translation: Default::default(),
        touches: Default::default(),
        noise: None,
    }
}

#[test]
fn neighbours_fill_what_a_chase_leaves_of_the_last_level_while_it_comes_round() {
    let dir = tempfile::tempdir().expect("a directory");
    two_sockets(dir.path(), "32768K", 4);
    let calibration = Calibration { last_level_left: Some(8 << 20), ..a_calibration() };
    let m = describe(&discover(dir.path()).expect("found"), Some(&calibration)).expect("a machine");
    let last = &m.caches[3];
    assert_eq!((last.size, last.ways, last.replacement), (Bytes(32 << 20), 16, Replacement::Lru));
    // A load takes 113.5 cycles, as half of them hit, in 27, and half go to memory, in 200. 131,072 lines come round in
    // 14.9 M cycles. 24 MiB are 393,216 lines: the mean rate fills them in 1/ln 2 of that, half of the rates sooner.
    assert_eq!(last.others_lines, 38_132);
    let from = "measured here by chases of growing size: others push out what a chase of more than 8 MiB uses; ways as \
                listed or assumed";
    assert_eq!(m.sources["cache.L3"], from);
    assert_eq!(
        (m.caches[2].others_lines, m.kept_of(last), m.kept_of(&m.caches[2])),
        (0, Bytes(8 << 20), m.caches[2].size)
    );
}

#[test]
fn a_large_last_level_of_many_guests_is_modelled_in_part() {
    let dir = tempfile::tempdir().expect("a directory");
    two_sockets(dir.path(), "491520K", 4);
    let of = |left| Calibration { last_level_left: Some(left), ..a_calibration() };
    let last =
        |left| describe(&discover(dir.path()).expect("found"), Some(&of(left))).expect("a machine").caches[3].clone();
    assert_eq!((last(13 << 20).size, last(13 << 20).ways), (Bytes(64 << 20), 16));
    assert_eq!(last(40 << 20).size, Bytes(160 << 20));
}

#[test]
fn calibration_becomes_cycles_of_the_measured_clock() {
    let dir = tempfile::tempdir().expect("a directory");
    two_sockets(dir.path(), "32768K", 4);
    let calibration = a_calibration();
    let m = describe(&discover(dir.path()).expect("found"), Some(&calibration)).expect("a machine");
    // The third level cannot be nearer than the second.
    assert_eq!(m.latency.level_cycles, [4, 28, 28]);
    assert_eq!((m.latency.memory_local_cycles, m.latency.memory_remote_cycles), (200, 360));
    assert_eq!((m.latency.core_modified_cycles, m.latency.remote_cache_cycles), (80, 360));
    assert!(
        m.sources["latency.L1"].starts_with("measured") && m.sources["latency.remote_cache"].starts_with("assumed")
    );
}

#[test]
fn a_missing_or_wrong_file_is_one_line() {
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path();
    let error = |root: &Path| discover(root).expect_err("this must fail").to_string();
    assert!(error(root).contains("cpu/online"));
    write(root, "sys/devices/system/cpu/online", "0-99999999");
    assert!(error(root).contains("list such as"));
    write(root, "sys/devices/system/cpu/online", "0");
    assert!(error(root).contains("no caches listed"));
    cpu(root, 0, 0, "0", &[(1, "Data", "many", 8, "0".into())]);
    assert!(error(root).contains("\"many\" is not a size"));
    assert_eq!(error(root).lines().count(), 1);
}

#[test]
fn this_host_is_a_machine_or_an_error_has_the_reason() {
    match host(Latencies::Assumed) {
        Ok(m) => assert!(m.topology.cpus() >= 1 && !m.caches.is_empty()),
        Err(e) => println!("skipped: {e}"),
    }
}

#[test]
fn a_name_that_is_not_host_is_a_preset_or_a_file() {
    assert_eq!(load("zen4-genoa").expect("a preset").name, "zen4-genoa");
    let unknown = load("zen0").expect_err("there is none");
    assert!(matches!(unknown, LoadError::Described(_)));
    assert!(unknown.to_string().starts_with("zen0: no such machine; presets: pentium-pro-4way-256k, "));
}

fn steady(value: f64) -> Option<Settled> {
    Some(Settled { value, spread: 0.02 })
}

#[test]
fn lines_that_come_as_fast_from_anywhere_come_from_one_bank() {
    let second_level = |second_level_cycles: [f64; 4]| {
        let figures = CoreFigures {
            second_level_cycles: second_level_cycles.map(steady),
            second_level_written_cycles: [4.0; 4].map(steady),
            ..CoreFigures::default()
        };
        let calibration = Calibration { core: figures, ..a_calibration() };
        let dir = tempfile::tempdir().expect("a directory");
        two_sockets(dir.path(), "32768K", 4);
        let machine = describe(&discover(dir.path()).expect("found"), Some(&calibration)).expect("a machine");
        machine.core.and_then(|core| core.second_level).expect("measured")
    };
    let one = SecondLevel { banks: 1, bank_cycles: 0.0, written_line_cycles: 4.0, written_bank_cycles: 0.0 };
    assert_eq!(second_level([2.0, 2.1, 2.3, 2.2]), one);
    assert_eq!(second_level([2.0, 3.9, 4.0, 4.1]).banks, 2);
    assert_eq!(second_level([1.0, 1.0, 2.0, 4.0]).banks, 8);
}

#[test]
fn figures_measured_of_the_core_make_a_core_with_its_sources() {
    let dir = tempfile::tempdir().expect("a directory");
    two_sockets(dir.path(), "32768K", 4);
    let core = CoreFigures {
        chains: steady(15.6),
        window: Some(Settled { value: 506.0, spread: 0.25 }),
        stores: steady(110.0),
        width: steady(5.97),
        forwarding_cycles: steady(4.9),
        mispredict_cycles: None,
        fetch_ahead_instructions: None,
        crowded_store_cycles: None,
        crowded_addition_cycles: None,
        crowded_beside_cycles: steady(5.7),
        crowded_half_lines: None,
        second_level_cycles: [1.5, 2.4, 3.5, 3.4].map(steady),
        second_level_written_cycles: [3.8, 5.1, 5.4, 5.5].map(steady),
        contended_addition_cycles: Additions {
            one: steady(25.4),
            several: None,
            lone: steady(1.2),
            between_stores: steady(34.4),
            far: steady(31.0),
            far_load: steady(140.0),
            needed: steady(300.0),
            needed_load: steady(90.0),
        },
        atomics_beside: steady(0.3),
        contended_cycles: [[steady(0.4), steady(9.0), steady(11.5)], [steady(19.0), None, steady(40.0)], [None; 3]],
        fill_cycles: None,
        reread_cycles: [steady(120.4), steady(90.0), steady(-1.0)],
    };
    let line_ns =
        vec![steady(1.0).expect("a figure"), steady(0.9).expect("a figure"), steady(800.0).expect("a figure")];
    let streams = StreamFigures {
        apart_line_ns: line_ns.clone(),
        chained_line_ns: line_ns.clone(),
        line_ns,
        border: steady(0.1),
        ..Default::default()
    };
    let calibration = Calibration { core, streams, ..a_calibration() };
    let m = describe(&discover(dir.path()).expect("found"), Some(&calibration)).expect("a machine");
    assert_eq!(parse("again", &render(&m).expect("it renders")).expect("it reads"), m);
    let core = m.core.expect("a core");
    assert_eq!((core.window_instructions, core.fill_buffers, core.store_buffer), (506, 16, 110));
    assert_eq!((core.width, core.forwarding_cycles, core.mispredict_cycles), (6, 5, 16));
    assert_eq!(core.contended_store_cycles, [25, 75]);
    assert!(is_assumed(&m.sources["core.contended_stores"]));
    let four = SecondLevel { banks: 4, bank_cycles: 3.5, written_line_cycles: 3.8, written_bank_cycles: 5.4 };
    assert_eq!(core.second_level, Some(four));
    let contended = core.contended.expect("figures of contended lines");
    assert_eq!(contended.store_cycles, [0, 9, 12]);
    assert_eq!((contended.far_addition_cycles, contended.far_load_cycles), (Some(31), Some(140)));
    assert_eq!(contended.between_stores_cycles, Some(34));
    assert_eq!((contended.lone_addition_cycles, contended.spaced_addition_cycles), (Some(1), None));
    assert_eq!((contended.needed_addition_cycles, contended.needed_load_cycles), (Some(300), Some(90)));
    assert!(core.atomics_ahead);
    assert_eq!(contended.atomic_cycles, [30, 60, 75], "three figures are of one measurement, or assumed");
    assert!(is_assumed(&m.sources["core.contended.atomic"]) && is_assumed(&m.sources["core.contended.load"]));
    assert!(m.sources["core.contended.store"].starts_with("measured here by stores to words of one, two and four"));
    assert_eq!(core.reread_cycles, Some([120, 90, 0]));
    assert!(m.sources["core.reread"].starts_with("measured here by loads of lines that non-temporal stores"));
    assert!(m.sources["core.window"].ends_with("; unstable, spread 25%"), "{}", m.sources["core.window"]);
    assert_eq!(m.sources["core.fill_buffers"], "measured here by chases side by side");
    assert!(is_assumed(&m.sources["core.mispredict"]) && is_assumed(&m.sources["streams.followed"]));
    let streams = m.streams.expect("streams");
    // No line is dearer than a single access to its place, and none cheaper than a nearer one.
    assert_eq!((streams.line_cycles, streams.within), (vec![2.0, 2.0, 200.0], Bytes(2 << 20)));
    assert_eq!(m.overlap, 0.0);
}

#[test]
fn a_host_that_was_not_measured_has_a_typical_core_marked_assumed() {
    let dir = tempfile::tempdir().expect("a directory");
    two_sockets(dir.path(), "32768K", 4);
    let m = describe(&discover(dir.path()).expect("found"), None).expect("a machine");
    assert_eq!(m.core.map(|core| core.window_instructions), Some(320));
    assert_eq!(m.streams.expect("streams").line_cycles, [1.4, 5.0, 27.5]);
    assert!(m.sources.iter().filter(|(key, _)| key.starts_with("core.")).all(|(_, source)| is_assumed(source)));
}

#[test]
fn with_one_share_for_all_misses_the_host_has_no_core() {
    let dir = tempfile::tempdir().expect("a directory");
    two_sockets(dir.path(), "32768K", 4);
    let calibration = Calibration { aliased_load_ns: Some(2.0), ..a_calibration() };
    let with_core = describe(&discover(dir.path()).expect("found"), Some(&calibration)).expect("a machine");
    let m = crate::share::with_share(with_core.clone());
    assert_eq!((m.name.as_str(), m.overlap, m.core, m.streams.is_none()), ("host-overlap", 0.6, None, true));
    let waits = [with_core, m].map(|m| m.store_aliasing.expect("measured").wait_cycles);
    assert_eq!(waits[1], (waits[0] / 0.4 * 100.0).round() / 100.0);
}

#[test]
fn first_touches_are_cycles_of_the_measured_clock_or_left_out() {
    let memory = |small_ns, large_ns| {
        let touches = TouchFigures { small_ns, large_ns };
        let m = describe(&found_two_sockets(), Some(&Calibration { touches, ..a_calibration() })).expect("a machine");
        let source = |figure| m.sources.get(figure).cloned();
        let sources = ["memory.first_touch", "memory.large_first_touch"].map(source);
        ([m.memory.first_touch_cycles, m.memory.large_first_touch_cycles], sources)
    };
    let unsteady = Some(Settled { value: 50_000.0, spread: 0.31 });
    let (cycles, [small, large]) = memory(steady(1350.2), unsteady);
    assert_eq!(cycles, [Some(2700), Some(100_000)]);
    assert_eq!(small.as_deref(), Some("measured here by the CPU time of writing to fresh small pages once"));
    let from = "measured here by the CPU time of writing to fresh large pages; unstable, spread 31%";
    assert_eq!(large.as_deref(), Some(from));
    let nothing = ([None, None], [None, None]);
    assert_eq!(memory(None, None), nothing);
    assert_eq!(memory(steady(9.0), steady(50_000.0)), nothing, "no page is cleared in 9 ns");
    assert_eq!(memory(steady(1350.2), steady(9.0)).0, [Some(2700), None]);
}

#[test]
fn a_calibration_of_this_host_is_sound() {
    let Ok(found) = discover(Path::new("/")) else {
        println!("skipped: this host lists no caches");
        return;
    };
    let begun = std::time::Instant::now();
    let calibration = crate::calibrate(&found);
    println!("{:.1} s: {calibration:#?}", begun.elapsed().as_secs_f64());
    let lines = &calibration.streams.line_ns;
    assert!(lines.iter().all(|line| line.value > 0.0), "{lines:?}");
    let core = &calibration.core;
    for figure in [core.chains, core.window, core.stores, core.width].into_iter().flatten() {
        assert!(figure.value >= 1.0, "{core:?}");
    }
    assert!(describe(&found, Some(&calibration)).is_ok());
    assert!(calibration.touches.small_ns.is_some_and(|small| small.value > 10.0), "{:?}", calibration.touches);
    assert!(calibration.noise.is_some_and(|noise| noise.spread.is_some()));
}
