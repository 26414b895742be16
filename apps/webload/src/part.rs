//! One load over several processes: a machine may cap the descriptors of a process.

use crate::engine::{Engine, Plan};
use crate::load::Load;
use crate::measure::Measure;
use crate::outcome::{self, Problem};
use crate::socket;
use rustix::process::{Signal, set_parent_process_death_signal};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::str::FromStr;

/// Descriptors of a process that are no connections.
const OTHERS: usize = 50;

/// Which part of a split load a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadPart {
    /// From 0 on.
    pub index: usize,
    /// How many parts there are.
    pub of: usize,
}

impl FromStr for LoadPart {
    type Err = String;

    fn from_str(text: &str) -> Result<LoadPart, String> {
        let numbers = text.split_once('/').and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((index, of)) if index < of => Ok(LoadPart { index, of }),
            _ => Err("a part is written as 0/2".to_owned()),
        }
    }
}

impl LoadPart {
    /// Returns this part's share of `count` things.
    pub const fn share(&self, count: usize) -> usize {
        count / self.of + if self.index < count % self.of { 1 } else { 0 }
    }
}

/// How a load is spread.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    /// The part that this process is, if another one started it.
    pub part: Option<LoadPart>,
    /// Connections in all.
    pub connections: usize,
    /// Processes that the user requested.
    pub processes: Option<usize>,
}

/// Figures of all parts, by phase.
#[derive(Debug)]
pub struct Measured {
    /// One per phase.
    pub phases: Vec<Measure>,
    /// Over how many processes the load was split.
    pub processes: usize,
    /// Descriptors that each could have.
    pub descriptors: u64,
}

/// Runs a load, over several processes where needed; `None` in a process that is a part, after it has handed over its
/// figures.
pub fn run<L: Load>(
    spread: Spread,
    make: impl FnOnce(LoadPart) -> Result<(L, Plan), Problem>,
) -> Result<Option<Measured>, Problem> {
    let descriptors = socket::descriptors();
    if let Some(part) = spread.part {
        return hand_over(make(part)?).map(|()| None);
    }
    let most = usize::try_from(descriptors).unwrap_or(usize::MAX).saturating_sub(OTHERS).max(1);
    let processes = spread.processes.unwrap_or_else(|| spread.connections.div_ceil(most));
    if spread.connections.div_ceil(processes.max(1)) > most || processes == 0 || processes > spread.connections {
        return Err(Problem::Input(format!(
            "--processes {processes}: {} connections need at least {} processes and at most one each, with {descriptors} \
             descriptors a process",
            spread.connections,
            spread.connections.div_ceil(most)
        )));
    }
    let phases = if processes == 1 {
        let (load, plan) = make(LoadPart { index: 0, of: 1 })?;
        let mut engine = Engine::new(load, plan)?;
        engine.open()?;
        engine.run()?
    } else {
        run_parts(processes)?
    };
    Ok(Some(Measured { phases, processes, descriptors }))
}

/// In a part: opens connections, waits for the word to start, runs, prints the figures.
fn hand_over<L: Load>((load, plan): (L, Plan)) -> Result<(), Problem> {
    // A kernel that refuses leaves a part to end by itself when its run is over.
    _ = set_parent_process_death_signal(Some(Signal::KILL));
    let mut engine = Engine::new(load, plan)?;
    engine.open()?;
    outcome::print("ready\n")?;
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line);
    if read.map_or(0, |length| length) == 0 {
        return Err(Problem::Run("the process that started this part is gone".to_owned()));
    }
    let measures = engine.run()?;
    let text = serde_json::to_string(&measures).map_err(|error| Problem::Run(error.to_string()))?;
    outcome::print(format_args!("{text}\n"))
}

fn broken(error: impl std::fmt::Display) -> Problem {
    Problem::Run(format!("a part of the load failed: {error}"))
}

fn start(index: usize, of: usize) -> Result<Child, Problem> {
    let program = std::env::current_exe().map_err(broken)?;
    let mut command = Command::new(program);
    command.args(std::env::args_os().skip(1)).arg(format!("--part={index}/{of}"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(broken)
}

fn run_parts(processes: usize) -> Result<Vec<Measure>, Problem> {
    let mut parts = (0..processes).map(|index| start(index, processes)).collect::<Result<Vec<_>, _>>()?;
    let figures = measures_of(&mut parts);
    for part in &mut parts {
        if figures.is_err() {
            _ = part.kill();
        }
        _ = part.wait();
    }
    figures
}

fn measures_of(parts: &mut [Child]) -> Result<Vec<Measure>, Problem> {
    let mut outputs = Vec::new();
    for part in parts.iter_mut() {
        let mut output = BufReader::new(part.stdout.take().ok_or_else(|| broken("no output"))?);
        let mut line = String::new();
        output.read_line(&mut line).map_err(broken)?;
        if line.trim() != "ready" {
            return Err(broken("it could not start"));
        }
        outputs.push(output);
    }
    for part in parts.iter_mut() {
        let input = part.stdin.as_mut().ok_or_else(|| broken("no input"))?;
        input.write_all(b"go\n").map_err(broken)?;
    }
    let mut sum: Vec<Measure> = Vec::new();
    for mut output in outputs {
        let mut text = String::new();
        output.read_to_string(&mut text).map_err(broken)?;
        let figures: Vec<Measure> = serde_json::from_str(&text).map_err(broken)?;
        if sum.is_empty() {
            sum = figures;
        } else {
            sum.iter_mut().zip(&figures).for_each(|(sum, figures)| sum.add(figures));
        }
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_sum_up_to_the_whole() {
        for of in 1..7 {
            let shares = (0..of).map(|index| LoadPart { index, of }.share(20));
            assert_eq!(shares.sum::<usize>(), 20, "{of}");
        }
        assert_eq!("1/3".parse(), Ok(LoadPart { index: 1, of: 3 }));
        assert!("3/3".parse::<LoadPart>().is_err() && "x".parse::<LoadPart>().is_err());
    }
}
