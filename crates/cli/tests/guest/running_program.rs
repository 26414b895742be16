//! `diagnose -p` and `trace -p`: a program that runs, found mid-run.

#![allow(clippy::unwrap_used)]

use crate::guest_slots::for_a_guest;
use crate::running::{Running, with_criu};
use crate::subjects::subject;
use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};
use std::time::Duration;

fn nearmiss(place: &tempfile::TempDir, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nearmiss")).current_dir(place.path()).args(words).output().unwrap()
}

/// Runs it as a container's `exec` does: the leader of its session is in another PID namespace.
fn with_leader_outside(place: &tempfile::TempDir, words: &[&str]) -> Output {
    let mut command = Command::new("unshare");
    // A container opens its standard input in its own mounts. Its numbers are small, as those of the guest's programs.
    let script = "\"$0\" \"$@\" < /dev/null; exit $?";
    let shell = ["sh", "-c", script, env!("CARGO_BIN_EXE_nearmiss")];
    command.args(["--pid", "--fork", "--mount-proc", "--kill-child"]).args(shell);
    // A file of the mounts outside is none that a snapshot can have.
    // SAFETY: one call, which passes no memory.
    unsafe {
        command.pre_exec(|| {
            libc::close_range(3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC as i32);
            Ok(())
        });
    }
    command.current_dir(place.path()).args(words).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn crowded_sets_are_found_mid_run_and_the_program_runs_on() {
    let Some(_guest) = for_a_guest().filter(|_| with_criu()) else { return };
    let place = tempfile::tempdir().unwrap();
    let program = Running::start(&[&subject("aligned-tasks"), "--objects", "64", "--visits", "100000000000"]);
    std::thread::sleep(Duration::from_secs(1));
    let pid = program.pid();
    let output = nearmiss(
        &place,
        &["diagnose", "-p", &pid, "--within", "30s", "--json", "-m", "zen3-milan", "--memory", "1GiB", "--cpus", "1"],
    );
    assert!(output.status.success(), "{}", stderr(&output));
    let findings: Value = serde_json::from_slice(&output.stdout).unwrap();
    let finding = &findings["findings"][0];
    assert_eq!(finding["remedy"], "color", "{findings:#}");
    let symptom = finding["symptom"].as_str().unwrap();
    assert!(symptom.contains("`walk`") && symptom.contains("on 1 of 64 sets at a time"), "{symptom}");
    // A comparison of two runs of the command is not about this process.
    assert!(finding["verify"].is_null() && finding["apply"][2] == "color", "{finding:#}");
    let notes = findings["notes"].to_string();
    assert!(notes.contains("color acts from the next start on"), "{notes}");
    let (paused, errors) = (format!("process {pid} (aligned-tasks) paused "), stderr(&output));
    assert!(errors.contains(&paused) && errors.contains(" s (measured) for its snapshot of "), "{errors}");
    assert_eq!(program.harmed(), Vec::<String>::new());
}

#[test]
fn a_program_writes_on_where_it_was() {
    let Some(_guest) = for_a_guest().filter(|_| with_criu()) else { return };
    let place = tempfile::tempdir().unwrap();
    // The file grows here after the snapshot; the guest's own goes on from the snapshot's last line.
    let script =
        "n=0; while :; do n=$((n+1)); i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done; echo $n >> numbers; done";
    let file = place.path().join("numbers");
    let script = script.replace("numbers", file.to_str().unwrap());
    let program = Running::start(&["/bin/dash", "-c", &script]);
    std::thread::sleep(Duration::from_millis(500));
    let words = ["trace", "-p", &program.pid(), "--within", "6s", "--keep", "kept", "--no-trace", "--quiet"];
    let output = nearmiss(&place, &words);
    assert!(output.status.success(), "{}", stderr(&output));
    let kept = std::fs::read_to_string(place.path().join("kept").join(file.strip_prefix("/").unwrap())).unwrap();
    let numbers: Vec<u64> = kept.lines().map(|line| line.parse().unwrap()).collect();
    assert!(numbers.len() > 100 && numbers.last() > Some(&100), "{} lines", numbers.len());
    assert_eq!(program.harmed(), Vec::<String>::new());
}

#[test]
fn a_long_command_is_diagnosed_from_moments_of_its_run() {
    let Some(_guest) = for_a_guest().filter(|_| with_criu()) else { return };
    let place = tempfile::tempdir().unwrap();
    let words = ["diagnose", "--live", "--within", "24s", "--json", "-m", "zen3-milan", "--cpus", "1", "--"];
    // Some six seconds: a snapshot is taken after one at the earliest.
    let command = [&subject("aligned-tasks"), "--objects", "64", "--visits", "1000000000"];
    let output = with_leader_outside(&place, &[&words[..], &command].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.contains("nearmiss: the command ran for "), "{errors}");
    let findings: Value = serde_json::from_slice(&output.stdout).unwrap();
    let finding = &findings["findings"][0];
    let moments = &finding["prediction"]["moments"];
    let (found, of) = (moments["at_ns"].as_array().unwrap().len(), moments["of"].as_u64().unwrap());
    assert_eq!((finding["remedy"].as_str(), found as u64), (Some("color"), of), "{findings:#}");
    // It can be applied to the command, which is not one that runs.
    assert_eq!(finding["apply"][1], "apply", "{finding:#}");
    // The run of the observation has the findings, each moment has a run of its own, and the output is kept.
    let runs: Vec<_> = std::fs::read_dir(place.path().join("nearmiss-runs")).unwrap().flatten().collect();
    assert_eq!(runs.len() as u64, 1 + of, "{runs:?}");
    let observed = runs.iter().find(|run| run.file_name().to_string_lossy().contains("observe-")).unwrap().path();
    assert!(observed.join("findings.json").is_file());
    assert!(std::fs::read_to_string(observed.join("command.out")).unwrap().starts_with("objects 64 "));
}
