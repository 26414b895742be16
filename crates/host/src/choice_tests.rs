use super::*;
use crate::describe::describe;
use crate::describe::tests::{a_calibration, found_two_sockets};
use crate::{Settled, StreamFigures, TouchFigures, TranslationFigures};
use std::cell::Cell;
use std::path::Path;

fn with_noise(memory_ns: f64, noise: Noise) -> Calibration {
    Calibration { memory_local_ns: Some(memory_ns), noise: Some(noise), ..a_calibration() }
}

fn quiet(memory_ns: f64) -> Calibration {
    with_noise(memory_ns, Noise { others_cpus: Some(0.05), other_tasks: Some(0), ..Noise::default() })
}

fn beside_others(memory_ns: f64) -> Calibration {
    with_noise(memory_ns, Noise { others_cpus: Some(1.5), other_tasks: Some(6), ..Noise::default() })
}

/// A cache directory of a test, and how often was measured.
struct Bench {
    found: Found,
    store: Store,
    measured: Cell<usize>,
    _directory: tempfile::TempDir,
}

impl Bench {
    fn new() -> Bench {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store(Some(directory.path().join("cache/calibration.json")));
        Bench { found: found_two_sockets(), store, measured: Cell::new(0), _directory: directory }
    }

    fn chosen(&self, again: bool, gives: Calibration) -> Calibration {
        chosen(&self.found, &self.store, again, |_| {
            self.measured.set(self.measured.get() + 1);
            gives
        })
    }

    fn path(&self) -> &Path {
        self.store.0.as_deref().expect("a path")
    }
}

fn caution(calibration: &Calibration) -> Option<&str> {
    calibration.noise.as_ref()?.caution.as_deref()
}

#[test]
fn a_quiet_calibration_is_kept() {
    let bench = Bench::new();
    let first = bench.chosen(false, quiet(100.0));
    assert_eq!((first.memory_local_ns, caution(&first)), (Some(100.0), None));
    assert_eq!(bench.chosen(false, quiet(90.0)), first);
    assert_eq!(bench.measured.get(), 1);
    assert_eq!(bench.chosen(true, quiet(90.0)).memory_local_ns, Some(90.0));
    assert_eq!(bench.store.load(&bench.found).expect("kept").memory_local_ns, Some(90.0));
}

#[test]
fn a_noisy_calibration_is_named_not_kept_and_measured_again() {
    let bench = Bench::new();
    let noisy = bench.chosen(false, beside_others(190.0));
    assert_eq!(
        caution(&noisy).expect("a caution"),
        "host was calibrated beside other work (others kept 1.5 of 16 CPUs busy); its figures are rough and not kept, run \
         again when it is quiet"
    );
    assert!(!bench.path().exists());
    let machine = describe(&bench.found, Some(&noisy)).expect("a machine");
    assert_eq!(machine.caution(), caution(&noisy));
    assert_eq!(bench.chosen(false, quiet(100.0)).memory_local_ns, Some(100.0));
    assert_eq!((bench.measured.get(), bench.path().exists()), (2, true));
}

#[test]
fn a_quiet_calibration_from_before_counts_more_than_a_noisy_new_one() {
    let bench = Bench::new();
    bench.chosen(false, quiet(100.0));
    let kept = bench.chosen(true, beside_others(190.0));
    assert_eq!((kept.memory_local_ns, bench.measured.get()), (Some(100.0), 2));
    assert_eq!(
        caution(&kept).expect("a caution"),
        "the new calibration was noisy (others kept 1.5 of 16 CPUs busy); the quiet one from before stays, run again when \
         the host is quiet"
    );
    assert_eq!(caution(&bench.chosen(false, quiet(90.0))), None, "nothing of it is stored");
}

#[test]
fn a_calibration_of_an_earlier_version_is_noisy_if_its_spread_is_large() {
    let bench = Bench::new();
    let line = |spread| vec![Settled { value: 9.0, spread }];
    let old = |spread| Calibration {
        streams: StreamFigures { line_ns: line(spread), ..Default::default() },
        noise: None,
        ..a_calibration()
    };
    let keep = |calibration: &Calibration| {
        bench.store.save(&bench.found, calibration).expect("stored");
        // Earlier versions have no such field.
        let text = std::fs::read_to_string(bench.path()).expect("read").replace(",\n    \"noise\": null", "");
        assert!(!text.contains("noise") && text.contains("nearmiss/calibration/19"), "{text}");
        std::fs::write(bench.path(), text).expect("written");
    };
    keep(&old(0.3));
    assert_eq!(bench.chosen(false, quiet(90.0)).memory_local_ns, Some(100.0));
    assert_eq!(bench.measured.get(), 0);
    keep(&old(0.7));
    assert_eq!(bench.chosen(false, beside_others(190.0)).memory_local_ns, Some(190.0), "both are noisy");
    assert_eq!(bench.chosen(false, quiet(90.0)).memory_local_ns, Some(90.0));
    assert_eq!(bench.measured.get(), 2);
}

#[test]
fn takes_around_nothing_do_not_make_a_calibration_unreadable() {
    let bench = Bench::new();
    let around_nothing = Settled::of(&[0.0, 0.0, 0.1]);
    let walks = TranslationFigures { walk_ns: around_nothing, ..Default::default() };
    let measured = bench.chosen(false, Calibration { second_translation: walks, ..quiet(100.0) });
    assert_eq!(bench.chosen(false, quiet(90.0)), measured);
}

#[test]
fn a_user_without_a_cache_directory_measures_each_time() {
    let bench = Bench { store: Store(None), ..Bench::new() };
    bench.chosen(false, quiet(100.0));
    bench.chosen(false, quiet(100.0));
    assert_eq!(bench.measured.get(), 2);
}

#[test]
fn a_calibration_of_an_earlier_version_gets_first_touches_that_are_worth_keeping() {
    let bench = Bench::new();
    let kept = bench.chosen(false, quiet(100.0));
    // Earlier versions have no such field.
    let text = std::fs::read_to_string(bench.path()).expect("read");
    let (before, after) = text.split_once(",\n    \"touches\": {").expect("first touches");
    let text = format!("{before}{}", after.split_once('}').expect("their end").1);
    std::fs::write(bench.path(), text).expect("written");
    assert_eq!(bench.chosen(false, quiet(90.0)), kept, "it is read as before");

    let figures = |value| TouchFigures { small_ns: Some(Settled { value, spread: 0.02 }), large_ns: None };
    let touches = |calibration, figures: TouchFigures, worth_keeping| {
        with_touches(&bench.found, &bench.store, calibration, || (figures, worth_keeping)).touches
    };
    assert_eq!(touches(kept.clone(), TouchFigures::default(), true), TouchFigures::default());
    assert_eq!(touches(kept.clone(), figures(2000.0), false), figures(2000.0));
    assert_eq!(bench.chosen(false, quiet(90.0)).touches, TouchFigures::default(), "noisy figures are not kept");
    assert_eq!(touches(kept, figures(1400.0), true), figures(1400.0));
    let kept = bench.chosen(false, quiet(90.0));
    assert_eq!((kept.memory_local_ns, &kept.touches), (Some(100.0), &figures(1400.0)));
    assert_eq!(touches(kept, figures(1300.0), true), figures(1400.0), "measured once");
    assert_eq!(bench.measured.get(), 1);
}
