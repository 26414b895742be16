//! `nearmiss-papers`: a paper's figures and ours side by side.

use clap::{Parser, ValueEnum};
use nearmiss_papers::pacing::plan::Scale;
use nearmiss_papers::record::{Here, PaperRecord};
use nearmiss_papers::{PAPERS, Paper, text};
use nearmiss_record::run::{remove_unfinished, write_whole};
use nearmiss_usage::{Progress, print, report};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const NAME: &str = "nearmiss-papers";
/// Wrong use or bad input.
const BAD_INPUT: u8 = 2;
/// A shell's status of a program that a signal ended, less the signal.
const OF_A_SIGNAL: i32 = 128;

#[derive(Parser)]
#[command(name = NAME, version, about = "The papers' tables and figures, theirs and ours side by side")]
#[command(
    max_term_width = 120,
    after_help = "Examples:
  nearmiss-papers list
  nearmiss-papers run coloring
  nearmiss-papers run coloring --table a
  nearmiss-papers run coloring --here       and the same on this machine, measured
  nearmiss-papers run pacing                measured here, some ten minutes
  nearmiss-papers run pollution             modelled, and writes measured here: under a minute
  nearmiss-papers run numa                  modelled, half of it from servers recorded in guests: some minutes
  nearmiss-papers run pairing               modelled: two minutes of simulated schedulers
  nearmiss-papers run coloring --out pictures --json > coloring.json

Papers that measure or record need nearmiss, nearmiss-accelerator and nearmiss-webload beside this program: make all."
)]
enum Verb {
    /// The papers that can be run
    List,
    /// Compute a paper's figures on the machine model and print them beside the paper's own
    Run(Run),
}

#[derive(clap::Args)]
#[command(after_help = "Examples:
  nearmiss-papers run coloring              all its tables, a minute or two
  nearmiss-papers run coloring --table a    one of them
  nearmiss-papers run coloring --here       and the same on this machine, measured
  nearmiss-papers run pacing                some ten minutes of servers and loads on loopback
  nearmiss-papers run pollution --table b   misses of copies into the page cache, and around the caches
  nearmiss-papers run pairing --table c     who runs beside whom, under four schedulers")]
struct Run {
    /// Which one: `nearmiss-papers list` has the names
    name: String,
    /// Compute only this table: a, b, c or d
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// Then measure the same on this machine's own caches, with a program of ours
    #[arg(long, conflicts_with = "json")]
    here: bool,
    /// How much is measured, of a paper that is measured here, or simulated: `trial` is little
    #[arg(long, value_name = "SCALE", value_enum, default_value = "small")]
    scale: ScaleArg,
    /// Print the record (nearmiss/paper/1) instead of the tables
    #[arg(long)]
    json: bool,
    /// Directory of the pictures [default: nearmiss-papers/NAME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// How much is measured.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ScaleArg {
    /// One rate for a second, some MB, or ten runs: whether everything works
    Trial,
    /// Seconds a figure
    Small,
    /// A minute a figure, and the paper's working set or size of files
    Paper,
}

impl From<ScaleArg> for Scale {
    fn from(scale: ScaleArg) -> Self {
        match scale {
            ScaleArg::Trial => Scale::Trial,
            ScaleArg::Small => Scale::Small,
            ScaleArg::Paper => Scale::Paper,
        }
    }
}

fn main() -> ExitCode {
    let verb: Verb = match nearmiss_usage::read() {
        Ok(verb) => verb,
        Err(status) => return status,
    };
    let done = end_at_signals().and_then(|()| match verb {
        Verb::List => list(),
        Verb::Run(run) => compute(&run),
    });
    done.unwrap_or_else(|error| {
        report(NAME, error);
        ExitCode::from(BAD_INPUT)
    })
}

/// Ends the program at Ctrl-C and SIGTERM, and takes unfinished recordings away.
fn end_at_signals() -> Result<(), Box<dyn Error>> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            remove_unfinished();
            report(NAME, "interrupted");
            std::process::exit(OF_A_SIGNAL + signal);
        }
    });
    Ok(())
}

fn list() -> Result<ExitCode, Box<dyn Error>> {
    let longest = PAPERS.iter().map(|paper| paper.name.len()).max().unwrap_or(0);
    for Paper { name, title, what, .. } in PAPERS {
        print(format!("{name:longest$}  {title}\n{:longest$}  {what}\n", ""))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn compute(run: &Run) -> Result<ExitCode, Box<dyn Error>> {
    let name = &run.name;
    let Some(paper) = nearmiss_papers::paper(name) else {
        let names: Vec<_> = PAPERS.iter().map(|paper| paper.name).collect();
        return Err(format!("{name}: no such paper; there are: {}", names.join(", ")).into());
    };
    let here = if run.here { Some(program_of(paper)?) } else { None };
    let out = run.out.clone().unwrap_or_else(|| Path::new(NAME).join(paper.name));
    // A paper takes minutes: a place that takes nothing is reported ahead of them.
    can_be_made(&out)?;
    let nearmiss = std::env::current_exe()?.with_file_name("nearmiss");
    let progress = Progress::of(NAME, paper.doing);
    let at = |done, whole| progress.at(done as u64, whole as u64);
    let record = paper.run(run.table.as_deref(), run.scale.into(), &nearmiss, &at)?;
    drop(progress);
    write_pictures(&record, &out)?;
    if run.json {
        print(serde_json::to_string_pretty(&record)? + "\n")?;
    } else {
        print(format!("{}\npictures: {}\n", text::render(&record), out.display()))?;
    }
    here.map_or(Ok(ExitCode::SUCCESS), |here| verify(&nearmiss, here))
}

/// Returns the program that shows the paper's effect on this machine. Errors: nothing does, or it was not built.
fn program_of(paper: &Paper) -> Result<Here, Box<dyn Error>> {
    let Some(here) = paper.here else {
        return Err(format!("{}: what it measures here needs no --here; leave it away", paper.name).into());
    };
    if !Path::new(here.program).is_file() {
        return Err(format!("{}: not there; build it in a clone of nearmiss: {}", here.program, here.build).into());
    }
    Ok(here)
}

/// Measures the paper's effect on this machine, and returns the status of the verdict.
fn verify(nearmiss: &Path, here: Here) -> Result<ExitCode, Box<dyn Error>> {
    print("\n")?;
    let mut verify = Command::new(nearmiss);
    verify.arg("verify").args(here.verify).args(["--", here.program]).args(here.arguments);
    let status = verify.status().map_err(|error| format!("{}: {error}; build it: make build", nearmiss.display()))?;
    Ok(ExitCode::from(status.code().map_or(BAD_INPUT, |code| code as u8)))
}

/// Checks that a directory can be made and written, and leaves nothing.
fn can_be_made(directory: &Path) -> Result<(), Box<dyn Error>> {
    let there = directory.ancestors().find(|path| path.exists() || path.as_os_str().is_empty());
    let there = there.filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !there.is_dir() {
        return Err(format!("{}: no directory; give --out DIR where there is room", there.display()).into());
    }
    tempfile::tempfile_in(there)
        .map(drop)
        .map_err(|error| format!("{}: cannot be written: {error}; give --out DIR where it can", there.display()).into())
}

fn write_pictures(record: &PaperRecord, out: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(out).map_err(|error| format!("{}: cannot be created: {error}", out.display()))?;
    for picture in &record.pictures {
        write_whole(&out.join(&picture.file), picture.svg.as_bytes())?;
    }
    Ok(())
}
