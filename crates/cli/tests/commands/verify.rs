//! `nearmiss verify` of two commands, and its run as any other run. The commands print their figures, so that nothing
//! here depends on timing.

#![allow(clippy::unwrap_used)]

use nearmiss_record::run::{RunDir, RunKind, VERDICT};
use nearmiss_record::verdict::{Outcome, Verdict};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn nearmiss(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nearmiss")).current_dir(directory).args(arguments).output().unwrap()
}

fn verify(directory: &Path, arguments: &[&str]) -> Output {
    let always = ["verify", "commands", "--time-limit", "1ms"];
    nearmiss(directory, &[&always, arguments].concat())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn only_run(directory: &Path) -> RunDir {
    let mut runs = std::fs::read_dir(directory.join("nearmiss-runs")).unwrap();
    let run = RunDir::open(&runs.next().unwrap().unwrap().path()).unwrap();
    assert!(runs.next().is_none());
    run
}

/// The verdict that is kept, as it is printed: the checksum is of the file alone.
fn without_checksum(run: &RunDir) -> String {
    let kept = std::fs::read_to_string(run.file(VERDICT)).unwrap();
    format!("{}}}\n", kept.split_once(",\"checksum\":").unwrap().0)
}

const RATES: [&str; 5] = ["--metric", "rate ([0-9]+)", "--higher", "echo rate 100", "X=1 printf 'rate 150'"];

#[test]
fn two_commands_get_a_verdict_that_other_programs_can_read() {
    let place = tempfile::tempdir().unwrap();
    let output = verify(place.path(), &[&["--json"], &RATES[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let run = only_run(place.path());
    assert_eq!(run.kind(), RunKind::Verified);
    assert_eq!(text(&output.stdout), without_checksum(&run), "the record, nothing else");
    let verdict: Verdict = run.read_json(VERDICT).unwrap();
    assert_eq!((verdict.outcome, verdict.pairs, verdict.comparison.ratio), (Outcome::Gain, 10, 1.5));
    assert_eq!((verdict.sides.without.as_str(), verdict.sides.with.as_str()), (RATES[3], RATES[4]));
    assert!(verdict.remedy.is_none() && verdict.notes.is_empty(), "no shell was needed: {:?}", verdict.notes);
}

#[test]
fn report_prints_the_verdict_of_the_newest_run_again() {
    let place = tempfile::tempdir().unwrap();
    let first = verify(place.path(), &RATES);
    let stdout = text(&first.stdout);
    assert!(
        stdout.starts_with("gain: `X=1 printf 'rate 150'` against `echo rate 100`, measured in 10 pairs\n"),
        "{stdout}"
    );
    assert!(stdout.contains("\n  rate ([0-9]+): 100.0 A, 150.0 B; +50.0% [+50.0%, +50.0%]\n"), "{stdout}");
    let again = nearmiss(place.path(), &["report"]);
    assert_eq!((again.status.code(), again.stderr.len()), (Some(0), 0));
    let run = only_run(place.path());
    assert_eq!(stdout, format!("{}\noutput of the runs: nearmiss-runs/{}\n", text(&again.stdout), name(run.path())));
    let json = nearmiss(place.path(), &["report", "--json"]);
    assert_eq!(text(&json.stdout), without_checksum(&run));
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

#[test]
fn the_newest_traced_run_stays_the_one_that_is_diagnosed() {
    let place = tempfile::tempdir().unwrap();
    let traced = place.path().join("nearmiss-runs/traced");
    std::fs::create_dir_all(&traced).unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/fixtures/run-queue");
    for file in ["manifest.json", "model.json"] {
        std::fs::copy(fixture.join(file), traced.join(file)).unwrap();
    }
    assert!(verify(place.path(), &RATES).status.success());
    // The fixture kept no trace, as diagnose reports: of that run, not of the newer one.
    let diagnosed = text(&nearmiss(place.path(), &["diagnose"]).stderr);
    assert!(diagnosed.lines().last().unwrap().contains("nearmiss-runs/traced"), "{diagnosed}");
    assert!(text(&nearmiss(place.path(), &["report"]).stdout).starts_with("gain: "), "the newest run of any kind");
}

#[test]
fn the_gate_decides_the_status() {
    let place = tempfile::tempdir().unwrap();
    let gate = |share: &str| verify(place.path(), &[&["--require-gain", share], &RATES[..]].concat()).status.code();
    assert_eq!((gate("50%"), gate("51%")), (Some(0), Some(1)));
}

#[test]
fn a_shell_runs_both_sides_or_none_and_preparation_comes_first() {
    let place = tempfile::tempdir().unwrap();
    let arguments = ["--json", "--prepare", "echo 7 > made", "--metric", "([0-9]+)", "cat made", "cat made | cat"];
    let output = verify(place.path(), &arguments);
    let verdict: Verdict =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    assert_eq!(verdict.notes, ["Both commands ran through /bin/sh: its start is part of every time."]);
    assert_eq!(verdict.comparison.without.median, 7.0);
}

#[test]
fn a_remedy_with_nothing_to_act_on_is_reported_at_once() {
    let place = tempfile::tempdir().unwrap();
    let arguments = ["verify", "color", "--json", "--require-gain", "1%", "--", "true"];
    let output = nearmiss(place.path(), &arguments);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let verdict: Verdict = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((verdict.outcome, verdict.pairs), (Outcome::NothingToActOn, 1));
    assert!(verdict.start.is_some_and(|start| start.pairs >= 6), "the start is named");
    let stdout = text(&nearmiss(place.path(), &["verify", "color", "--", "true"]).stdout);
    assert!(stdout.starts_with("nothing to act on (color, 32 colors), measured in 1 pair\n"), "{stdout}");
}

#[test]
fn a_kill_at_any_instant_leaves_no_libraries() {
    let place = tempfile::tempdir().unwrap();
    let temporary = place.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let left = || std::fs::read_dir(&temporary).unwrap().count();
    for kill in 0..30u64 {
        let verb = if kill % 2 == 0 { "verify" } else { "apply" };
        let mut killed = Command::new(env!("CARGO_BIN_EXE_nearmiss"))
            .current_dir(place.path())
            .env("TMPDIR", &temporary)
            .args([verb, "color", "--", "sh", "-c", "sleep 0.02; true"])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(2 + kill * kill * 7 % 397));
        killed.kill().unwrap();
        killed.wait().unwrap();
        let begun = std::time::Instant::now();
        while left() > 0 && begun.elapsed() < std::time::Duration::from_secs(5) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert_eq!(left(), 0, "{verb}, kill {kill}");
    }
}

/// Checks exit code 2 and nothing on standard output; returns the text on standard error.
fn refusal(place: &Path, arguments: &[&str]) -> String {
    let output = nearmiss(place, arguments);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments:?}");
    format!("$ nearmiss {}\n{}", arguments.join(" "), text(&output.stderr))
}

#[test]
fn wrong_use_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let messages: Vec<String> = [
        &["verify", "commands", "true"][..],
        &["verify", "commands", "true", " "],
        &["verify", "commands", "true", "no-such-program --x"],
        &["verify", "commands", "--metric", "(", "true", "true"],
        &["verify", "commands", "--pairs", "5", "true", "true"],
        &["verify", "commands", "--higher", "true", "true"],
        &["verify", "commands", "--time-limit", "0s", "true", "true"],
        &["verify", "commands", "--against", "RUN", "true", "true"],
        &["verify", "commands", "--require-gain", "5 percent", "true", "true"],
    ]
    .iter()
    .map(|arguments| refusal(place.path(), arguments))
    .collect();
    assert!(!place.path().join("nearmiss-runs").exists(), "nothing is left of what was refused");
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn a_verify_run_has_no_other_forms() {
    let place = tempfile::tempdir().unwrap();
    assert!(verify(place.path(), &RATES).status.success());
    let run: PathBuf = only_run(place.path()).path().to_owned();
    let run = run.strip_prefix(place.path()).unwrap().to_str().unwrap().to_owned();
    let messages: Vec<String> = [
        &["report", "--html", &run][..],
        &["report", "--pprof", "file", &run],
        &["report", "--validate", &run],
        &["report", "-m", "host", &run],
        &["diagnose", &run],
        &["report", "--compare", &run, &run],
    ]
    .iter()
    .map(|arguments| refusal(place.path(), arguments).replace(&run, "RUN"))
    .collect();
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn help_has_examples() {
    let place = tempfile::tempdir().unwrap();
    let help = |arguments: &[&str]| text(&nearmiss(place.path(), arguments).stdout);
    let verb = help(&["verify", "--help"]);
    assert!(verb.contains("\n  nearmiss verify commands './old' './new'     is the second"), "{verb}");
    assert_eq!(verb.matches("nearmiss verify commands './old' './new'").count(), 1, "{verb}");
    // A remedy that is left to the program's author is no example of a verb.
    assert!(!help(&["apply", "--help"]).contains("nearmiss diagnose"));
    assert!(help(&["report", "--help"]).contains("\n  nearmiss report --compare RUN1 RUN2  two runs of trace"));
    insta::assert_snapshot!(help(&["verify", "commands", "--help"]));
}

#[test]
fn a_prediction_for_another_program_is_refused() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("manifest.json"), "{}").unwrap();
    let findings = r#"{"schema":"nearmiss/findings/2","machine":"m","command":["/bin/sort"],"healthy":null,"notes":[],
        "known":"modelled","findings":[]}"#;
    std::fs::write(place.path().join("findings.json"), findings).unwrap();
    let output = nearmiss(place.path(), &["verify", "color", "--against", ".", "--", "true"]);
    assert_eq!(output.status.code(), Some(2));
    let stderr = text(&output.stderr);
    assert!(stderr.ends_with("this run is of `/bin/sort`: name a run of the command that is verified\n"), "{stderr}");
}
