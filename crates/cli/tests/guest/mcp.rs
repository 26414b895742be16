//! `nearmiss mcp` with a client from another hand, from a program's symptom to a verdict on its remedy.

use crate::guest_slots::for_a_guest;
use crate::subjects::subject;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Interpreter with the package, where `scripts/setup-python.sh` puts it.
fn python() -> Option<PathBuf> {
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home)?;
    let python = cache.join("nearmiss/python/bin/python3");
    let has_package = Command::new(&python).args(["-c", "import mcp"]).output().is_ok_and(|it| it.status.success());
    if !has_package {
        println!("skipped: {}: no Python with the package mcp: run scripts/setup-python.sh", python.display());
    }
    has_package.then_some(python)
}

fn texts<'a>(value: &'a Value, field: &str) -> Vec<&'a str> {
    value.as_array().into_iter().flatten().filter_map(|entry| entry[field].as_str()).collect()
}

#[test]
fn a_client_lists_tools_diagnoses_rehearses_and_gets_a_verdict() {
    let Some(python) = python() else { return };
    let Some(_guest) = for_a_guest() else { return };
    let place = tempfile::tempdir().expect("a temporary directory");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guest/mcp_client.py");
    let mut client = Command::new(python);
    client.arg(script).args([env!("CARGO_BIN_EXE_nearmiss")]).arg(place.path()).arg("zen3-milan");
    client.args([&subject("aligned-tasks"), "--objects", "64", "--visits", "50000"]);
    let output = client.output().expect("the client runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).expect("one object");

    assert_eq!(texts(&found["tools"], "name"), ["diagnose", "report", "rehearse", "verify", "gate", "doctor"]);
    let finding = &found["finding"];
    assert_eq!(finding["remedy"], "color", "{finding:#}");
    assert!(finding["symptom"].as_str().is_some_and(|text| text.contains("pieces, 8 KiB apart")), "{finding:#}");
    let rehearsed = &found["rehearsed"];
    assert_eq!((&rehearsed["remedy"], &rehearsed["tables"][0]["columns"][0]), (&"color".into(), &"colors".into()));
    let verified = &found["verified"];
    assert!(verified["run"].as_str().is_some_and(|run| Path::new(run).is_dir()), "{verified:#}");
    assert!(verified["outcome"].is_string() && verified["decides"]["gain"].is_f64(), "{verified:#}");
    assert_eq!(verified["predicted"], finding["gain_range"], "the verdict stands beside the prediction");
    assert!(verified["engaged"].as_str().is_some_and(|text| text.contains("engaged")), "{verified:#}");
    assert_eq!(found["wrong"]["isError"], true);

    let sizes: Vec<u64> = found["sizes"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
    assert!(sizes.len() == 3 && sizes.iter().all(|size| *size < 4096), "{sizes:?}");
    let messages = found["messages"].to_string();
    assert!(messages.contains("nearmiss diagnose runs") && messages.contains("nearmiss verify runs"), "{messages}");
}
