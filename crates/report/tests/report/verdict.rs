//! A verdict in words, whole.

#![allow(clippy::unwrap_used)]

use nearmiss_record::verdict::*;
use nearmiss_report::verdict::render;

fn comparison(metric: &str, better: Better, ratio: f64, medians: [f64; 2]) -> Comparison {
    let summary = |median| Summary { median, least: median, largest: median };
    Comparison {
        metric: metric.to_owned(),
        better,
        ratio,
        interval: Some((ratio - 0.02, ratio + 0.02)),
        confidence: 0.99,
        smallest_detectable: Some(0.04),
        tolerated_loss: 0.0,
        without: summary(medians[0]),
        with: summary(medians[1]),
    }
}

/// A verdict on two commands.
fn verdict() -> Verdict {
    Verdict {
        schema: SCHEMA.to_owned(),
        kind: "measured".to_owned(),
        remedy: None,
        sides: Sides { without: "sort a".to_owned(), with: "sort -u a".to_owned() },
        outcome: Outcome::Gain,
        comparison: comparison("wall_s", Better::Lower, 0.75, [0.5, 0.375]),
        resolution: 0.03,
        error_rate: 0.05,
        pairs: 10,
        looks: vec![10],
        stopped: Stopped::Decided,
        seed: 7,
        order: vec!["AB".to_owned(), "BA".to_owned()],
        others: vec![comparison("max_rss_bytes", Better::Lower, 1.0, [123_456.0, 123_456.0])],
        judged: Vec::new(),
        rates: None,
        required_gain: None,
        required_gain_met: None,
        engaged: None,
        start: None,
        predicted: None,
        notes: vec!["Both commands ran through /bin/sh: its start is part of every time.".to_owned()],
        without: vec![Sample::from([("wall_s".to_owned(), 0.5)])],
        with: vec![Sample::from([("wall_s".to_owned(), 0.375)])],
    }
}

#[test]
fn two_commands_go_by_their_names() {
    insta::assert_snapshot!(render(&verdict()));
}

#[test]
fn a_remedy_stands_beside_what_was_predicted() {
    let mut beside = comparison("beside_wall_s", Better::Lower, 1.0, [2.0, 2.0]);
    beside.smallest_detectable = Some(0.02);
    insta::assert_snapshot!(render(&Verdict {
        remedy: Some("color, 32 colors".to_owned()),
        outcome: Outcome::TooNoisy,
        required_gain: Some(0.05),
        required_gain_met: Some(false),
        engaged: Some("color (measured): engaged, 32 colors\n2 stacks".to_owned()),
        predicted: Some(Predicted {
            run: "r".to_owned(),
            function: Some("walk".to_owned()),
            low: 0.3,
            high: 0.5,
            overlap: Some(0.6),
        }),
        others: vec![beside],
        notes: Vec::new(),
        ..verdict()
    }));
}

/// A rate that is a quarter higher saves a fifth of the time: that, and its sign, is what a prediction is about.
#[test]
fn a_rate_is_set_beside_a_prediction_as_time_saved() {
    let predicted = Predicted { run: "r".to_owned(), function: None, low: 0.1, high: 0.15, overlap: Some(0.6) };
    let rate = Verdict {
        comparison: comparison("rate", Better::Higher, 1.25, [100.0, 125.0]),
        predicted: Some(predicted),
        ..verdict()
    };
    let last = render(&rate).lines().last().unwrap().to_owned();
    assert_eq!(last, "measured, rate: 20% saved; 5 points from what was predicted");
    let lower = Verdict { comparison: comparison("rate", Better::Higher, 0.8, [100.0, 80.0]), ..rate };
    let last = render(&lower).lines().last().unwrap().to_owned();
    assert_eq!(last, "measured, rate: -25% saved; 35 points from what was predicted");
}

#[test]
fn a_change_that_rounds_to_nothing_has_no_sign() {
    let mut same = comparison("wall_s", Better::Lower, 0.9999, [0.5, 0.49999]);
    same.interval = Some((0.9996, 1.0004));
    assert_eq!(line_of(same), "wall_s: 0.5000 A, 0.5000 B; 0.0% [0.0%, 0.0%]");
}

#[test]
fn medians_that_point_the_other_way_are_printed() {
    let other_way = comparison("wall_s", Better::Lower, 1.01, [0.5, 0.49]);
    assert_eq!(
        line_of(other_way),
        "wall_s: 0.5000 A, 0.4900 B; +1.0% [-1.0%, +3.0%] by pairs; the medians differ by -2.0%"
    );
}

fn line_of(comparison: Comparison) -> String {
    nearmiss_report::verdict::comparison(&verdict(), &comparison)
}

#[test]
fn a_remedy_that_did_nothing_is_named() {
    let mut nothing = comparison("wall_s", Better::Lower, 1.0, [0.02, 0.02]);
    nothing.interval = None;
    insta::assert_snapshot!(render(&Verdict {
        remedy: Some("color, 32 colors".to_owned()),
        outcome: Outcome::NothingToActOn,
        comparison: nothing,
        pairs: 1,
        order: vec!["BA".to_owned()],
        engaged: Some("color (measured): engaged, 32 colors of 64 bytes; 0 thread stacks colored".to_owned()),
        others: Vec::new(),
        notes: Vec::new(),
        ..verdict()
    }));
}

#[test]
fn a_start_is_named_and_no_loss() {
    let start = Start { program: "true".to_owned(), pairs: 40, seconds: 6e-5, low_seconds: 5e-5, high_seconds: 1e-4 };
    let mut slower = comparison("cpu_s", Better::Lower, 1.003, [0.02, 0.02006]);
    (slower.interval, slower.tolerated_loss) = (Some((1.002, 1.004)), 0.005);
    let short = Verdict {
        remedy: Some("color, 32 colors".to_owned()),
        outcome: slower.outcome(0.03),
        comparison: slower,
        start: Some(start),
        others: Vec::new(),
        ..verdict()
    };
    assert_ne!(short.outcome, Outcome::Loss);
    let text = render(&short);
    let named = "  the remedy's start: 0.060 ms of CPU time a program [0.050, 0.100], measured on `true`; 0.3% of a run without\n";
    assert!(text.contains(named), "{text}");
    assert!(
        text.contains("  the command is slower by no more than that start, which is not called a loss\n"),
        "{text}"
    );
}

#[test]
fn a_verdict_reads_back_as_it_was_written() {
    let directory = tempfile::tempdir().unwrap();
    let run = nearmiss_record::run::RunDir::create(directory.path(), "verify").unwrap();
    run.write_json(nearmiss_record::run::VERDICT, &verdict()).unwrap();
    assert_eq!(run.read_json::<Verdict>(nearmiss_record::run::VERDICT).unwrap(), verdict());
    let older = Verdict { schema: "nearmiss/verdict/1".to_owned(), ..verdict() };
    run.write_json(nearmiss_record::run::VERDICT, &older).unwrap();
    let error = run.read_json::<Verdict>(nearmiss_record::run::VERDICT).unwrap_err().to_string();
    assert!(error.contains("schema `nearmiss/verdict/1`, this nearmiss reads `nearmiss/verdict/2`"), "{error}");
}

#[test]
fn names_do_not_steer_the_terminal() {
    let hostile = Verdict { sides: Sides { without: "\x1b[2J".to_owned(), with: "\u{202e}".to_owned() }, ..verdict() };
    let text = render(&hostile);
    assert!(!text.contains('\x1b') && !text.contains('\u{202e}'), "{text}");
}

/// A verdict on a server under a load of 5,000 requests a second.
fn served(outcome: Outcome, with: SideRate) -> Verdict {
    let without = SideRate { offered: Some(5000.0), achieved: 4998.6, missed: 0, failed: 0 };
    let mut other = comparison("p99_ms", Better::Lower, 0.5, [2.0, 1.0]);
    other.smallest_detectable = Some(0.01);
    Verdict {
        remedy: Some("color, 32 colors".to_owned()),
        outcome,
        comparison: comparison("cpu_us_per_request", Better::Lower, 0.75, [20.0, 15.0]),
        judged: vec!["p99_ms".to_owned()],
        others: vec![other, comparison("cpu_s", Better::Lower, 0.75, [1.0, 0.75])],
        rates: Some(Rates { without, with, tolerance: 0.01 }),
        notes: Vec::new(),
        ..verdict()
    }
}

#[test]
fn rates_stand_beside_every_ratio_of_a_load() {
    let with = SideRate { offered: Some(5000.0), achieved: 4999.0, missed: 1, failed: 0 };
    let page = render(&served(Outcome::Gain, with));
    let closed = |side: SideRate| SideRate { offered: None, ..side };
    let mut verdict = served(Outcome::Gain, closed(with));
    verdict.rates = verdict.rates.map(|rates| Rates { without: closed(rates.without), ..rates });
    insta::assert_snapshot!(format!("{page}\n{}", render(&verdict)));
}

#[test]
fn a_void_verdict_names_which_side_missed_what() {
    let missed = SideRate { offered: Some(5000.0), achieved: 4100.0, missed: 9, failed: 0 };
    let failed = SideRate { offered: Some(5000.0), achieved: 5000.0, missed: 0, failed: 10 };
    let pages = [missed, failed].map(|with| render(&served(Outcome::Void, with)));
    insta::assert_snapshot!(pages.join("\n"));
}

#[test]
fn a_closed_loop_that_slowed_down_or_printed_nothing_is_named() {
    let side = |achieved| SideRate { offered: None, achieved, missed: 0, failed: 0 };
    let mut slowed = served(Outcome::Void, side(4100.0));
    slowed.rates = Some(Rates { without: side(5000.0), with: side(4100.0), tolerance: 0.01 });
    let why = |verdict: &Verdict| render(verdict).lines().nth(2).unwrap().trim().to_owned();
    assert_eq!(
        why(&slowed),
        "the load waits for answers, and got 5,000/s without the remedy and 4,100/s with the remedy, so that less was \
         requested: compare at a fixed rate (`nearmiss-webload rate`)"
    );
    let undecided = Verdict { outcome: Outcome::Undecided, rates: None, ..slowed };
    assert!(render(&undecided).starts_with("undecided (color, 32 colors), measured in 10 pairs\n"));
    assert!(
        why(&undecided).starts_with("the load prints neither its requests nor its rate, and a side that did less work")
    );
}

#[test]
fn a_figure_of_too_few_pairs_has_no_ratio_and_no_verdict() {
    let side = SideRate { offered: Some(5000.0), achieved: 5000.0, missed: 0, failed: 0 };
    let mut verdict = served(Outcome::Gain, side);
    (verdict.others[0].interval, verdict.others[0].smallest_detectable) = (None, None);
    let page = render(&verdict);
    let p99 = page.lines().find(|line| line.contains("p99_ms")).unwrap();
    assert!(p99.ends_with("offered); too few pairs for a ratio"), "{p99}");
}

#[test]
fn a_verdict_on_recordings_is_marked_modelled_and_shows_the_ranges() {
    let side = |least: f64, median: f64, largest: f64| Summary { median, least, largest };
    let of = |metric: &str, without, with: Summary, ratio| Comparison {
        metric: metric.to_owned(),
        interval: None,
        smallest_detectable: None,
        ratio,
        without,
        with,
        ..comparison(metric, Better::Lower, 1.0, [1.0, 1.0])
    };
    let modelled = Verdict {
        kind: "modelled".to_owned(),
        remedy: Some("pad".to_owned()),
        comparison: of("modelled cycles", side(33e6, 34e6, 35e6), side(19e6, 20e6, 21e6), 20.0 / 34.0),
        others: vec![of("remote share", side(0.48, 0.49, 0.5), side(0.005, 0.01, 0.02), 0.01 / 0.49)],
        error_rate: 0.1,
        pairs: 3,
        notes: Vec::new(),
        ..verdict()
    };
    assert_eq!(
        render(&modelled),
        "gain (pad), modelled in 3 recordings a side\n  \
         modelled cycles: 34000000 [33000000, 35000000] without, 20000000 [19000000, 21000000] with; -41.2%\n  \
         the ranges are apart, which chance makes them in 10% of equal sides\n  \
         remote share: 0.4900 [0.4800, 0.5000] without, 0.01000 [0.005000, 0.02000] with; -98.0%\n  \
         seed 7; A ran first in 1 of 2 pairs\n"
    );
    let overlap = Verdict { outcome: Outcome::TooNoisy, ..modelled };
    assert!(render(&overlap).contains("the ranges overlap: equal recordings differ by more than the sides do"));
}
