//! The tool *gate*: a performance test by counted figures, with causes.

use crate::mcp::request::Request;
use crate::mcp::size::Size;
use crate::mcp::tool::{Tool, option, place, plain, read, returns, takes};
use nearmiss_record::gate::{Cause, GateRecord, JudgedFigure, Ruling};
use nearmiss_record::words::quoted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The tool.
pub const TOOL: Tool = Tool {
    name: "gate",
    about: "Compares two builds of a command, or a command with a kept baseline, by counted figures of a described \
            machine (instructions, misses, system calls) in a guest: exact beside any load, with the function behind a \
            difference. Give `old` and `new`, or `command` with `against` or `write`.",
    is_read_only: false,
    takes: takes::<Arguments>,
    returns: returns::<Answer>,
    request: |arguments, _| read::<Arguments>(arguments)?.request(),
};

/// Arguments of *gate*.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Arguments {
    /// The command as it was.
    old: Vec<String>,
    /// The command as it is now.
    new: Vec<String>,
    /// The command, with `against` or `write`.
    command: Vec<String>,
    /// Compare with the figures in this file.
    against: Option<PathBuf>,
    /// Record the command, and write its figures to this file.
    write: Option<PathBuf>,
    /// How much worse figures may be, such as 2% or instructions=0.5%.
    max_worse: Vec<String>,
    /// Machine to model: a preset, or a machine file.
    machine: Option<String>,
    /// CPUs of the guest, at most.
    cpus: Option<u32>,
    /// Record each side at least so often [default: 3].
    recordings: Option<u16>,
    /// Record each side at most so often [default: 10].
    at_most: Option<u16>,
    /// Directory that the commands run in [default: the server's].
    cwd: Option<PathBuf>,
    /// Return the whole record too.
    full: bool,
}

/// The verdict of a gate.
#[derive(Serialize, JsonSchema)]
struct Answer {
    /// Whether no figure is beyond its limit.
    passed: bool,
    /// The modelled machine.
    machine: String,
    /// Figures beyond their limits, and then those that no number of recordings decided.
    worse: Vec<Worse>,
    /// Figures that are better.
    better: Vec<String>,
    /// Figures that are left out here.
    left_out: usize,
    /// Cautions on the figures.
    notes: Vec<String>,
    /// The baseline that was written, if one was.
    written: Option<String>,
}

/// A figure that is worse, or may be.
#[derive(Serialize, JsonSchema)]
struct Worse {
    /// Name of the figure.
    figure: String,
    /// Mean of the old side.
    old: f64,
    /// Mean of the new side.
    new: f64,
    /// Half of the interval of the difference.
    noise: f64,
    /// The limit.
    limit: String,
    /// Whether the figure is certainly beyond its limit; else the recordings do not decide.
    is_certain: bool,
    /// Parts of the program behind the difference, the largest first.
    causes: Vec<String>,
}

impl Arguments {
    fn request(self) -> Result<Request, String> {
        let place = place(self.cwd.as_deref())?;
        let mut words = vec!["gate".to_owned()];
        words.extend(self.max_worse.iter().filter_map(|limit| option("max-worse", Some(limit))));
        words.extend(option("machine", self.machine.as_ref()));
        words.extend(option("cpus", self.cpus));
        words.extend(option("recordings", self.recordings));
        words.extend(option("at-most", self.at_most));
        words.extend(option("against", self.against.as_ref().map(|file| file.display())));
        words.extend(option("write", self.write.as_ref().map(|file| file.display())));
        if self.write.is_none() {
            words.push("--json".to_owned());
        }
        words.extend(self.sides()?);
        match self.write {
            None => Ok(Request::of_record(words, place, self.full, answer)),
            Some(_) => Ok(Request { words, place, is_full: false, answering: Box::new(|printed, _| written(printed)) }),
        }
    }

    fn sides(&self) -> Result<Vec<String>, String> {
        let with_file = self.against.is_some() != self.write.is_some();
        match (self.command.is_empty(), self.old.is_empty(), self.new.is_empty()) {
            (false, true, true) if with_file => Ok([&["--".to_owned()], &self.command[..]].concat()),
            (true, false, false) if self.against.is_none() && self.write.is_none() => {
                [&self.old, &self.new].map(|side| plain("command", &quoted(side))).into_iter().collect()
            }
            _ => Err("give old and new, or command with either against or write".to_owned()),
        }
    }
}

/// The answer to a request for a baseline.
fn written(printed: &str) -> Result<(String, serde_json::Value), String> {
    let written = Some(printed.trim().to_owned());
    let answer = Answer {
        passed: true,
        machine: String::new(),
        worse: Vec::new(),
        better: Vec::new(),
        left_out: 0,
        notes: Vec::new(),
        written,
    };
    Ok((printed.to_owned(), serde_json::to_value(answer).map_err(|error| error.to_string())?))
}

fn answer(record: &GateRecord, size: Size) -> (String, Answer) {
    let with = |ruling: Ruling| record.figures.iter().filter(move |figure| figure.ruling == ruling);
    let worse: Vec<&JudgedFigure> = with(Ruling::Beyond).chain(with(Ruling::Unclear)).collect();
    let better: Vec<String> = with(Ruling::Better).map(change).collect();
    let (shown, shown_better) = (size.rows(&worse, |figure| of_figure(figure, size)), size.texts(&better));
    let answer = Answer {
        passed: record.passed,
        machine: record.recorder.machine.clone(),
        left_out: worse.len() + better.len() - shown.len() - shown_better.len(),
        worse: shown,
        better: shown_better,
        notes: size.texts(&record.notes),
        written: None,
    };
    let begin = if record.passed { "passed\n" } else { "failed\n" };
    let lines = with(Ruling::Beyond).map(|figure| format!("{}, limit {}\n", change(figure), figure.limit));
    (std::iter::once(begin.to_owned()).chain(lines).collect(), answer)
}

/// `user.instructions +0.94%`.
fn change(figure: &JudgedFigure) -> String {
    let change =
        figure.change().map_or_else(|| format!("{:+}", figure.difference), |change| format!("{:+.2}%", change * 100.0));
    format!("{} {change}", figure.name)
}

fn of_figure(figure: &JudgedFigure, size: Size) -> Worse {
    let causes: Vec<String> = figure.causes.iter().map(cause).collect();
    Worse {
        figure: figure.name.clone(),
        old: figure.old,
        new: figure.new,
        noise: figure.noise,
        limit: figure.limit.to_string(),
        is_certain: figure.ruling == Ruling::Beyond,
        causes: size.texts(&causes),
    }
}

/// `checksum` (program.c:8, called from main): 640000 more.
fn cause(cause: &Cause) -> String {
    let site = if cause.file.is_empty() { String::new() } else { format!("{}:{}", cause.file, cause.line) };
    let caller = if cause.caller.is_empty() { String::new() } else { format!("called from {}", cause.caller) };
    let about: Vec<String> = [site, caller].into_iter().filter(|part| !part.is_empty()).collect();
    format!("{} ({}): {:+}", cause.name, about.join(", "), cause.difference())
}
