//! `nearmiss apply` and `verify` as a user types them: what they report, what they leave behind.

#![allow(clippy::unwrap_used)]

use crate::subjects::subject;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn nearmiss(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nearmiss"));
    command.current_dir(directory).env("TMPDIR", directory.join("tmp")).env_remove("NEARMISS_COLOR").args(arguments);
    command.output().unwrap()
}

fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("tmp")).unwrap();
    place
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn apply_reports_its_acts_and_undo_leaves_nothing() {
    let place = place();
    let program = subject("aligned-tasks");
    let walk = [program.as_str(), "--objects", "16", "--visits", "1000"];
    let colored = nearmiss(
        place.path(),
        &[&["apply", "color", "--colors", "8", "--json", "done.json", "--"], &walk[..]].concat(),
    );
    assert!(colored.status.success());
    assert!(text(&colored.stdout).contains("colors 8 "), "the command's output is its own: {}", text(&colored.stdout));
    assert!(
        text(&colored.stderr).starts_with("nearmiss: color (measured): engaged, 8 colors"),
        "{}",
        text(&colored.stderr)
    );
    let done: Value = serde_json::from_slice(&std::fs::read(place.path().join("done.json")).unwrap()).unwrap();
    assert_eq!(done["schema"], "nearmiss/color-applied/1");
    assert_eq!((&done["colors"], &done["stacks"]["colored"]), (&8.into(), &1.into()));

    // The next run is as it always was, and nothing lies about.
    let plain = Command::new(&program).args(&walk[1..]).output().unwrap();
    assert!(text(&plain.stdout).contains("colors 1 "), "{}", text(&plain.stdout));
    let left: Vec<_> = std::fs::read_dir(place.path().join("tmp")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    let names: Vec<_> = std::fs::read_dir(place.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn verify_judges_a_neighbour_counts_events_and_stands_beside_the_prediction() {
    let place = place();
    let run = place.path().join("predicted");
    std::fs::create_dir(&run).unwrap();
    std::fs::write(run.join("manifest.json"), "{}").unwrap();
    let findings = r#"{"schema":"nearmiss/findings/2","machine":"m","command":["/elsewhere/aligned-tasks"],"healthy":null,"notes":[],"known":"modelled","findings":[
        {"remedy":"color","known":"modelled","symptom":"","cause":"","evidence":{"lines":[],"tables":[],"most_gain":0.5},
         "treatment":"","reach":"outside","unless":[],"apply":null,"verify":null,
         "prediction":{"gain":0.3,"of":"the cycles","low":0.25,"high":0.35,"placements":[1,2,3,4,5],"overlap":0.6,"approximate":[],
            "function":{"name":"walk","gain":0.99,"cycles_before":10,"cycles_after":5,"dependent_gain":0.995}}}]}"#;
    std::fs::write(run.join("findings.json"), findings).unwrap();
    let program = subject("aligned-tasks");
    let arguments =
        ["verify", "color", "--time-limit", "1s", "--metric", "ns_per_visit ([0-9.]+)", "--count", "page-faults"];
    let beside = ["--beside", "exit 0", "--against", run.to_str().unwrap(), "--"];
    let walk = [program.as_str(), "--objects", "64", "--visits", "100000"];
    let verdict = nearmiss(place.path(), &[&arguments[..], &beside[..], &walk[..]].concat());
    let printed = text(&verdict.stdout);
    assert!(verdict.status.success(), "{printed}{}", text(&verdict.stderr));
    for words in
        ["neighbour, beside_wall_s: ", "page-faults: ", "measured in ", "predicted for `walk`: 99% to 100% saved"]
    {
        assert!(printed.contains(words), "{words}: {printed}");
    }
    let measured = printed.lines().find(|line| line.starts_with("measured, ns_per_visit")).unwrap();
    assert!(measured.ends_with("points from what was predicted"), "{measured}");

    let events = ["verify", "color", "--count", "no-such-event", "--", "true"];
    let refused = nearmiss(place.path(), &events);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("no such event"), "{}", text(&refused.stderr));
}
