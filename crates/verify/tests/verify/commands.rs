//! Real commands, compared by what they print, so that nothing here depends on timing.
#![allow(clippy::unwrap_used)]

use nearmiss_analysis::{Acts, Engaged, Engagement, NotEngaged};
use nearmiss_remedies::color::apply::{Options, apply};
use nearmiss_verify::{Better, Commands, Error, Metric, Outcome, Plan, SideCommand, Verdict};
use nearmiss_workload::Workload;
use std::time::Duration;

fn shell(script: &str) -> Workload {
    Workload::new(["sh", "-c", script])
}

fn plain(script: &str) -> SideCommand {
    side(script, shell(script))
}

fn side(name: &str, workload: Workload) -> SideCommand {
    SideCommand { name: name.to_owned(), workload, engagement: None }
}

fn run(commands: Commands, metric: Metric, better: Better) -> Result<Verdict, Error> {
    let plan = Plan {
        metric: metric.name().to_owned(),
        better,
        most_pairs: 10,
        time_limit: Duration::from_secs(60),
        ..Plan::default()
    };
    commands.metric(metric).compare(&plan)
}

#[test]
fn a_number_that_the_program_prints_is_compared() {
    let directory = tempfile::tempdir().unwrap();
    let commands = Commands::new(plain("echo rate 100"), plain("echo rate 150"), directory.path());
    let metric = Metric::printed(r"rate (\d+)").unwrap();
    let verdict = run(commands, metric, Better::Higher).unwrap();
    assert_eq!((verdict.outcome, verdict.pairs), (Outcome::Gain, 10));
    assert_eq!(verdict.comparison.interval, Some((1.5, 1.5)));
    assert_eq!((verdict.sides.without.as_str(), verdict.sides.with.as_str()), ("echo rate 100", "echo rate 150"));
    // Two warm-up runs and twenty that count, each with its output and errors.
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2 * 22);
    assert_eq!(std::fs::read_to_string(directory.path().join("001-without.out")).unwrap(), "rate 100\n");
    assert!(verdict.others.iter().any(|other| other.metric == "wall_s"));
}

#[test]
fn a_neighbour_is_measured_beside_both_sides() {
    let directory = tempfile::tempdir().unwrap();
    let commands = Commands::new(plain("echo 1"), plain("echo 1"), directory.path()).beside(shell("sleep 0.01"));
    let verdict = run(commands, Metric::printed("1").unwrap(), Better::Lower).unwrap();
    let (neighbour, _) = verdict.neighbour().next().unwrap();
    assert_eq!(neighbour.metric, "beside_wall_s");
    assert!(neighbour.without.least >= 0.01);
}

#[test]
fn each_run_is_prepared_and_a_preparation_that_fails_ends_it() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("made");
    // Each run takes away what its preparation made.
    let take = format!("rm {} && echo 1", file.display());
    let commands = Commands::new(plain(&take), plain(&take), directory.path())
        .prepare(shell(&format!("touch {}", file.display())));
    assert_eq!(run(commands, Metric::printed("1").unwrap(), Better::Lower).unwrap().comparison.ratio, 1.0);
    let commands = Commands::new(plain("true"), plain("true"), directory.path()).prepare(shell("exit 4"));
    let error = run(commands, Metric::default(), Better::Lower).unwrap_err().to_string();
    assert!(error.starts_with("run 1 (true) could not be prepared: its --prepare exited with status 4; "), "{error}");
    assert!(error.ends_with("001-without-prepare.out"), "{error}");
}

#[test]
fn a_run_that_fails_ends_the_comparison_and_names_where_to_look() {
    let directory = tempfile::tempdir().unwrap();
    let commands = Commands::new(plain("true"), plain("exit 3"), directory.path());
    let error = run(commands, Metric::default(), Better::Lower).unwrap_err().to_string();
    assert!(error.contains("run 2 (exit 3) exited with status 3") && error.contains("002-with.err"), "{error}");
    let commands =
        Commands::new(plain("sleep 10"), plain("true"), directory.path()).run_limit(Duration::from_millis(50));
    let error = run(commands, Metric::default(), Better::Lower).unwrap_err().to_string();
    assert!(error.contains("took more than 0 s and was stopped"), "{error}");
}

#[test]
fn the_remedy_is_confirmed_in_every_run_under_it() {
    let directory = tempfile::tempdir().unwrap();
    let show = "echo colors ${NEARMISS_COLOR:-1}";
    let (workload, coloring) = apply(shell(show), &Options::default()).unwrap();
    let with = SideCommand { engagement: Some(Box::new(coloring)), ..side("colored", workload) };
    let commands = Commands::new(plain(show), with, directory.path());
    let verdict = run(commands, Metric::printed(r"colors (\d+)").unwrap(), Better::Higher).unwrap();
    assert_eq!(verdict.comparison.ratio, 32.0);
    assert!(verdict.engaged.unwrap().contains("engaged, 32 colors"));

    struct Absent;
    impl Engagement for Absent {
        fn confirm(&mut self, pid: i32) -> Result<Engaged, NotEngaged> {
            Err(NotEngaged { pid, why: "absent".to_owned() })
        }
    }
    let with = SideCommand { engagement: Some(Box::new(Absent)), ..plain("true") };
    let commands = Commands::new(plain("true"), with, directory.path());
    let error = run(commands, Metric::default(), Better::Lower).unwrap_err();
    assert!(matches!(error, Error::NotEngaged { run: 2, .. }), "{error}");
}

/// Reports so many acts.
struct Acting(Acts);

impl Engagement for Acting {
    fn confirm(&mut self, _: i32) -> Result<Engaged, NotEngaged> {
        Ok(Engaged { text: "acting".to_owned(), acts: self.0, record: serde_json::Value::Null })
    }
}

#[test]
fn a_remedy_with_nothing_to_act_on_ends_after_the_first_pair() {
    let pairs = |acts| {
        let directory = tempfile::tempdir().unwrap();
        let with = SideCommand { engagement: Some(Box::new(Acting(acts))), ..plain("echo 1") };
        let commands = Commands::new(plain("echo 1"), with, directory.path());
        let verdict = run(commands, Metric::printed("1").unwrap(), Better::Lower).unwrap();
        assert_eq!(verdict.outcome == Outcome::NothingToActOn, verdict.pairs == 1);
        verdict.pairs
    };
    assert_eq!([Acts::Counted(0), Acts::Counted(1), Acts::Uncounted].map(pairs), [1, 10, 10]);
}

#[test]
fn the_start_of_a_remedy_is_measured_apart() {
    let directory = tempfile::tempdir().unwrap();
    // A start that is as plain as a start can be: the remedy makes a program of nothing count to a million.
    let counts = shell("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done");
    let with = SideCommand { engagement: Some(Box::new(Acting(Acts::Uncounted))), ..side("true", counts) };
    let mut commands = Commands::new(plain("echo 1"), plain("echo 1"), directory.path());
    commands.measure_start(plain("true"), with).unwrap();
    let start = run(commands, Metric::printed("1").unwrap(), Better::Lower).unwrap().start.unwrap();
    assert_eq!(start.program, "true");
    assert!(start.pairs >= 6 && start.low_seconds > 0.001 && start.low_seconds <= start.seconds, "{start:?}");
}

#[test]
fn the_output_of_many_runs_fills_no_disk() {
    let directory = tempfile::tempdir().unwrap();
    let plan = Plan { least_pairs: 110, time_limit: Duration::from_millis(1), ..Plan::default() };
    let verdict = Commands::new(plain("true"), plain("true"), directory.path()).compare(&plan).unwrap();
    assert_eq!(verdict.pairs, 110);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2 * 200);
}

#[test]
fn a_run_under_way_ends_at_a_request_to_stop() {
    let directory = tempfile::tempdir().unwrap();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let commands = Commands::new(plain("sleep 100"), plain("sleep 100"), directory.path()).stop(stop.clone());
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(300));
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let begun = std::time::Instant::now();
    let error = commands.compare(&Plan::default()).unwrap_err();
    stopper.join().unwrap();
    assert!(matches!(error, Error::Interrupted { runs: 0, .. }), "{error}");
    assert!(begun.elapsed() < std::time::Duration::from_secs(50), "the run was waited for");
}
