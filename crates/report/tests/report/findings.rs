//! Findings and rehearsals as people read them.

#![allow(clippy::unwrap_used)]

use crate::support;
use nearmiss_record::figures::{Cell, Table};
use nearmiss_record::finding::*;
use nearmiss_record::rehearsal::{Rehearsal, Rehearsals};
use nearmiss_record::waits::{Reason, Wait};
use nearmiss_report::{findings, html, rehearsals};

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

fn finding(reach: Reach) -> Finding {
    let outside = reach == Reach::Outside;
    Finding {
        remedy: "color".into(),
        symptom: "81% of L1d data misses in `walk` are conflict misses of 64 malloc blocks that fall on 1 of 64 sets at a time".into(),
        cause: "Large blocks are mapped, so they all begin at the same offset of their pages: about 64 lines compete for each set, which holds 8.".into(),
        known: EvidenceKind::Modelled,
        evidence: Evidence {
            lines: [
                ("Objects", "`a.c:32 main`: 64 objects of 128 KiB, allocated by main; 81% of the misses"),
                ("L1d", "299,654 conflict misses (81% of its data misses), 64 lines for each of 1 of 64 sets (8 ways): its index lies within the page: every color reaches a set of its own."),
                ("Cycles", "7.7% of the command's modelled cycles wait for these misses, in walk."),
            ]
            .map(|(label, text)| EvidenceLine { label: label.into(), text: text.into() })
            .to_vec(),
            tables: Vec::new(),
            most_gain: 0.077,
        },
        treatment: "8 colors of 64 bytes, 14 KiB of memory".into(),
        reach,
        prediction: Prediction {
            gain: 0.077,
            low: 0.07,
            high: 0.081,
            modelled_cycles: 30_000_000,
            measured_cycles: None,
            of_whole_run: None,
            placements: vec![1, 2, 3, 4, 5],
            of: Base::CYCLES,
            overlap: Some(0.6),
            function: Some(FunctionGain {
                name: "walk".into(),
                gain: 0.63,
                cycles_before: 2_374_395,
                cycles_after: 878_526,
                dependent_gain: 0.8,
            }),
            approximate: vec!["approximate at the first level".into()],
            moments: None,
        },
        unless: vec!["the machine hides more of each miss than the 60% assumed (overlap)".into()],
        apply: outside.then(|| words("nearmiss apply color --colors 8 --blocks 131072 -- ./a")),
        verify: outside.then(|| words("nearmiss verify color --colors 8 --blocks 131072 -- ./a")),
    }
}

#[test]
fn a_gain_of_some_moments_is_put_beside_that_of_the_whole_run() {
    let mut found = finding(Reach::Outside);
    let at_ns = vec![10_000_000_000, 30_500_000_000];
    found.prediction.moments = Some(Moments { at_ns, of: 3, whole_gain: 0.051 });
    let page = page(vec![found], None).split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = "Found at 10.00 s and 30.50 s, 2 of 3 moments: 5.1% of the whole run, if each moment stands for the \
                    stretches with its functions.";
    assert!(page.contains(sentence), "{page}");
}

fn page(list: Vec<Finding>, healthy: Option<&str>) -> String {
    findings::render(&found(list, healthy), 80)
}

fn found(list: Vec<Finding>, healthy: Option<&str>) -> Findings {
    Findings {
        schema: SCHEMA.into(),
        machine: "zen3-milan".into(),
        command: vec!["./a".into()],
        measured: None,
        known: list.first().map_or(EvidenceKind::Modelled, |finding| finding.known),
        findings: list,
        healthy: healthy.map(str::to_owned),
        unexplained: None,
        advice: Vec::new(),
        notes: Vec::new(),
        caution: None,
    }
}

/// The findings of a run's HTML page, a tag a line.
fn section(found: Findings) -> String {
    let report = nearmiss_report::load::Report { findings: Some(found), ..support::healthy().report() };
    let page = html::render(&report, html::Options::default());
    let begin = page.find("<section id=\"findings\"").expect("a section");
    let end = page[begin..].find("</section>").expect("its end") + begin;
    assert!(begin < page.find("<section id=\"functions\"").expect("the tables"), "above the tables");
    let head = &page[..begin];
    assert!(head.contains("href=\"#findings\">color: predicted gain"), "the head names the finding that gains most");
    page[begin..end].replace("><", ">\n<")
}

#[test]
fn a_page_has_each_finding_with_all_its_evidence() {
    let mut finding = finding(Reach::Outside);
    let rows = vec![vec![Cell::text("walk"), Cell::Share(0.81), Cell::Cycles(2_374_395)]];
    let columns = ["function", "conflict misses", "cycles"].map(str::to_owned).to_vec();
    finding.evidence.tables = vec![Table { title: "functions".into(), columns, rows }];
    let more = Findings {
        advice: vec!["Give `buffer` back later".into()],
        notes: vec!["pace did not run: it needs an observation.".into()],
        ..found(vec![finding], None)
    };
    insta::assert_snapshot!(section(more));
}

#[test]
fn no_word_of_a_finding_becomes_markup() {
    const HOSTILE: &str = "</code></style><script>owned()</script>\" onmouseover=\"owned()";
    let mut finding = finding(Reach::Inside { why: HOSTILE.into(), change: HOSTILE.into() });
    finding.symptom = HOSTILE.into();
    finding.evidence.lines[0] = EvidenceLine { label: HOSTILE.into(), text: HOSTILE.into() };
    finding.evidence.tables =
        vec![Table { title: HOSTILE.into(), columns: vec![HOSTILE.into()], rows: vec![vec![Cell::text(HOSTILE)]] }];
    finding.prediction.of = Base::other(HOSTILE);
    finding.apply = Some(words(HOSTILE));
    let hostile = Findings { notes: vec![HOSTILE.into()], advice: vec![HOSTILE.into()], ..found(vec![finding], None) };
    let section = section(hostile);
    assert!(!section.contains("<script") && !section.contains("\" onmouseover"), "{section}");
}

#[test]
fn a_finding_has_all_of_its_parts() {
    let inside = Reach::Inside { why: "it is a promise".into(), change: "pad each row".into() };
    let notes = [
        "pace did not run: it needs an observation.",
        "The run has parts, and a gain holds for these: what ran between them was not recorded.",
    ];
    let noted = Findings {
        notes: notes.map(str::to_owned).to_vec(),
        ..found(vec![finding(Reach::Outside), finding(inside)], None)
    };
    insta::assert_snapshot!(findings::render(&noted, 80));
}

#[test]
fn a_healthy_program_is_called_healthy() {
    insta::assert_snapshot!(page(Vec::new(), Some("3.1% of the modelled cycles wait for caches and memory.")));
}

#[test]
fn waits_that_nothing_explains_are_named() {
    let wait = |cycles: u64, reason, function: &str, object: Option<&str>| Wait {
        cycles,
        share: cycles as f64 / 1000.0,
        reason,
        level: "L3".into(),
        function: function.into(),
        kernel: function == "clear_page",
        object: object.map(str::to_owned),
    };
    let findings = Findings {
        command: vec!["./a".into()],
        machine: "zen3-milan".into(),
        unexplained: Some(Unexplained {
            consulted: ["color", "apart"].map(str::to_owned).to_vec(),
            why: "61% of the modelled cycles wait for caches and memory, and no objects crowd on few sets.".into(),
            waits: vec![
                wait(410, Reason::Capacity, "lookup", Some("table")),
                wait(150, Reason::FirstTouch, "clear_page", None),
            ],
        }),
        advice: vec!["`table` has 256 MiB, and L3 holds 32 MiB: 41% of the cycles wait for parts of it".into()],
        ..Findings::default()
    };
    insta::assert_snapshot!(findings::render(&findings, 80));
}

#[test]
fn a_rehearsal_is_a_table() {
    let row = |colors, misses, cycles: u64| {
        let counts = [misses, 70_000, misses / 2, 12_345].map(Cell::Count);
        let cycles = [cycles, cycles - 10, cycles + 10].map(Cell::Cycles).into_iter();
        let gain = Cell::Share(if colors == 1 { 0.0 } else { 0.5 });
        [Cell::Count(colors)]
            .into_iter()
            .chain(counts)
            .chain(cycles)
            .chain([gain, Cell::Bytes((colors - 1) * 2048)])
            .collect()
    };
    let columns = [
        "colors",
        "L1 misses",
        "L2 misses",
        "bus, objects",
        "bus, others",
        "cycles",
        "least",
        "most",
        "gain",
        "memory",
    ];
    let table = Rehearsal {
        remedy: "color".into(),
        subject: "64 malloc blocks".into(),
        basis: "medians over 5 page placements, overlap 0.6; exact: the trace was made with the one-line filter".into(),
        placements: vec![1, 2, 3, 4, 5],
        table: Table {
            title: "rehearsal".into(),
            columns: columns.map(str::to_owned).to_vec(),
            rows: vec![row(1, 299_654, 2_000_000), row(8, 654, 1_000_000)],
        },
        more: Vec::new(),
    };
    let notes = vec!["Not rehearsed: no stores.".to_owned(), "pace needs an observation.".to_owned()];
    let record = Rehearsals { machine: "zen3-milan".into(), tables: vec![table], notes, ..Rehearsals::default() };
    insta::assert_snapshot!(rehearsals::render(&record));
    let nothing = Rehearsals { nothing: Some("no objects crowd on few sets".into()), ..Rehearsals::default() };
    assert_eq!(rehearsals::render(&nothing), "nothing to rehearse: no objects crowd on few sets\n");
    let noted = Rehearsals { notes: vec!["Not rehearsed: no stores.".into()], ..nothing };
    assert!(rehearsals::render(&noted).ends_with("few sets\n\nnote: Not rehearsed: no stores.\n"));
}

#[test]
fn a_measured_command_stands_beside_its_model() {
    let measured = Measured {
        cpu_ns: 48_000_000,
        least_ns: 47_000_000,
        most_ns: 51_500_000,
        runs: 5,
        only_user: false,
        cycles: 100_000_000,
        modelled_cycles: 108_000_000,
    };
    let page = |measured| {
        findings::render(
            &Findings { command: vec!["./a".into()], measured: Some(measured), ..Findings::default() },
            100,
        )
    };
    assert!(
        page(measured)
            .contains("\nmeasured 48.0 ms of CPU time, modelled 51.8 ms (1.08); 5 runs took 47.0 ms to 51.5 ms\n"),
        "{}",
        page(measured)
    );
    assert!(page(Measured { only_user: true, ..measured }).contains("48.0 ms of time in user mode, modelled"));
}

#[test]
fn a_measured_finding_is_marked_so_and_has_no_pages() {
    let measured = Finding {
        known: EvidenceKind::Measured,
        prediction: Prediction {
            of: Base::other("the CPU time"),
            placements: Vec::new(),
            overlap: None,
            function: None,
            ..finding(Reach::Outside).prediction
        },
        ..finding(Reach::Outside)
    };
    let page = page(vec![measured], None);
    assert!(page.starts_with("./a, observed on zen3-milan\n\n1. color: predicted gain 7.7% of the CPU time (7.0% to 8.1%).\nMeasured   81%"), "{page}");
    assert!(page.contains("\nPredicted  predicted gain 7.7% of the CPU time (7.0% to 8.1%).\n"), "{page}");
}

#[test]
fn a_noisy_calibration_is_named_in_the_head() {
    let caution = Some("host was calibrated beside other work".to_owned());
    let findings = Findings { machine: "host".into(), command: vec!["./a".into()], caution, ..Findings::default() };
    let page = nearmiss_report::findings::render(&findings, 80);
    assert!(page.starts_with("./a, modelled on host\nCaution    host was calibrated beside other work\n"), "{page}");
}

#[test]
fn a_process_without_a_command_is_named_as_one() {
    let findings = Findings { machine: "this machine".into(), known: EvidenceKind::Measured, ..Findings::default() };
    assert!(
        nearmiss_report::findings::render(&findings, 80).starts_with("A running process, observed on this machine\n")
    );
}
