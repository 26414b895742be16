//! A gate's verdict in every form, whole.

#![allow(clippy::unwrap_used)]

use nearmiss_record::gate::*;
use nearmiss_record::model::MissClass;
use nearmiss_report::gate::{junit, markdown, sarif, text};

fn figure(name: &str, [old, new]: [f64; 2], noise: f64, ruling: Ruling) -> JudgedFigure {
    let difference = new - old;
    let (limit, causes) = (Limit::Share(0.02), Vec::new());
    JudgedFigure { name: name.to_owned(), old, new, difference, noise, limit, ruling, causes }
}

fn cause(kind: PartKind, name: &str, module: &str, [old, new]: [u64; 2]) -> Cause {
    let (file, caller) = (String::new(), String::new());
    Cause {
        kind,
        name: name.into(),
        module: module.into(),
        file,
        line: 0,
        caller,
        old,
        new,
        class: None,
        calls: (0, 0),
    }
}

fn failed() -> GateRecord {
    let mut l2 = figure("user.l2", [930_000.0, 968_130.0], 2400.0, Ruling::Beyond);
    l2.causes = vec![
        Cause {
            file: "/ci/project/src/table.c".into(),
            line: 41,
            caller: "insert".into(),
            class: Some((MissClass::Conflict, 35_400)),
            calls: (1200, 13_200),
            ..cause(PartKind::Function, "grow", "table", [400, 38_400])
        },
        cause(PartKind::Object, "table.c:12 grow|@<b>", "heap", [0, 36_000]),
    ];
    let mut write = figure("syscalls.write", [4.0, 8.0], 0.0, Ruling::Beyond);
    write.limit = Limit::Count(0);
    write.causes = vec![Cause { caller: "flush".into(), ..cause(PartKind::SystemCall, "write", "", [4, 8]) }];
    let figures = vec![
        figure("user.instructions", [58_210_633.0, 58_210_633.0], 0.0, Ruling::NoDifference),
        l2,
        figure("user.coherence", [0.0, 0.0], 0.0, Ruling::NoDifference),
        figure("kernel.cycles", [1_822_939.0, 1_800_000.0], 10_000.0, Ruling::Better),
        figure("syscalls", [35.0, 39.0], 0.5, Ruling::Unclear),
        figure("syscalls.read", [7.0, 7.0], 0.0, Ruling::NoDifference),
        write,
        figure("faults", [63.0, 64.0], 0.0, Ruling::Within),
    ];
    let recorder =
        Recorder { machine: "zen4-genoa".into(), cpus: 2, kernel: "6.12.117".into(), emulator: "QEMU 7.2".into() };
    let side = |command: &str| GatedSide { command: command.into(), recordings: 5 };
    GateRecord {
        schema: SCHEMA.into(),
        nearmiss: "0.1.0".into(),
        recorder,
        old: side("./old words"),
        new: side("./new words"),
        confidence: 0.999,
        passed: false,
        figures,
        notes: vec!["The command has threads, so the guest has 2 CPUs.".into()],
    }
}

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

#[test]
fn a_terminal_shows_table_and_causes() {
    insta::assert_snapshot!(plain(&text(&failed())));
}

#[test]
fn a_pull_request_gets_one_table_and_folded_causes() {
    let comment = markdown(&failed());
    assert!(!comment.contains("@<b>") && comment.contains("grow\\|@&#8203;&lt;b&gt;"), "{comment}");
    insta::assert_snapshot!(comment);
}

#[test]
fn junit_has_a_test_a_figure() {
    insta::assert_snapshot!(junit(&failed()));
}

#[test]
fn sarif_points_at_the_line_of_the_first_cause() {
    let log: serde_json::Value = serde_json::from_str(&sarif(&failed(), "/ci/project")).unwrap();
    let results = &log["runs"][0]["results"];
    assert_eq!(results.as_array().unwrap().len(), 2);
    let place = &results[0]["locations"][0]["physicalLocation"];
    assert_eq!((&place["artifactLocation"]["uri"], &place["region"]["startLine"]), (&"src/table.c".into(), &41.into()));
    assert_eq!(results[1]["locations"], results[0]["locations"], "no line is known of it");
    // A file elsewhere is no place for a code host.
    let elsewhere: serde_json::Value = serde_json::from_str(&sarif(&failed(), "/ci/other")).unwrap();
    let place = &elsewhere["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(
        place["artifactLocation"]["uri"],
        failed().new.command.split(' ').next().unwrap().trim_start_matches("./")
    );
    insta::assert_snapshot!(sarif(&failed(), "/ci/project"));
}

#[test]
fn a_gate_that_passes_states_it_first() {
    let mut record = failed();
    record.figures.retain(|figure| figure.ruling == Ruling::NoDifference);
    record.passed = true;
    assert!(plain(&text(&record)).starts_with("passed: no figure is worse\n"), "{}", text(&record));
    assert!(markdown(&record).starts_with("### ✅ nearmiss gate passed: no figure is worse\n"));
    assert!(junit(&record).contains("failures=\"0\""));
}
