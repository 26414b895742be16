//! `nearmiss-papers`: what it prints, writes and refuses. The other tests pin the figures themselves.
#![allow(clippy::unwrap_used)]

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_nearmiss-papers");

fn paper(arguments: &[&str], directory: &Path) -> Output {
    Command::new(PROGRAM).args(arguments).current_dir(directory).output().unwrap()
}

/// Returns whether the programs that a paper runs lie beside this one, and prints a line where they do not.
fn are_beside(programs: &[&str]) -> bool {
    let missing: Vec<_> = programs.iter().filter(|name| !Path::new(PROGRAM).with_file_name(name).is_file()).collect();
    if !missing.is_empty() {
        println!("skipped: {missing:?} do not lie beside nearmiss-papers; make all");
    }
    missing.is_empty()
}

#[test]
fn the_list_names_what_can_be_run() {
    let here = tempfile::tempdir().unwrap();
    let output = paper(&["list"], here.path());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.lines().next().unwrap().starts_with("coloring "), "{text}");
}

#[test]
fn an_absent_name_is_one_line_and_exit_code_2() {
    let here = tempfile::tempdir().unwrap();
    for (arguments, line) in [
        (
            &["run", "none"][..],
            "nearmiss-papers: none: no such paper; there are: coloring, pacing, numa, pollution, pairing\n",
        ),
        (
            &["run", "coloring", "--table", "d"],
            "nearmiss-papers: table d: there is none of this name; there are: a, b, c\n",
        ),
        (
            &["run", "coloring", "--table", "a", "--here"],
            "nearmiss-papers: target/subjects/aligned-tasks: not there; build it in a clone of nearmiss: make subjects\n",
        ),
        (
            &["run", "pacing", "--here"],
            "nearmiss-papers: pacing: what it measures here needs no --here; leave it away\n",
        ),
    ] {
        let output = paper(arguments, here.path());
        assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(2), line));
    }
    assert_eq!(here.path().read_dir().unwrap().count(), 0, "nothing is written");
}

#[test]
fn a_table_is_a_record_and_its_pictures() {
    let here = tempfile::tempdir().unwrap();
    let output = paper(&["run", "coloring", "--table", "a", "--json", "--out", "pictures"], here.path());
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((record["schema"].as_str(), record["tables"].as_array().unwrap().len()), (Some("nearmiss/paper/1"), 1));
    let row = &record["tables"][0]["rows"][7];
    assert_eq!((row["of"].as_str(), row["paper"].as_f64()), (Some("512 KB"), Some(35.8)));
    let ours = row["ours"].as_f64().unwrap();
    assert!((ours - 35.8 - row["deviation_points"].as_f64().unwrap()).abs() < 1e-9 && (30.0..40.0).contains(&ours));
    let mut files: Vec<_> = here.path().join("pictures").read_dir().unwrap().map(|e| e.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["figure-6.svg", "figure-7.svg"]);
    // On a busy machine it also prints how far it is.
    let stderr = String::from_utf8_lossy(&output.stderr).replace("nearmiss-papers: simulating: ", "");
    assert!(!stderr.contains("nearmiss-papers: "), "{stderr}");
}

#[test]
fn a_measured_paper_runs_its_programs_and_leaves_nothing() {
    if !are_beside(&["nearmiss", "nearmiss-accelerator", "nearmiss-webload"]) {
        return;
    }
    let here = tempfile::tempdir().unwrap();
    let output = paper(&["run", "pacing", "--table", "c", "--scale", "trial", "--json"], here.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&record["known"], record["tables"].as_array().unwrap().len()), (&"measured".into(), 2));
    let times = &record["tables"][0]["grid"]["rows"];
    // Four rows each: all, hits, misses, the 99th percentile.
    assert_eq!(times.as_array().unwrap().len(), 3 * 4);
    let [hits, misses] = [1, 2].map(|row| times[row]["cells"][0].as_f64().unwrap());
    assert!(misses > 100.0 && hits < misses, "the origin thinks for 300 ms: {hits} and {misses}");
    let written: Vec<_> = here.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(written, ["nearmiss-papers"]);
}

#[test]
fn pattern_9_runs_here_and_leaves_nothing() {
    if !are_beside(&["nearmiss"]) {
        return;
    }
    let here = tempfile::tempdir().unwrap();
    let output = paper(&["run", "pollution", "--table", "a", "--scale", "trial", "--json"], here.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    let table = &record["tables"][0];
    assert_eq!((&record["known"], &table["known"]), (&"modelled".into(), &"measured".into()));
    let written: Vec<_> = here.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(written, ["nearmiss-papers"]);
    let rows = table["rows"].as_array().unwrap();
    if rows.is_empty() {
        println!("skipped: {}", table["notes"][0]);
        return;
    }
    let plain = |what: &str| rows.iter().find(|row| row["of"] == "plain" && row["what"] == what);
    assert!(plain("CPU time").is_some_and(|row| row["ours"].as_f64().unwrap() > 0.0), "{rows:?}");
    if let Some(cached) = plain("of the files, left in the page cache") {
        assert!((0.0..=100.0).contains(&cached["ours"].as_f64().unwrap()), "{cached}");
    }
}

#[test]
fn a_signal_ends_it_in_one_line_and_nothing_is_written() {
    let here = tempfile::tempdir().unwrap();
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut command = Command::new(PROGRAM);
        command.args(["run", "coloring"]).current_dir(here.path());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(700));
        kill_process(Pid::from_raw(child.id() as i32).unwrap(), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), stderr.as_ref()), (Some(code), "nearmiss-papers: interrupted\n"));
    }
    assert_eq!(here.path().read_dir().unwrap().count(), 0);
}
