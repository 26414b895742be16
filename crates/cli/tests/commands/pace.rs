//! From a log of waits to a remedy: `diagnose`, `rehearse`, `apply` and `verify` of pace, without privilege.
#![allow(clippy::unwrap_used)]

use nearmiss_record::logs::{PollCall, write};
use nearmiss_record::observed::{self, Observed, Poll};
use nearmiss_record::run::{self, Manifest, RunDir};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Output};

const CALLS: u64 = 10_000;

fn nearmiss(directory: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nearmiss")).args(words).current_dir(directory).output().unwrap()
}

fn output_of(directory: &Path, words: &[&str]) -> String {
    let output = nearmiss(directory, words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A server that waits once an event, with so many nanoseconds from one to the next: 2 of each 10 µs of its CPU time.
fn observed_run(parent: &Path, apart_ns: u64) -> RunDir {
    let run = RunDir::create(parent, "observed").unwrap();
    let totals = Poll {
        call: "epoll_wait".into(),
        process: 7,
        thread: 7,
        name: "server".into(),
        calls: CALLS,
        events: CALLS,
        on_cpu_ns: 2_000 * CALLS,
        ..Poll::default()
    };
    let observed = Observed {
        schema: observed::SCHEMA.into(),
        duration_ns: apart_ns * CALLS,
        cpu_ns: 10_000 * CALLS,
        polls: vec![totals],
        ..Observed::default()
    };
    run.write_json(observed::FILE, &observed).unwrap();
    let manifest = Manifest { schema: run::SCHEMA.into(), command: vec!["./server".into()], ..Manifest::default() };
    run.write_json(run::MANIFEST, &manifest).unwrap();
    run
}

fn log(run: &RunDir, apart_ns: u64) {
    let call = |n: u64| PollCall {
        enter_ns: 1_000_000 + n * apart_ns,
        exit_ns: 990_000 + (n + 1) * apart_ns,
        blocked_ns: apart_ns - 12_000,
        on_cpu_ns: 2_000,
        call: "epoll_wait".into(),
        events: 1,
        process: 7,
        thread: 7,
        ..PollCall::default()
    };
    write(run.path(), (0..CALLS).map(call)).unwrap();
}

#[test]
fn a_log_of_waits_becomes_a_finding_and_a_table() {
    let place = tempfile::tempdir().unwrap();
    let run = observed_run(&place.path().join(run::DEFAULT_PARENT), 100_000);
    log(&run, 100_000);
    let findings: Value = serde_json::from_str(&output_of(place.path(), &["diagnose", "--json"])).unwrap();
    let finding = &findings["findings"][0];
    assert_eq!((&finding["remedy"], &finding["known"]), (&json!("pace"), &json!("measured")));
    let symptom = "`server` waits 10,000 times a second for 1.0 events each, and the waits take 20% of the CPU time";
    assert_eq!(finding["symptom"], symptom);
    // 10,000 waits of 2 µs become 1,001 calls of half of that and 999 sleeps, which were not measured here.
    let prediction = &finding["prediction"];
    let near = |name: &str, share: f64| (prediction[name].as_f64().unwrap() - share).abs() < 1e-9;
    assert!(near("gain", 0.16999) && near("low", 0.16) && near("high", 0.175984), "{prediction}");
    for verb in ["apply", "verify"] {
        assert_eq!(finding[verb], json!(["nearmiss", verb, "pace", "--interval", "1ms", "--", "./server"]));
    }
    let table = output_of(place.path(), &["rehearse", "pace", "--intervals", "1ms,50us"]);
    let expected = "pace: 10,000 waits of `server`, thread 7
predicted on this machine: from the log of every wait; 1 ms saves most of those that add 1 ms at most, at the 99th percentile

interval   calls  sleeps  CPU saved  pays  added, mean  added, p99
    0 µs  10,000       0       0.0%    no         0 µs        0 µs
   50 µs  10,000       0       0.0%    no         0 µs        0 µs
  1.0 ms   1,001     999      17.0%   yes       546 µs      991 µs
";
    assert_eq!(table, expected);
}

/// Remedies that look at an observation have no machine and no order of CPUs to choose.
#[test]
fn a_rehearsal_on_an_observation_has_no_options_of_the_model() {
    let place = tempfile::tempdir().unwrap();
    let help = |remedy: &str| output_of(place.path(), &["rehearse", remedy, "--help"]);
    let has_model = |help: &str| ["--machine", "--order"].map(|option| help.contains(option));
    assert_eq!(has_model(&help("pace")), [false, false]);
    assert_eq!(has_model(&help("color")), [true, true]);
    assert!(help("pace").contains("--budget"));
}

#[test]
fn a_run_without_a_gain_is_reported_and_a_missing_log_is_requested() {
    let place = tempfile::tempdir().unwrap();
    let sparse = observed_run(&place.path().join("sparse"), 1_000_000);
    let page = output_of(place.path(), &["diagnose", sparse.path().to_str().unwrap()]);
    assert!(page.contains("no thread waits often for few events."), "{page}");
    assert!(page.ends_with(&format!("\nrun        {}\n", sparse.path().display())), "{page}");
    let blind = RunDir::create(place.path(), "blind").unwrap();
    blind.write_json(observed::FILE, &Observed { schema: observed::SCHEMA.into(), ..Observed::default() }).unwrap();
    blind.write_json(run::MANIFEST, &Manifest { schema: run::SCHEMA.into(), ..Manifest::default() }).unwrap();
    let output = nearmiss(place.path(), &["diagnose", blind.path().to_str().unwrap()]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("blind: this observation saw no poll and no CPU time"), "{error}");
    let unlogged = observed_run(&place.path().join("unlogged"), 100_000);
    let output = nearmiss(place.path(), &["rehearse", "pace", unlogged.path().to_str().unwrap()]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.ends_with("observe again with --polls --log\n"), "{error}");
}

#[test]
fn a_longer_budget_is_proposed_where_the_usual_one_gains_nothing() {
    let place = tempfile::tempdir().unwrap();
    let run = observed_run(&place.path().join(run::DEFAULT_PARENT), 1_000_000);
    log(&run, 1_000_000);
    let page = output_of(place.path(), &["diagnose"]);
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains("would gain anything; within 5 ms pace would save "), "{page}");
    assert!(page.contains(": `nearmiss rehearse pace --budget 5ms`."), "{page}");
    let table = output_of(place.path(), &["rehearse", "pace", "--intervals", "200us"]);
    assert!(table.contains("no interval that adds 1 ms at most, at the 99th percentile, saves CPU time"), "{table}");
    let longer = output_of(place.path(), &["rehearse", "pace", "--budget", "5ms"]);
    assert!(longer.contains("5 ms saves most of those that add 5 ms at most"), "{longer}");
}

#[test]
fn a_command_runs_under_it_and_a_verdict_has_its_title() {
    let place = tempfile::tempdir().unwrap();
    let output = nearmiss(place.path(), &["apply", "pace", "--json", "done.json", "--", "sh", "-c", "exit 7"]);
    let error = String::from_utf8(output.stderr).unwrap();
    let expected = "nearmiss: pace (measured): engaged, within 1ms, but no thread that it reaches waited\n";
    assert_eq!((output.status.code(), error.as_str()), (Some(7), expected));
    let done: Value = serde_json::from_slice(&std::fs::read(place.path().join("done.json")).unwrap()).unwrap();
    assert_eq!((&done["schema"], &done["aim"]), (&json!("nearmiss/pace-applied/1"), &json!("within 1ms")));
    let words = ["verify", "pace", "--interval", "5ms", "--pairs", "8", "--time-limit", "1s", "--json", "--", "true"];
    let verdict: Value = serde_json::from_str(&output_of(place.path(), &words)).unwrap();
    assert_eq!(verdict["remedy"], "pace, every 5ms");
    // A process that was observed by its number has no command to compare.
    let run = observed_run(place.path(), 100_000);
    log(&run, 100_000);
    run.write_json(run::MANIFEST, &Manifest { schema: run::SCHEMA.into(), ..Manifest::default() }).unwrap();
    let run = run.path().to_str().unwrap();
    output_of(place.path(), &["diagnose", run]);
    let verdict: Value =
        serde_json::from_str(&output_of(place.path(), &[&words[..4], &["--against", run], &words[4..]].concat()))
            .unwrap();
    assert_eq!(verdict["predicted"]["run"], run);
    let output = nearmiss(place.path(), &["apply", "pace", "--interval", "2s", "--", "true"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(125), "{error}");
    assert_eq!(error, "nearmiss: an interval of 2s: must be within 10us and 1s\n");
}
