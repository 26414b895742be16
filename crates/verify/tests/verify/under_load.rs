//! Servers under loads. The loads' output is fixed, so that nothing here depends on timing.
#![allow(clippy::unwrap_used)]

use nearmiss_verify::{
    Better, CPU_PER_WORK, Commands, Error, Metric, Offered, Outcome, Plan, Printed, Probe, Reading, Sample,
    SideCommand, Stopped, UnderLoad, Verdict,
};
use nearmiss_workload::{Load, Ready, Workload};
use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

/// A server that writes down its load's output, and then listens and is a little busy.
fn server(name: &str, directory: &Path, output: &str) -> SideCommand {
    let script = format!(
        "import os, socket, time\n\
         open({:?}, 'w').write({output:?})\n\
         path = {:?}\n\
         if os.path.exists(path): os.unlink(path)\n\
         s = socket.socket(socket.AF_UNIX); s.bind(path); s.listen()\n\
         while True: sum(range(1000)); time.sleep(0.0005)",
        directory.join("printed"),
        directory.join("socket"),
    );
    SideCommand { name: name.to_owned(), workload: Workload::new(["python3", "-c", &script]), engagement: None }
}

fn shell(script: &str) -> Workload {
    Workload::new(["sh", "-c", script])
}

fn load(directory: &Path, reading: Reading) -> UnderLoad {
    let load = Load {
        // Long enough for the server to be busy meanwhile on a machine that has other things to do.
        workload: shell(&format!("sleep 0.05; cat {}", directory.join("printed").display())),
        ready: Ready::Listens,
        ready_within: Duration::from_secs(20),
        limit: None,
    };
    UnderLoad { load, reading }
}

/// Compares eight pairs of servers under loads that print this.
fn verdict(printed: [&str; 2], reading: Reading, plan: Plan) -> Result<Verdict, Error> {
    let here = tempfile::tempdir().unwrap();
    let output = here.path().join("output");
    std::fs::create_dir(&output).unwrap();
    let [without, with] = printed.map(|output| server(output, here.path(), output));
    Commands::new(without, with, output).under_load(load(here.path(), reading)).compare(&plan)
}

fn eight() -> Plan {
    Plan { least_pairs: 8, most_pairs: 8, time_limit: Duration::from_secs(100), ..Plan::default() }
}

fn webload(achieved: f64, p99: f64, errors: u64) -> String {
    format!(
        "offered 5000.0 requests/s\nachieved {achieved:.1} requests/s\nrequests 100\nmean 1.000 ms\np99 {p99:.3} ms\nerrors {errors}\n"
    )
}

#[test]
fn a_loads_figures_have_verdicts_of_their_own() {
    let printed = [webload(5000.0, 2.0, 0), webload(4990.0, 1.0, 0)];
    let verdict = verdict([&printed[0], &printed[1]], Reading::default(), eight()).unwrap();
    assert_ne!(verdict.outcome, Outcome::Void);
    assert_eq!((verdict.pairs, verdict.comparison.metric.as_str()), (8, CPU_PER_WORK));
    assert_eq!(verdict.judged, ["mean_ms", "p99_ms"]);
    let p99 = &verdict.others[1];
    assert_eq!((p99.metric.as_str(), p99.ratio, p99.outcome(0.03)), ("p99_ms", 0.5, Outcome::Gain));
    let rates = verdict.rates.unwrap();
    assert_eq!((rates.without.offered, rates.without.achieved, rates.with.achieved), (Some(5000.0), 5000.0, 4990.0));
    assert_eq!((rates.with.missed, rates.with.failed), (0, 0));
    // The work of the two sides is no metric, and kept all the same.
    assert!(!verdict.others.iter().any(|other| other.metric.ends_with("_per_s")));
    let run = &verdict.with[7];
    assert_eq!((run["requests"], run["achieved_per_s"]), (100.0, 4990.0));
    assert!((run[CPU_PER_WORK] - run["cpu_s"] * 1e4).abs() < 1e-9, "{run:?}");
    assert!(verdict.notes.is_empty(), "{:?}", verdict.notes);
}

#[test]
fn a_rate_that_one_side_misses_makes_the_verdict_void_at_once() {
    let good = webload(5000.0, 2.0, 0);
    for (bad, missed, failed) in [(webload(4900.0, 1.0, 0), 3, 0), (webload(5000.0, 1.0, 2), 0, 3)] {
        let verdict = verdict([&good, &bad], Reading::default(), eight()).unwrap();
        assert_eq!((verdict.outcome, verdict.pairs, verdict.stopped), (Outcome::Void, 3, Stopped::Decided));
        let rates = verdict.rates.unwrap();
        assert_eq!((rates.with.missed, rates.with.failed, rates.without.missed), (missed, failed, 0));
    }
    // Ten percent are tolerated if requested.
    let plan = Plan { rate_tolerance: 0.1, ..eight() };
    assert_ne!(verdict([&good, &webload(4900.0, 1.0, 2)], Reading::default(), plan).unwrap().outcome, Outcome::Void);
}

#[test]
fn any_load_is_read_by_expressions() {
    let printed = |option, expression: &str| Some(Printed::new(option, expression, Better::Higher).unwrap());
    let reading = Reading {
        work: printed("--work", "did ([0-9]+)"),
        offered: Some(Offered::Given(10.0)),
        achieved: printed("--achieved", "at ([0-9]+)"),
        figures: printed("--higher", "score ([0-9]+)").into_iter().collect(),
        ..Reading::default()
    };
    let verdict = verdict(["did 5 at 10 score 4", "did 5 at 10 score 5"], reading, eight()).unwrap();
    assert_eq!(verdict.judged, ["score ([0-9]+)"]);
    assert_eq!((verdict.others[0].ratio, verdict.others[0].outcome(0.03)), (1.25, Outcome::Gain));
    assert_eq!(verdict.rates.unwrap().with.offered, Some(10.0));
}

#[test]
fn a_load_that_prints_nothing_gets_no_verdict_on_the_cpu_time() {
    let plan = || Plan { required_gain: Some(0.01), ..eight() };
    let silent = verdict(["hello", "hello"], Reading::default(), plan()).unwrap();
    assert_eq!((silent.outcome, silent.pairs, silent.required_gain_met), (Outcome::Undecided, 1, Some(false)));
    assert_eq!((silent.comparison.metric.as_str(), silent.rates, silent.notes.len()), ("cpu_s", None, 0));
    // A figure that the user names has its own verdict.
    let score = Printed::new("--higher", "score ([0-9]+)", Better::Higher).unwrap();
    let reading = Reading { figures: vec![score], ..Reading::default() };
    let scored = verdict(["score 4", "score 5"], reading, plan()).unwrap();
    assert_eq!((scored.outcome, scored.pairs, scored.required_gain_met), (Outcome::Undecided, 8, Some(false)));
    assert_eq!(scored.others[0].outcome(0.03), Outcome::Gain);
}

#[test]
fn a_load_that_prints_its_rate_alone_leaves_the_cpu_time_of_the_whole_load() {
    let quiet = "SET: 1000.00 requests per second, p50=0.215 msec";
    let verdict = verdict([quiet, quiet], Reading::default(), eight()).unwrap();
    assert_eq!(verdict.comparison.metric, "cpu_s");
    assert_ne!(verdict.outcome, Outcome::Undecided);
    assert_eq!(verdict.notes.len(), 2, "{:?}", verdict.notes);
    assert!(verdict.notes[0].starts_with("The load prints no offered rate."));
    assert!(verdict.notes[1].starts_with("The load prints no number of requests"));
}

#[test]
fn no_gain_stands_where_a_closed_loop_got_less_done() {
    let wrk =
        |requests: u32, rate: f64| format!("  {requests} requests in 1.00s, 1.00MB read\nRequests/sec:  {rate:.2}\n");
    // Ten times the requests by far outweigh the noise of the CPU time.
    let of = |rate| verdict([&wrk(10, 900.0), &wrk(100, rate)], Reading::default(), eight()).unwrap();
    let slowed = of(600.0);
    assert_eq!((slowed.comparison.outcome(0.03), slowed.outcome), (Outcome::Gain, Outcome::Void));
    assert_eq!(of(900.0).outcome, Outcome::Gain);
}

#[test]
fn a_server_or_a_load_that_fails_is_reported_with_its_last_words() {
    let here = tempfile::tempdir().unwrap();
    let fails = |with: SideCommand, workload: Workload| {
        let mut under = load(here.path(), Reading::default());
        under.load.workload = workload;
        let commands = Commands::new(server("good", here.path(), ""), with, here.path()).under_load(under);
        commands.compare(&eight()).unwrap_err().to_string()
    };
    let dies = SideCommand { name: "bad".to_owned(), workload: shell("echo a; echo b >&2; exit 5"), engagement: None };
    let at = here.path().display();
    assert_eq!(
        fails(dies, shell("sleep 0.05")),
        format!(
            "run 2 (bad): the server exited with status 5 before it answered; its last words: \"b\"; the output is in \
             {at}/002-with.err"
        )
    );
    assert_eq!(
        fails(server("bad", here.path(), ""), shell("echo no route >&2; exit 6")),
        format!(
            "run 1 (good): the load exited with status 6; its last words: \"no route\"; the output is in \
             {at}/001-without-load.err"
        )
    );
}

/// Records the order of its calls.
struct Steps(Rc<Cell<u32>>);

impl Probe for Steps {
    fn attach(&mut self, _: i32) -> Result<(), Error> {
        self.0.set(1);
        Ok(())
    }

    fn begin(&mut self) -> Result<(), Error> {
        self.0.set(self.0.get() * 10 + 2);
        Ok(())
    }

    fn read(&mut self) -> Result<Sample, Error> {
        Ok(Sample::from([("steps".to_owned(), f64::from(self.0.get() * 10 + 3))]))
    }
}

#[test]
fn a_probe_counts_while_the_load_runs() {
    let here = tempfile::tempdir().unwrap();
    let sides = [server("a", here.path(), ""), server("b", here.path(), "")];
    let [without, with] = sides;
    let commands = Commands::new(without, with, here.path()).probe(Box::new(Steps(Rc::default())));
    let verdict = commands.under_load(load(here.path(), Reading::default())).compare(&eight()).unwrap();
    assert!(verdict.with.iter().all(|run| run["steps"] == 123.0));
}

#[test]
fn several_printed_figures_have_verdicts_without_a_load_too() {
    let here = tempfile::tempdir().unwrap();
    let side = |script: &str| SideCommand { name: script.to_owned(), workload: shell(script), engagement: None };
    let metric = Metric::printed("time ([0-9]+)").unwrap();
    let also = Printed::new("--higher", "rate ([0-9]+)", Better::Higher).unwrap();
    let plan = Plan {
        metric: metric.name().to_owned(),
        second: None,
        beside: vec![(also.name.clone(), also.better)],
        ..eight()
    };
    let commands = Commands::new(side("echo time 4 rate 4"), side("echo time 2 rate 5"), here.path()).metric(metric);
    let verdict = commands.also_printed(vec![also]).compare(&plan).unwrap();
    assert_eq!((verdict.comparison.ratio, verdict.others[0].ratio), (0.5, 1.25));
    assert_eq!(verdict.others[0].outcome(0.03), Outcome::Gain);
    assert_eq!(verdict.judged, ["rate ([0-9]+)"]);
}

#[test]
fn a_load_that_fell_behind_has_no_times_and_the_cpu_time_counts() {
    let printed = [webload(5000.0, 2.0, 0), webload(5000.0, 1.0, 0) + "generator FELL BEHIND\n"];
    let verdict = verdict([&printed[0], &printed[1]], Reading::default(), eight()).unwrap();
    assert_ne!(verdict.outcome, Outcome::Void);
    assert_eq!((verdict.pairs, verdict.comparison.metric.as_str()), (8, CPU_PER_WORK));
    assert!(verdict.judged.is_empty() && verdict.others.iter().all(|other| !other.metric.ends_with("_ms")));
    let note = "In 8 of 8 pairs the load sent late by its own fault (no idle CPU was left for it): what it printed there of \
                the server's times is left out.";
    assert_eq!(verdict.notes, [note]);
}
