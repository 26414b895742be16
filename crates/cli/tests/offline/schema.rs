//! The schemas of records: published as they are printed, and real records fit them, by the judgement of another library.

#![allow(clippy::unwrap_used)]

use nearmiss_record::baseline::{Baseline, BaselinePart, Counts};
use nearmiss_record::figures::{Cell, Table};
use nearmiss_record::finding::{
    Base, Evidence, EvidenceKind, EvidenceLine, Finding, Findings, FunctionGain, Measured, Moments, Prediction, Reach,
    Unexplained,
};
use nearmiss_record::gate::{Cause, GateRecord, GatedSide, JudgedFigure, Limit, PartKind, Recorder, Ruling};
use nearmiss_record::model::MissClass;
use nearmiss_record::rehearsal::{Rehearsal, Rehearsals};
use nearmiss_record::waits::{Reason, Wait};
use nearmiss_record::{baseline, finding, gate, rehearsal};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn nearmiss(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nearmiss")).args(words).output().unwrap()
}

fn printed(words: &[&str]) -> Value {
    let output = nearmiss(words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn kept(path: &str) -> Value {
    serde_json::from_slice(&std::fs::read(root().join(path)).unwrap()).unwrap()
}

/// A field that no schema describes is a fault here, though a reader of records may skip one.
fn strict(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(strict);
            if members.get("properties").is_some_and(Value::is_object) && members.contains_key("type") {
                members.entry("additionalProperties").or_insert(json!(false));
            }
        }
        Value::Array(members) => members.iter_mut().for_each(strict),
        _ => {}
    }
}

/// Returns the faults of a record by the published schema of its name.
fn faults(name: &str, record: Value) -> Vec<String> {
    let mut schema = kept(&format!("docs/schema/{name}.json"));
    strict(&mut schema);
    let validator = jsonschema::validator_for(&schema).unwrap();
    let text = |error: jsonschema::ValidationError<'_>| format!("{}: {error}", error.instance_path());
    validator.iter_errors(&record).map(text).map(|text| text.chars().take(300).collect()).collect()
}

fn assert_fits(name: &str, record: Value) {
    assert_eq!(faults(name, record), Vec::<String>::new(), "{name}");
}

fn names() -> Vec<String> {
    let output = nearmiss(&["schema"]);
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().skip(1).map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
}

#[test]
fn the_published_schemas_are_those_that_the_verb_prints() {
    let names = names();
    assert!(names.len() >= 15, "{names:?}");
    for name in &names {
        let file = root().join(format!("docs/schema/{name}.json"));
        let published = std::fs::read(&file).unwrap_or_default();
        let current = nearmiss(&["schema", name]).stdout;
        assert!(published == current, "{}: stale: nearmiss schema --all docs/schema", file.display());
    }
    let mut files: Vec<String> = std::fs::read_dir(root().join("docs/schema"))
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.strip_suffix(".json").map(str::to_owned))
        .collect();
    let mut names = names;
    files.sort();
    names.sort();
    assert_eq!(files, names, "one file a record");
}

#[test]
fn a_wrong_record_is_refused_with_the_possible_ones() {
    let output = nearmiss(&["schema", "gat"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len(), text.lines().count()), (Some(2), 0, 1), "{text}");
    assert!(text.contains("there are doctor, machine") && text.contains("gate, baseline"), "{text}");
    let output = nearmiss(&["schema", "--all", "/nowhere/at/all"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
}

#[test]
fn what_verbs_print_fits() {
    assert_fits("doctor", printed(&["doctor", "--quick", "--json"]));
    assert_fits("machines", printed(&["machine", "list", "--json"]));
    assert_fits("machine", printed(&["machine", "show", "zen4-genoa", "--json"]));
    let fixture = |name: &str| root().join("crates/report/fixtures").join(name).display().to_string();
    for run in ["healthy", "run-queue", "run-queue-colored"] {
        let report = printed(&["report", &fixture(run), "--json"]);
        assert_fits("manifest", report["manifest"].clone());
        assert_fits("model", report["model"].clone());
        assert_fits("report", report);
    }
    for run in ["server-locked", "server-lock-free"] {
        assert_fits("observe", printed(&["report", &fixture(run), "--json"]));
    }
    let (before, after) = (fixture("run-queue"), fixture("run-queue-colored"));
    assert_fits("comparison", printed(&["report", "--compare", &before, &after, "--json"]));
    let several = ["report", "--compare", &before, &after, "--against", &before, &after, "--json"];
    assert_fits("comparison", printed(&several));
}

#[test]
fn what_remedies_did_fits() {
    let place = tempfile::tempdir().unwrap();
    let did = |words: &[&str]| -> Option<Value> {
        let file = place.path().join("did.json");
        let options = ["--json", file.to_str().unwrap(), "--", "cat", "/dev/null"];
        let output = nearmiss(&[&["apply"], words, &options].concat());
        if output.status.code() == Some(125) {
            println!("skipped {words:?}: {}", String::from_utf8_lossy(&output.stderr).trim());
            return None;
        }
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        Some(serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap())
    };
    let mut fitted = 0;
    for (name, words) in [
        ("apart-applied", &["apart"][..]),
        ("bypass-copies-applied", &["bypass", "--copies", "--site", "main"]),
        ("bypass-every-copy-applied", &["bypass", "--copies", "--every-copy"]),
        ("bypass-files-applied", &["bypass", "--files"]),
        ("color-applied", &["color"]),
        ("huge-applied", &["huge"]),
        ("keep-applied", &["keep"]),
        ("local-applied", &["local", "--bind", "round-robin"]),
        ("pace-applied", &["pace"]),
    ] {
        if let Some(record) = did(words) {
            assert_fits(name, record);
            fitted += 1;
        }
    }
    assert!(fitted >= 4, "{fitted}");
}

#[test]
fn a_verdict_of_runs_here_fits() {
    let place = tempfile::tempdir().unwrap();
    let words = ["verify", "commands", "--json", "--pairs", "8", "--time-limit", "1s", "true", "true a"];
    let output = Command::new(env!("CARGO_BIN_EXE_nearmiss")).args(words).current_dir(place.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_fits("verdict", serde_json::from_slice(&output.stdout).unwrap());
}

fn table() -> Table {
    let cells = vec![Cell::Count(1), Cell::Number(0.5), Cell::Share(0.25), Cell::Bytes(64), Cell::Cycles(7)];
    let more = vec![Cell::Nanos(3), Cell::text("L1d"), Cell::Unknown];
    Table { title: "t".to_owned(), columns: vec!["c".to_owned()], rows: vec![cells, more] }
}

fn finding(reach: Reach, of: Base) -> Finding {
    let outside = reach == Reach::Outside;
    let words = || outside.then(|| vec!["nearmiss".to_owned()]);
    Finding {
        remedy: "r".to_owned(),
        known: EvidenceKind::Modelled,
        symptom: "s".to_owned(),
        cause: "c".to_owned(),
        evidence: Evidence {
            lines: vec![EvidenceLine::new("l", "t".to_owned())],
            tables: vec![table()],
            most_gain: 0.5,
        },
        treatment: "t".to_owned(),
        reach,
        prediction: Prediction {
            gain: 0.3,
            modelled_cycles: 9,
            measured_cycles: outside.then_some(8),
            of,
            overlap: Some(0.6),
            function: Some(FunctionGain::default()),
            moments: outside.then(Moments::default),
            ..Prediction::default()
        },
        unless: vec!["u".to_owned()],
        apply: words(),
        verify: words(),
    }
}

/// Each field of findings, there and not there: `diagnose` needs a guest.
#[test]
fn findings_and_rehearsals_fit() {
    let inside = Reach::Inside { why: "w".to_owned(), change: "c".to_owned() };
    let [level, function] = ["L2", "f"].map(str::to_owned);
    let wait = Wait { cycles: 1, share: 0.5, reason: Reason::Conflict, level, function, kernel: false, object: None };
    let full = Findings {
        schema: finding::SCHEMA.to_owned(),
        caution: Some("c".to_owned()),
        measured: Some(Measured::default()),
        findings: vec![finding(Reach::Outside, Base::CYCLES.measured()), finding(inside, Base::other("the calls"))],
        healthy: Some("h".to_owned()),
        unexplained: Some(Unexplained { waits: vec![wait], ..Unexplained::default() }),
        advice: vec!["a".to_owned()],
        ..Findings::default()
    };
    let empty = Findings { schema: finding::SCHEMA.to_owned(), ..Findings::default() };
    for findings in [full, empty] {
        assert_fits("findings", serde_json::to_value(findings).unwrap());
    }
    let table = Rehearsal { table: table(), more: vec![table()], ..Rehearsal::default() };
    let rehearsals = Rehearsals { schema: rehearsal::SCHEMA.to_owned(), tables: vec![table], ..Rehearsals::default() };
    assert_fits("rehearsals", serde_json::to_value(rehearsals).unwrap());
}

fn gate_record() -> GateRecord {
    let cause = Cause {
        kind: PartKind::Function,
        name: "f".to_owned(),
        module: "m".to_owned(),
        file: "f.c".to_owned(),
        line: 7,
        caller: "g".to_owned(),
        old: 1,
        new: 2,
        class: Some((MissClass::ALL[0], -3)),
        calls: (1, 2),
    };
    let figure = |limit, causes| JudgedFigure {
        name: "user.l1".to_owned(),
        old: 1.0,
        new: 2.5,
        difference: 1.5,
        noise: 0.25,
        limit,
        ruling: Ruling::NoDifference,
        causes,
    };
    GateRecord {
        schema: gate::SCHEMA.to_owned(),
        nearmiss: "0".to_owned(),
        recorder: Recorder::default(),
        old: GatedSide::default(),
        new: GatedSide::default(),
        confidence: 0.999,
        passed: true,
        figures: vec![figure(Limit::Share(0.02), vec![cause]), figure(Limit::Count(0), Vec::new())],
        notes: vec!["n".to_owned()],
    }
}

/// Each field of a gate's records, there and not there: `gate` needs a guest.
#[test]
fn gates_and_baselines_fit() {
    assert_fits("gate", serde_json::to_value(gate_record()).unwrap());
    let part = BaselinePart {
        kind: PartKind::SystemCall,
        name: "write".to_owned(),
        module: String::new(),
        kernel: true,
        file: "f.c".to_owned(),
        line: 0,
        caller: String::new(),
        calls: 1,
        counts: Counts { misses: vec![[1; 6]], ..Counts::default() },
    };
    let figures = [("user.l1".to_owned(), vec![1, 2])].into();
    let side = baseline::Side { command: "c".to_owned(), figures, parts: vec![part], least_kept: 1000 };
    let baseline =
        Baseline { schema: baseline::SCHEMA.to_owned(), nearmiss: "0".to_owned(), recorder: Recorder::default(), side };
    assert_fits("baseline", serde_json::to_value(baseline).unwrap());
}

#[test]
fn a_record_that_does_not_fit_would_be_seen() {
    let sound = serde_json::to_value(gate_record()).unwrap();
    let damaged = |change: fn(&mut Value)| {
        let mut record = sound.clone();
        change(&mut record);
        faults("gate", record).len()
    };
    assert_eq!(damaged(|_| {}), 0);
    assert_eq!(damaged(|record| record["schema"] = json!("nearmiss/gate/0")), 1);
    assert_eq!(damaged(|record| record["passed"] = json!("yes")), 1);
    assert_eq!(damaged(|record| record["figures"][0]["ruling"] = json!("worse")), 1);
    assert_eq!(damaged(|record| record["more"] = json!(1)), 1);
    assert_eq!(damaged(|record| drop(record.as_object_mut().unwrap().remove("old"))), 1);
}
