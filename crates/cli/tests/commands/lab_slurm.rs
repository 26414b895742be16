//! A lab on a one-node Slurm gives the cells that it gives here, and takes its job back when it was killed.

#![allow(clippy::unwrap_used)]

use crate::slurm::{Cluster, can_have_cluster};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const SPEC: &str = r#"
name = "cluster"
repetitions = 2
measure.value = { regex = "value ([0-9]+)" }
measure.job = { words = "job (.+)", optional = true }
[[workload]]
name = "print"
command = "echo value $V; echo job $SLURM_ARRAY_TASK_ID; echo $V > {out}/stored; cat {dir1}/none 2>&1; [ $V != 3 ]"
[[axis]]
name = "v"
level = [{ name = "a", env = { V = "1" } }, { name = "b", env = { V = "2" } }, { name = "c", env = { V = "3" } }]
"#;

fn lab(directory: &Path, cluster: &Cluster, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nearmiss"));
    command.arg("lab").args(arguments).current_dir(directory).env("SLURM_CONF", cluster.conf());
    command
}

/// Cells with their figures; times and tasks left out.
fn cells(lab: &Path) -> BTreeMap<String, Value> {
    let journal = fs::read_to_string(lab.join("journal.jsonl")).unwrap();
    let cells = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let summary = |cell: &Value| {
        let stored = fs::read_to_string(lab.join("cells").join(cell["cell"].as_str().unwrap()).join("stored")).unwrap();
        serde_json::json!([cell["how"], cell["exit"], cell["why"], cell["figures"]["value"], cell["levels"], stored])
    };
    let mut found = BTreeMap::new();
    for cell in cells {
        let again = found.insert(cell["cell"].as_str().unwrap().to_owned(), summary(&cell));
        assert_eq!(again, None, "{} counts twice", cell["cell"]);
    }
    found
}

#[test]
fn a_cluster_gives_the_same_cells_several_a_task() {
    if !can_have_cluster() {
        return;
    }
    let cluster = Cluster::start();
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("spec.toml"), SPEC).unwrap();
    let here = lab(directory.path(), &cluster, &["run", "spec.toml", "--out", "here"]).output().unwrap();
    assert_eq!(here.status.code(), Some(1), "{}", String::from_utf8_lossy(&here.stderr));
    let arguments = ["run", "spec.toml", "--out", "there", "--on", "slurm", "--cells-a-task", "2", "--json"];
    let there = lab(directory.path(), &cluster, &arguments).output().unwrap();
    assert_eq!(there.status.code(), Some(1), "{}", String::from_utf8_lossy(&there.stderr));
    let found = cells(&directory.path().join("there"));
    assert_eq!((found.len(), &found), (6, &cells(&directory.path().join("here"))));
    // Two tasks a round, the first one with two of the three cells.
    let record: Value = serde_json::from_slice(&there.stdout).unwrap();
    let mut tasks: Vec<&str> =
        record["ended"].as_array().unwrap().iter().map(|cell| cell["words"]["job"].as_str().unwrap()).collect();
    tasks.sort_unstable();
    assert_eq!(tasks, ["0", "0", "0", "0", "1", "1"]);
    assert!(!directory.path().join("there/tmp").exists() && !directory.path().join("there/changed.json").exists());

    a_killed_lab_takes_its_job_back(&cluster, directory.path());
}

/// Both tests use one cluster: it takes seconds to start.
fn a_killed_lab_takes_its_job_back(cluster: &Cluster, directory: &Path) {
    let spec = "name = 'long'\nrepetitions = 1\n\
                [[workload]]\nname = 'first'\ncommand = 'touch begun; [ -e ready ] || sleep 1000'\n\
                [[workload]]\nname = 'second'\ncommand = 'touch begun; [ -e ready ] || sleep 1000'\n";
    fs::write(directory.join("long.toml"), spec).unwrap();
    let mut running = lab(directory, cluster, &["run", "long.toml", "--out", "long", "--on", "slurm"]);
    let mut running = running.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    cluster.until("a cell runs", |_| directory.join("begun").exists());
    running.kill().unwrap();
    running.wait().unwrap();
    assert!(directory.join("long/changed.json").exists());
    fs::write(directory.join("ready"), "").unwrap();
    let resumed = lab(directory, cluster, &["resume", "long", "--json"]).output().unwrap();
    assert_eq!(resumed.status.code(), Some(0), "{}", String::from_utf8_lossy(&resumed.stderr));
    assert_eq!(serde_json::from_slice::<Value>(&resumed.stdout).unwrap()["cells"], 2);
    assert_eq!(cluster.query("squeue", &["--noheader"]), "");
}

#[test]
fn without_a_cluster_nothing_begins() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("spec.toml"), SPEC).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_nearmiss"));
    let command = command.args(["lab", "run", "spec.toml", "--on", "slurm"]).current_dir(directory.path());
    let run = command.env("PATH", directory.path()).output().unwrap();
    let stderr = String::from_utf8(run.stderr).unwrap();
    assert_eq!((run.status.code(), stderr.lines().count()), (Some(3), 1), "{stderr}");
    assert!(stderr.contains("--on slurm: sinfo: command not found"), "{stderr}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}
