//! The tool *report*: where the misses, waits or times of a kept run come from.

use super::{runs, verify};
use crate::mcp::request::Request;
use crate::mcp::size::Size;
use crate::mcp::tool::{Tool, option, place, plain, read, returns, takes};
use nearmiss_record::model::{ModelRecord, Tally};
use nearmiss_record::observed::{Lock, Observed, Poll};
use nearmiss_record::verdict::Verdict;
use nearmiss_record::words::{duration, grouped, percent_of};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The tool.
pub const TOOL: Tool = Tool {
    name: "report",
    about: "Shows a kept run again: of a traced one the sentence that matters, and the functions and objects with the \
            most cycles and misses; of an observed one its lock waits, polls and tasks; of a verified one its verdict.",
    is_read_only: true,
    takes: takes::<Arguments>,
    returns: returns::<Answer>,
    request: |arguments, _| read::<Arguments>(arguments)?.request(),
};

/// Arguments of *report*.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Arguments {
    /// Directory of the run [default: the newest].
    run: Option<String>,
    /// Directory with ./nearmiss-runs [default: the server's].
    cwd: Option<PathBuf>,
    /// Model a traced run again, on this machine.
    machine: Option<String>,
    /// Return the whole record too: of a traced run, some hundred KB.
    full: bool,
}

/// Summary of a run.
#[derive(Serialize, JsonSchema)]
struct Answer {
    /// Directory of the run.
    run: Option<String>,
    /// Name of the record's schema: nearmiss/report/1, nearmiss/observe/1 or nearmiss/verdict/2.
    schema: String,
    /// The sentence that matters.
    sentence: String,
    /// Functions with the most cycles, of a traced run.
    functions: Vec<Place>,
    /// Objects with the most misses, of a traced run.
    objects: Vec<Place>,
    /// Lock waits and polls, of an observed run.
    waits: Vec<String>,
    /// Cautions on the figures.
    notes: Vec<String>,
}

/// A function or an object.
#[derive(Serialize, JsonSchema)]
struct Place {
    /// Name of the function or the object.
    name: String,
    /// Share of the command's cycles.
    cycles: String,
    /// Misses of the first level, of data and of instructions.
    first_level_misses: u64,
}

impl Arguments {
    fn request(self) -> Result<Request, String> {
        let place = place(self.cwd.as_deref())?;
        let mut words: Vec<String> = ["report", "--json"].map(str::to_owned).to_vec();
        words.extend(option("machine", self.machine.as_ref()));
        words.extend(self.run.as_ref().map(|run| plain("run", run)).transpose()?);
        let run = runs::named_or_newest(&place, self.run.as_deref().map(Path::new));
        let there = place.clone();
        let answering = move |record: &Value, size: Size| answer(record, size, run.clone(), &there);
        Ok(Request::of_record(words, place, self.full, answering))
    }
}

fn answer(record: &Value, size: Size, run: Option<String>, place: &Path) -> (String, Answer) {
    let schema = record["schema"].as_str().unwrap_or_default().to_owned();
    let mut answer = Answer {
        run,
        schema,
        sentence: String::new(),
        functions: Vec::new(),
        objects: Vec::new(),
        waits: Vec::new(),
        notes: Vec::new(),
    };
    if let Some(model) = part::<ModelRecord>(&record["model"]) {
        answer.sentence = size.text(record["sentence"]["text"].as_str().unwrap_or_default());
        of_model(&mut answer, &model, size);
    } else if let Some(observed) = part::<Observed>(record) {
        of_observed(&mut answer, &observed, size);
    } else if let Some(verdict) = part::<Verdict>(record) {
        answer.sentence = verify::answer(&verdict, size, place).0;
        answer.notes = size.texts(&verdict.notes);
    }
    (text(&answer), answer)
}

fn part<T: DeserializeOwned>(record: &Value) -> Option<T> {
    T::deserialize(record).ok()
}

fn of_model(answer: &mut Answer, model: &ModelRecord, size: Size) {
    let whole = model.totals.cycles;
    let place = |name: &str, tally: &Tally| Place {
        name: size.text(name),
        cycles: percent_of(tally.cycles, whole),
        first_level_misses: first_level_misses(tally),
    };
    let mut functions: Vec<_> = model.functions.iter().collect();
    functions.sort_by_key(|row| std::cmp::Reverse(row.tally.cycles));
    answer.functions = size.rows(&functions, |row| place(&row.name, &row.tally));
    let mut objects: Vec<_> = model.objects.iter().collect();
    objects.sort_by_key(|row| std::cmp::Reverse(first_level_misses(&row.tally)));
    answer.objects = size.rows(&objects, |row| place(&row.name, &row.tally));
    answer.notes = size.texts(&model.notes);
}

fn first_level_misses(tally: &Tally) -> u64 {
    let level = tally.levels.first();
    level.map_or(0, |it| [it.load_misses, it.store_misses, it.fetch_misses].iter().flatten().sum())
}

fn of_observed(answer: &mut Answer, observed: &Observed, size: Size) {
    let (time, cpu) = (duration(observed.duration_ns), duration(observed.cpu_ns));
    answer.sentence = size.text(&format!("{}: {time}, of which {cpu} of CPU time (measured)", observed.target));
    let locks = size.rows(&observed.locks, |lock| size.text(&of_lock(lock)));
    let polls = size.rows(&observed.polls, |poll| size.text(&of_poll(poll)));
    answer.waits = [locks, polls].concat();
    answer.notes = size.texts(&observed.notes);
}

fn of_lock(lock: &Lock) -> String {
    let (times, total) = (grouped(lock.count), duration(lock.total_ns));
    let site = lock.stack.first().map_or(String::new(), |frame| format!(" in {}", frame.function));
    format!("{} {}{site}: {times} waits, {total}", lock.kind, lock.name)
}

fn of_poll(poll: &Poll) -> String {
    format!("{} of {}: {} calls, {} events", poll.call, poll.name, grouped(poll.calls), grouped(poll.events))
}

fn text(answer: &Answer) -> String {
    let mut text = format!("{}\n", answer.sentence.trim_end());
    let line = |place: &Place| format!("{} of the cycles: {}\n", place.cycles, place.name);
    text.extend(answer.functions.iter().take(3).map(line));
    text.extend(answer.waits.iter().take(3).map(|wait| format!("{wait}\n")));
    text
}
