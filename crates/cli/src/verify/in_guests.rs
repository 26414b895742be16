//! `verify` of a remedy by recordings in guests: for what this machine has not, such as several memory nodes.

use super::sides::{Title, manifest};
use crate::conductor::launched;
use crate::output::print;
use crate::progress::progress;
use crate::run_name::run_name;
use crate::trace::{self, Measured};
use anyhow::Context;
use clap::{ArgMatches, Command};
use nearmiss_analysis::Remedy;
use nearmiss_machine::describe;
use nearmiss_record::model::{ModelRecord, Tally};
use nearmiss_record::run::{self, RunDir};
use nearmiss_record::verdict::{Sample, Sides};
use nearmiss_verify::{Error, RECORDINGS, Side, compare_recordings};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

/// Figure of all of the command's tasks.
const CYCLES: &str = "modelled cycles";
const USER_CYCLES: &str = "in user mode";
const REMOTE: &str = "remote share of bus reads";

/// The machine and CPUs on which a comparison is recorded.
#[derive(clap::Args)]
pub struct InGuests {
    /// Compare recordings in guests of this machine, three a side, instead of runs here: modelled, not measured
    #[arg(long, value_name = "MACHINE", help_heading = "Guests", conflicts_with_all = ["metric", "higher", "load", "prepare", "beside", "count", "require_gain", "pairs", "time_limit"])]
    pub in_guests: Option<String>,
    /// CPUs of the guests, at most
    #[arg(long, value_name = "N", default_value_t = describe::DEFAULT_CPUS, requires = "in_guests", help_heading = "Guests", value_parser = clap::value_parser!(u32).range(1..=64))]
    cpus: u32,
}

/// The two sides, and how they are reported and kept.
pub struct GuestComparison<'a> {
    pub remedy: &'a Remedy,
    pub given: &'a ArgMatches,
    pub command: &'a [OsString],
    pub title: Title,
    pub runs: &'a Path,
    pub seed: u64,
    pub json: bool,
}

/// Records, compares, keeps and prints.
pub fn run(guests: &InGuests, machine: &str, comparison: GuestComparison<'_>) -> anyhow::Result<ExitCode> {
    // Bad input is refused before anything is left on the disk.
    let caution = nearmiss_host::load(machine)?.caution().map(str::to_owned);
    let under = remedied(comparison.remedy, comparison.given, comparison.command)?;
    let plain = launched(comparison.command)?;
    let kept = RunDir::create(comparison.runs, &run_name("verify-", comparison.remedy.name))?;
    let started = jiff::Timestamp::now();
    let recordings = kept.file("recordings");
    let mut done = 0;
    let mut failed = None;
    let compared = compare_recordings(CYCLES, comparison.seed, |side| {
        done += 1;
        progress(&format!("recording {done} of {}, {side}", 2 * RECORDINGS));
        let words = if side == Side::Without { &plain } else { &under };
        recorded(guests, machine, &recordings, words).map_err(|error| {
            let why = format!("{error:#}");
            failed = Some(error);
            Error::Parameters(why)
        })
    });
    let mut verdict = match (compared, failed) {
        (Ok(verdict), _) => verdict,
        (Err(error), failed) => {
            // A recording that failed leaves its output to look at; where there is none, nothing is kept.
            if !recordings.exists() {
                kept.discard();
            }
            return Err(failed.unwrap_or_else(|| error.into()));
        }
    };
    let title = comparison.title;
    let name = title.remedy.clone().unwrap_or_default();
    verdict.sides = Sides { without: format!("without {}", comparison.remedy.name), with: format!("with {name}") };
    verdict.notes.push(format!(
        "Recorded in guests of {machine}; figures are of the command's own tasks, which nearmiss started on both \
         sides."
    ));
    verdict.notes.extend(caution.map(|caution| format!("Caution: {caution}.")));
    verdict.notes.extend(title.notes.iter().cloned());
    verdict.remedy = title.remedy.clone();
    verdict.predicted = title.predicted.clone();
    kept.write_json(run::VERDICT, &verdict)?;
    kept.write_json(run::MANIFEST, &manifest(&title, started))?;
    if comparison.json {
        print(&format!("{}\n", serde_json::to_string(&verdict).context("verdict")?))?;
    } else {
        print(&nearmiss_report::verdict::render(&verdict))?;
        print(&format!("\nrecordings: {}\n", recordings.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The command under the remedy, as it is typed: its own options as they were given.
fn remedied(remedy: &Remedy, given: &ArgMatches, command: &[OsString]) -> anyhow::Result<Vec<OsString>> {
    let own = std::env::current_exe().context("the path of nearmiss")?;
    let mut words: Vec<OsString> = vec![own.into(), "apply".into(), remedy.name.into()];
    for option in (remedy.options)(Command::new("")).get_arguments() {
        let Some(long) = option.get_long() else { continue };
        let name = OsString::from(format!("--{long}"));
        let is_given = given.value_source(option.get_id().as_str()) == Some(clap::parser::ValueSource::CommandLine);
        if !is_given {
            continue;
        }
        if !option.get_action().takes_values() {
            words.push(name);
            continue;
        }
        for value in given.get_raw(option.get_id().as_str()).into_iter().flatten() {
            let mut word = name.clone();
            match (option.is_require_equals_set(), value.is_empty()) {
                (true, true) => words.push(word),
                (true, false) => {
                    word.push("=");
                    word.push(value);
                    words.push(word);
                }
                (false, _) => words.extend([word, value.to_owned()]),
            }
        }
    }
    words.push("--".into());
    words.extend(command.iter().cloned());
    Ok(words)
}

fn recorded(guests: &InGuests, machine: &str, runs: &Path, words: &[OsString]) -> anyhow::Result<Sample> {
    let measured = Measured { machine, cpus: guests.cpus };
    let run = trace::once_begun(|| trace::quietly(&measured, runs, words))?;
    Ok(sample(&run.read_json(run::MODEL)?))
}

/// Figures of the command's tasks; nearmiss's own processes in the guest are none of them.
fn sample(model: &ModelRecord) -> Sample {
    let own = std::env::current_exe().ok();
    let own = own.as_deref().and_then(Path::file_name).and_then(OsStr::to_str).unwrap_or("nearmiss");
    let tasks = model.tasks.iter().filter(|task| task.of_command && task.comm != own);
    let (mut user, mut all) = (Tally::default(), Tally::default());
    for task in tasks {
        user += &task.user;
        all += &task.user;
        all += &task.kernel;
    }
    let remote = all.bus.read_remote as f64 / all.bus.reads().max(1) as f64;
    Sample::from([
        (CYCLES.to_owned(), all.cycles as f64),
        (USER_CYCLES.to_owned(), user.cycles as f64),
        (REMOTE.to_owned(), remote),
    ])
}
