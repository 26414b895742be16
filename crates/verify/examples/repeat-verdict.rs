//! Judges the same two shell commands many times and counts the verdicts:
//! `repeat-verdict RUNS SECONDS 'COMMAND A' 'COMMAND B'`, at most SECONDS a verdict.
//!
//! With A = B it shows how often this machine's noise is taken for a difference; with B made
//! slower by a known share, how often that is found.

use nearmiss_verify::{Commands, Outcome, Plan, SideCommand};
use nearmiss_workload::Workload;
use std::error::Error;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [runs, seconds, a, b] = arguments.as_slice() else {
        return Err("usage: repeat-verdict RUNS SECONDS 'COMMAND A' 'COMMAND B'".into());
    };
    let (runs, seconds): (u64, u64) = (runs.parse()?, seconds.parse()?);
    let side = |script: &str| SideCommand {
        name: script.to_owned(),
        workload: Workload::new(["sh", "-c", script]),
        engagement: None,
    };
    let directory = std::env::temp_dir().join(format!("repeat-verdict-{}", std::process::id()));
    let mut counts = [0u64; 4];
    for run in 0..runs {
        std::fs::create_dir_all(&directory)?;
        let commands = Commands::new(side(a), side(b), &directory);
        let plan = Plan { seed: run, time_limit: Duration::from_secs(seconds), ..Plan::default() };
        let verdict = commands.compare(&plan);
        std::fs::remove_dir_all(&directory)?;
        let verdict = verdict?;
        let figures = nearmiss_report::verdict::comparison(&verdict, &verdict.comparison);
        println!("{run}: {}, {} pairs, {figures}", verdict.outcome, verdict.pairs);
        counts[match verdict.outcome {
            Outcome::Gain => 0,
            Outcome::Loss => 1,
            Outcome::NoDifference => 2,
            Outcome::TooNoisy => 3,
        }] += 1;
    }
    let [gain, loss, none, noisy] = counts;
    println!("of {runs} verdicts (measured): {gain} gain, {loss} loss, {none} no difference, {noisy} too noisy");
    Ok(())
}
