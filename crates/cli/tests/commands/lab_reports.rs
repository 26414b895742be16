//! Reports of a lab: how far it is, what is missing, what is in the way, where it is damaged.

#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// Six cells in an order that the seed decides. The second repetition of `half` prints no size.
const SPEC: &str = r#"
name = "reported"
repetitions = 3
measure.speed = { regex = "speed ([0-9]+)" }
measure.size = { regex = "size ([0-9]+)" }
[[workload]]
name = "whole"
command = "echo speed 5 size 7"
[[workload]]
name = "half"
command = "echo x >> count; n=$(wc -l < count); echo speed $n; [ $n = 2 ] || echo size $n"
"#;

fn lab(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nearmiss")).arg("lab").args(arguments).current_dir(directory).output().unwrap()
}

fn errors(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn record(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no record: {}{}", text(output), errors(output)))
}

/// A directory with the lab, which has ended.
fn ended() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("spec.toml"), SPEC).unwrap();
    let run = lab(directory.path(), &["run", "spec.toml"]);
    assert_eq!(run.status.code(), Some(1), "{}", errors(&run));
    directory
}

/// Takes the last cells away, as a kill would have left the lab.
fn interrupt(lab: &Path, cells: usize) {
    let journal = fs::read_to_string(lab.join("journal.jsonl")).unwrap();
    let lines: Vec<&str> = journal.lines().collect();
    let (kept, gone) = lines.split_at(lines.len() - cells);
    for line in gone {
        let cell: Value = serde_json::from_str(line).unwrap();
        fs::remove_dir_all(lab.join("cells").join(cell["cell"].as_str().unwrap())).unwrap();
    }
    fs::write(lab.join("journal.jsonl"), kept.join("\n") + "\n").unwrap();
}

#[test]
fn a_missing_figure_hides_no_other() {
    let directory = ended();
    let shown = record(&lab(directory.path(), &["show", "--json"]));
    let entry = |metric: &str| {
        let table = shown["metrics"].as_array().unwrap().iter().find(|table| table["metric"] == metric).unwrap();
        let row = table["rows"].as_array().unwrap().iter().find(|row| row["levels"] == json!(["half"])).unwrap();
        row["entries"][0].clone()
    };
    let counts = |metric: &str| {
        let entry = entry(metric);
        (entry["runs"].clone(), entry["lacking"].clone(), entry["failed"].clone(), entry["summary"]["median"].clone())
    };
    assert_eq!(counts("speed"), (json!(3), json!(0), json!(0), json!(2.0)));
    assert_eq!(counts("size"), (json!(3), json!(1), json!(0), json!(2.0)), "the median of 1 and 3");
    assert_eq!(entry("wall_s")["lacking"], 0);
    let totals = json!({ "cells": 6, "ended": 6, "done": 5, "incomplete": 1, "failed": 0, "timed_out": 0 });
    assert_eq!((&shown["totals"], &shown["not_done"]), (&totals, &json!(1)));
    let cell = shown["ended"].as_array().unwrap().iter().find(|cell| cell["how"] == "incomplete").unwrap();
    assert_eq!((&cell["figures"]["speed"], cell["figures"].get("size")), (&json!(2.0), None));
    assert!(cell["why"].as_str().unwrap().starts_with("size: "), "{cell}");
    let text = text(&lab(directory.path(), &["show"]));
    assert!(text.contains("1 without") && text.contains("without: repetitions with a successful command"), "{text}");
    // A third try succeeds where the command then prints all.
    let retried = lab(directory.path(), &["resume", "--retry", "--json"]);
    assert_eq!((retried.status.code(), record(&retried)["totals"]["done"].clone()), (Some(0), json!(6)));
}

#[test]
fn an_unfinished_lab_is_reported() {
    let directory = ended();
    let path = directory.path().join("nearmiss-labs/reported");
    assert!(!text(&lab(directory.path(), &["show"])).contains("Unfinished"));
    interrupt(&path, 4);
    let shown = text(&lab(directory.path(), &["show"]));
    let line = "\nUnfinished: 2 of 6 cells have ended; `nearmiss lab resume nearmiss-labs/reported` runs the rest\n";
    assert!(shown.contains(line), "{shown}");
    // Totals of the whole lab, for any part shown.
    let part = record(&lab(directory.path(), &["show", "--only", "workload=whole", "--json"]));
    assert_eq!((&part["totals"]["cells"], &part["totals"]["ended"]), (&json!(6), &json!(2)));
    let page = lab(directory.path(), &["show", "--html=page.html"]);
    assert_eq!(page.status.code(), Some(0), "{}", errors(&page));
    let page = fs::read_to_string(directory.path().join("page.html")).unwrap();
    assert!(page.contains("<p>Unfinished: 2 of 6 cells have ended"), "{page}");
    // Several levels of an axis are one or the other.
    let both =
        record(&lab(directory.path(), &["show", "--only", "workload=whole", "--only", "workload=half", "--json"]));
    assert_eq!(both["cells"], 2);
}

#[test]
fn a_page_and_the_record_go_together() {
    let directory = ended();
    let shown = lab(
        directory.path(),
        &["show", "--json", "--html=page.html", "--parquet", "cells.parquet", "--figure", "speed"],
    );
    assert_eq!(shown.status.code(), Some(0), "{}", errors(&shown));
    assert_eq!(record(&shown)["metrics"].as_array().unwrap().len(), 1);
    assert!(fs::read_to_string(directory.path().join("page.html")).unwrap().contains("Measured speed"));
    assert!(fs::read(directory.path().join("cells.parquet")).unwrap().starts_with(b"PAR1"));
}

#[test]
fn a_second_run_is_a_new_lab_and_reports_that_the_first_is_unfinished() {
    let directory = ended();
    let run = |arguments: &[&str]| lab(directory.path(), &[&["run", "spec.toml"], arguments].concat());
    let second = run(&[]);
    assert!(errors(&second).contains("lab nearmiss-labs/reported-2, seed 1"), "{}", errors(&second));
    assert!(!errors(&second).contains("goes on with it"), "{}", errors(&second));
    interrupt(&directory.path().join("nearmiss-labs/reported-2"), 5);
    let third = errors(&run(&[]));
    let hint = "nearmiss: nearmiss-labs/reported-2 has ended 1 of 6 cells; `nearmiss lab resume nearmiss-labs/reported-2` goes on \
                with it, and this is a new lab\n";
    assert!(third.contains(hint) && third.contains("lab nearmiss-labs/reported-3, seed 1"), "{third}");
}

#[test]
fn an_obstacle_to_a_lab_is_reported_before_anything_runs() {
    let directory = ended();
    fs::remove_file(directory.path().join("count")).unwrap();
    fs::write(directory.path().join("file"), "mine").unwrap();
    fs::create_dir(directory.path().join("empty")).unwrap();
    for (out, why) in [
        (
            "nearmiss-labs/reported",
            "a lab is there already; `nearmiss lab resume nearmiss-labs/reported` goes on with it",
        ),
        ("file", "is there already, and is no lab"),
        ("empty", "is there already, and is no lab"),
        ("file/below", "file/below: not a directory"),
        ("/proc/lab", "/proc/lab: no such file or directory"),
        ("new/..", "is no name for a directory"),
    ] {
        let run = lab(directory.path(), &["run", "spec.toml", "--out", out]);
        let stderr = errors(&run);
        assert_eq!(run.status.code(), Some(2), "{out}: {stderr}");
        assert!(stderr.contains(why) && stderr.lines().count() == 1, "{out}: {stderr}");
    }
    let mut names: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    // No cell ran, and nothing was made.
    assert_eq!(names, ["empty", "file", "nearmiss-labs", "spec.toml"]);
    assert_eq!(fs::read_to_string(directory.path().join("spec.toml")).unwrap(), SPEC);
}

#[test]
fn combinations_without_number_are_refused() {
    let levels: String = (0..10).map(|n| format!("{{ name = 'l{n}', env = {{ V = '{n}' }} }}, ")).collect();
    let axes: String = (0..30).map(|n| format!("[[axis]]\nname = 'a{n}'\nlevel = [{levels}]\n")).collect();
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("spec.toml"), format!("{SPEC}{axes}")).unwrap();
    let stderr = errors(&lab(directory.path(), &["run", "spec.toml"]));
    assert!(stderr.contains("cases, which is every combination of levels: at most 100000"), "{stderr}");
}

#[test]
fn a_damaged_line_of_the_journal_is_named_and_nothing_is_lost() {
    let directory = ended();
    let whole = record(&lab(directory.path(), &["show", "--json"]));
    let journal = directory.path().join("nearmiss-labs/reported/journal.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines[2].truncate(30);
    // Blank lines count as the editor counts them.
    lines.insert(1, String::new());
    let damaged = lines.join("\n") + "\n";
    fs::write(&journal, &damaged).unwrap();
    let out = "sed -i 4d nearmiss-labs/reported/journal.jsonl";
    for arguments in [&["show"][..], &["resume"], &["resume", "--retry"], &["show", "--json"]] {
        let refused = lab(directory.path(), arguments);
        let stderr = errors(&refused);
        assert_eq!((refused.status.code(), stderr.lines().count()), (Some(2), 1), "{stderr}");
        assert!(
            stderr.starts_with("nearmiss: nearmiss-labs/reported/journal.jsonl:4: ") && stderr.contains(out),
            "{stderr}"
        );
        assert_eq!(fs::read_to_string(&journal).unwrap(), damaged);
    }
    assert!(Command::new("sh").args(["-c", out]).current_dir(directory.path()).status().unwrap().success());
    assert_eq!(lab(directory.path(), &["resume"]).status.code(), Some(1));
    assert_eq!(record(&lab(directory.path(), &["show", "--json"])), whole);
    assert_eq!(fs::read_to_string(directory.path().join("count")).unwrap().lines().count(), 3, "no cell ran again");
}
