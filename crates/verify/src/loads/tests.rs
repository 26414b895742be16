#![allow(clippy::unwrap_used)]

use super::*;

/// Every figure of an output, as `name value`.
fn read(output: &str) -> Vec<String> {
    let figures = Reading::of(&Reading::default(), output).unwrap().figures(output).unwrap();
    figures.into_iter().map(|(name, value)| format!("{name} {}", (value * 1e6).round() / 1e6)).collect()
}

#[test]
fn well_known_loads_are_read_without_options() {
    assert_eq!(
        read(include_str!("../../fixtures/webload-rate.txt")),
        ["requests 4016", "achieved_per_s 2008.5", "errors 0", "offered_per_s 2008", "mean_ms 0.278", "p99_ms 3.992"]
    );
    assert_eq!(
        read(include_str!("../../fixtures/h2load.txt")),
        ["requests 196", "achieved_per_s 936.07", "errors 4", "mean_ms 2.08"]
    );
    assert_eq!(
        read(include_str!("../../fixtures/wrk.txt")),
        ["requests 165836", "achieved_per_s 150815.39", "mean_ms 0.06588", "p99_ms 0.146"]
    );
    assert_eq!(
        read(include_str!("../../fixtures/httperf.txt")),
        ["requests 200", "achieved_per_s 200.7", "errors 0", "offered_per_s 200", "mean_ms 1.9"]
    );
    assert_eq!(
        read(include_str!("../../fixtures/redis-benchmark.txt")),
        ["requests 40000", "achieved_per_s 119923.59", "mean_ms 0.2725", "p99_ms 2.355"]
    );
    assert_eq!(
        read(include_str!("../../fixtures/redis-benchmark-csv.txt")),
        ["achieved_per_s 46423.47", "mean_ms 0.9495", "p99_ms 8.587"]
    );
    assert_eq!(
        read(include_str!("../../fixtures/redis-benchmark-quiet.txt")),
        ["achieved_per_s 87451.91", "p50_ms 0.215"]
    );
    assert_eq!(
        read(include_str!("../../fixtures/memtier_benchmark.txt")),
        ["requests 6210783", "achieved_per_s 621078.36", "mean_ms 1.99313", "p99_ms 8.895"]
    );
    assert_eq!(read("requests 5\n"), Vec::<String>::new());
}

/// A figure that the user names.
fn named(option: &'static str, expression: &str) -> Printed {
    Printed::new(option, expression, Better::Higher).unwrap()
}

#[test]
fn figures_that_the_user_names_come_before_known_ones() {
    let output = include_str!("../../fixtures/webload-rate.txt");
    let by_user = Reading {
        work: Some(named("--work", "offered ([0-9]+)")),
        offered: Some(Offered::Given(7.0)),
        figures: vec![named("--higher", "p90 ([0-9.]+)")],
        ..Reading::default()
    };
    let reading = Reading::of(&by_user, output).unwrap();
    let figures = reading.figures(output).unwrap();
    let value = |name: &str| figures.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
    assert_eq!((value(WORK), value(OFFERED), value("p90 ([0-9.]+)")), (Some(2008.0), Some(7.0), Some(0.216)));
    assert_eq!(value("mean_ms"), None);
    assert_eq!(reading.judged(), [("p90 ([0-9.]+)".to_owned(), Better::Higher)]);
    let missing = Reading { work: Some(named("--work", "units ([0-9]+)")), ..Reading::default() };
    let error = Reading::of(&missing, output).unwrap().figures(output).unwrap_err();
    assert_eq!(error, "nothing in the output matches --work \"units ([0-9]+)\"");
}

#[test]
fn a_rate_is_a_result_where_none_was_offered() {
    let judged = |output: &str| Reading::of(&Reading::default(), output).unwrap().judged();
    assert_eq!(
        judged(include_str!("../../fixtures/h2load.txt")).last().unwrap(),
        &(ACHIEVED.to_owned(), Better::Higher)
    );
    assert!(judged(include_str!("../../fixtures/httperf.txt")).iter().all(|(name, _)| name != ACHIEVED));
}

#[test]
fn a_load_that_missed_its_rate_has_printed_its_figures() {
    let webload = include_str!("../../fixtures/webload-rate.txt");
    let printed = [3, 4, 1].map(|code| has_printed_figures(Status::Exited(code), webload));
    assert_eq!(printed, [true, true, false]);
    assert!(!has_printed_figures(Status::Exited(3), include_str!("../../fixtures/h2load.txt")));
    assert!(!has_printed_figures(Status::Exited(3), "cannot connect"));
}
