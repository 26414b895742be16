use super::*;
use crate::load::{Answer, Served};

fn measure() -> Measure {
    let mut measure = Measure::default();
    let answer = |served, is_plain| Answer {
        served,
        is_plain,
        is_not_modified: !is_plain,
        is_absent: false,
        keeps_connection: true,
        bytes: 125_000,
    };
    for _ in 0..75 {
        measure.answer(&answer(Some(Served::Hit), true), 1_000_000);
    }
    for _ in 0..25 {
        measure.answer(&answer(Some(Served::Miss), true), 300_000_000);
    }
    measure.answer(&answer(Some(Served::Hit), false), 1_000_000);
    measure.fault(Fault::Body);
    measure.late.record(10_000);
    measure.behind.record(5_000);
    let counts = &mut measure.counts;
    (counts.due, counts.answered_in_time, counts.lasted_ns, counts.cpu_ns) = (102, 101, 2 * SECOND, SECOND / 10);
    measure
}

fn report(measure: &Measure, tolerance: f64) -> Report {
    Report {
        version: 1,
        figures: "measured",
        load: "WebAxe-4".into(),
        seed: 1,
        next_request: Some(102),
        connections: 7000,
        processes: 1,
        descriptors_per_process: 20_000,
        notes: vec!["packet loss is left out".into()],
        phases: vec![PhaseReport::of("top2", true, 50.0, measure, tolerance)],
    }
}

#[test]
fn the_form_of_the_json_is_kept() {
    insta::assert_snapshot!(report(&measure(), 0.01).json());
}

#[test]
fn the_text_has_one_figure_a_line() {
    let text = report(&measure(), 0.01).text();
    insta::assert_snapshot!(text);
    let value = |name: &str| text.lines().filter(|line| line.starts_with(&format!("{name} "))).count();
    for name in ["p99", "mean", "achieved", "offered", "hits p99", "misses mean"] {
        assert_eq!(value(name), 1, "{name}");
    }
}

#[test]
fn without_an_answer_there_are_no_times() {
    let mut measure = Measure::default();
    measure.fault(Fault::Connect);
    measure.counts.due = 1;
    let report = report(&measure, 0.01);
    let text = report.text();
    assert!(!text.contains(" ms") && text.contains("errors 1"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&report.json()).expect("JSON");
    let latency = &json["phases"][0]["latency"];
    assert!(latency["mean_ms"].is_null() && latency["max_ms"].is_null() && latency["count"] == 0, "{latency}");
}

#[test]
fn a_generator_that_adds_half_of_the_times_fell_behind() {
    let mut measure = measure();
    (0..100).for_each(|_| measure.behind.record(149_000_000));
    assert!(report(&measure, 0.01).phases[0].generator_kept_up);
    (0..100).for_each(|_| measure.behind.record(151_000_000));
    assert!(report(&measure, 0.01).text().contains("\ngenerator FELL BEHIND\n"));
}

#[test]
fn the_outcome_follows_the_faults_first_and_the_rate_then() {
    let mut measure = measure();
    assert_eq!(report(&measure, 0.01).outcome(), Outcome::Faults);
    assert_eq!(report(&measure, 0.005).outcome(), Outcome::Faults);
    measure.counts.faults = Default::default();
    assert_eq!(report(&measure, 0.005).outcome(), Outcome::MissedRate);
    measure.fault(Fault::Unanswered);
    assert_eq!(report(&measure, 0.005).outcome(), Outcome::MissedRate);
    assert_eq!(report(&measure, 0.01).outcome(), Outcome::Faults);
    measure.counts.faults = Default::default();
    assert_eq!(report(&measure, 0.01).outcome(), Outcome::Good);
    let mut uncounted = report(&measure, 0.001);
    uncounted.phases[0].counts = false;
    assert_eq!(uncounted.outcome(), Outcome::Good);
}
