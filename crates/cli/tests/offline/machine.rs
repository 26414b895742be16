//! `nearmiss machine` and `nearmiss doctor` as a shell sees them: stdout, stderr, exit codes.

use std::path::Path;
use std::process::{Command, Output};

fn nearmiss(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nearmiss")).args(args).output().expect("nearmiss runs")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

#[test]
fn a_machine_that_was_shown_can_be_changed_and_named() {
    let shown = nearmiss(&["machine", "show", "zen4-genoa"]);
    assert!(shown.status.success() && shown.stderr.is_empty());
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mine.toml");
    let text = stdout(&shown).replace("name = \"zen4-genoa\"", "name = \"mine\"").replace("ways = 16", "ways = 32");
    std::fs::write(&path, text).expect("written");
    let again = nearmiss(&["machine", "show", path.to_str().expect("text"), "--json"]);
    let value: serde_json::Value = serde_json::from_slice(&again.stdout).expect("JSON and nothing else");
    assert_eq!((&value["machine"]["name"], &value["machine"]["cache"][3]["ways"]), (&"mine".into(), &32.into()));
}

#[test]
fn a_mistake_is_one_line_with_its_place_and_exit_code_2() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bad.toml");
    let text = stdout(&nearmiss(&["machine", "show", "zen4-genoa"])).replace("size = \"1 MiB\"", "size = \"3 MiB\"");
    let line = 1 + text.lines().position(|l| l.contains("3 MiB")).expect("the line that was changed");
    std::fs::write(&path, text).expect("written");
    let output = nearmiss(&["machine", "show", path.to_str().expect("text"), "--json"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), output.stdout.len(), error.lines().count()), (Some(2), 0, 1), "{error}");
    assert!(error.contains(&format!("bad.toml:{line}: ")) && error.contains("6144 sets"), "{error}");

    let output = nearmiss(&["machine", "show", "./nowhere.toml"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(error.matches("No such file").count(), 1, "{error}");
    assert_eq!(nearmiss(&["machine", "show"]).status.code(), Some(2));
}

#[test]
fn this_host_is_shown_or_declined_with_exit_code_3() {
    let output = nearmiss(&["machine", "host", "--uncalibrated", "--json"]);
    if output.status.code() == Some(3) {
        println!("skipped: {}", String::from_utf8_lossy(&output.stderr).trim());
        return;
    }
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    assert_eq!((&value["schema"], &value["machine"]["name"]), (&"nearmiss/machine/1".into(), &"host".into()));
    let source = value["machine"]["sources"]["latency.memory_local"].as_str().expect("a source");
    assert!(source.starts_with("assumed"), "{source}");
}

#[test]
fn doctor_prints_its_record_and_nothing_else() {
    let output = nearmiss(&["doctor", "--json"]);
    assert!(output.status.success() && output.stderr.is_empty());
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    assert_eq!(value["schema"], "nearmiss/doctor/1");
    let text = stdout(&nearmiss(&["doctor"]));
    assert!(text.contains("trace: ") && text.lines().all(|l| l.chars().count() <= 100), "{text}");
}
