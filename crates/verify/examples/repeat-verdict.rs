//! Judges the same two commands many times and counts the verdicts:
//! `repeat-verdict RUNS SECONDS TOTAL 'COMMAND A' 'COMMAND B'`, at most SECONDS a verdict, and none begun after TOTAL
//! seconds.
//!
//! With A = B it shows how often this machine's noise is taken for a difference; with B made
//! slower by a known share, how often that is found. The commands' words are split at spaces; no shell runs.

use nearmiss_verify::{Commands, Outcome, Plan, SideCommand};
use nearmiss_workload::Workload;
use std::error::Error;
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [runs, seconds, total, a, b] = arguments.as_slice() else {
        return Err("usage: repeat-verdict RUNS SECONDS TOTAL 'COMMAND A' 'COMMAND B'".into());
    };
    let (runs, seconds, total): (u64, u64, u64) = (runs.parse()?, seconds.parse()?, total.parse()?);
    let side = |command: &str| SideCommand {
        name: command.to_owned(),
        workload: Workload::new(command.split_whitespace()),
        engagement: None,
    };
    let outcomes = [Outcome::Gain, Outcome::Loss, Outcome::NoDifference, Outcome::TooNoisy];
    let mut counts = [0u64; 4];
    let begun = Instant::now();
    let in_time = |_: &u64| begun.elapsed() < Duration::from_secs(total);
    for run in (0..runs).take_while(in_time) {
        let directory = tempfile::tempdir()?;
        let commands = Commands::new(side(a), side(b), directory.path());
        let plan = Plan { seed: run, time_limit: Duration::from_secs(seconds), ..Plan::default() };
        let verdict = commands.compare(&plan)?;
        let figures = nearmiss_report::verdict::comparison(&verdict, &verdict.comparison);
        println!("{run}: {}, {} pairs, {figures}", verdict.outcome, verdict.pairs);
        for (count, outcome) in counts.iter_mut().zip(outcomes) {
            *count += u64::from(verdict.outcome == outcome);
        }
    }
    let [gain, loss, none, noisy] = counts;
    let made: u64 = counts.iter().sum();
    println!("of {made} verdicts (measured): {gain} gain, {loss} loss, {none} no difference, {noisy} too noisy");
    Ok(())
}
