//! The verb `report`.

use anyhow::Context;
use nearmiss_record::observed;
use nearmiss_record::run::{self, RunDir};
use nearmiss_report::load::Report;
use nearmiss_report::{callgrind, html, json, pprof, text};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `nearmiss report`.
#[derive(clap::Args)]
pub struct Args {
    /// The run's directory [default: the newest one under ./nearmiss-runs]
    run: Option<PathBuf>,
    #[command(flatten)]
    form: Form,
    /// Rows of the text's longest table
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    top: u16,
}

#[derive(clap::Args)]
#[group(multiple = false)]
struct Form {
    /// Print the records of the run as one JSON object
    #[arg(long)]
    json: bool,
    /// Write one self-contained HTML page [default: report.html in the run's directory]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    html: Option<Option<PathBuf>>,
    /// Write a profile for KCachegrind and callgrind_annotate
    #[arg(long, value_name = "FILE")]
    callgrind: Option<PathBuf>,
    /// Write a profile for pprof
    #[arg(long, value_name = "FILE")]
    pprof: Option<PathBuf>,
    /// Write a profile for the Firefox Profiler (of observed runs)
    #[arg(long, value_name = "FILE")]
    firefox: Option<PathBuf>,
    /// Write a trace for Perfetto (of observed runs)
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,
    /// Write folded stacks for flame-graph tools (of observed runs)
    #[arg(long, value_name = "FILE")]
    folded: Option<PathBuf>,
}

/// Runs the verb.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let run = match &args.run {
        Some(path) => RunDir::open(path)?,
        None => RunDir::newest(Path::new(run::DEFAULT_PARENT))?,
    };
    if run.file(observed::FILE).is_file() {
        return observed_run(&run, &args);
    }
    if args.form.firefox.is_some() || args.form.perfetto.is_some() || args.form.folded.is_some() {
        anyhow::bail!("{}: a traced run has no time line; use --html, --callgrind or --pprof", run.path().display());
    }
    let report = Report::load(&run)?;
    if args.form.json {
        print(&json::render(&report)?)?;
    } else if let Some(file) = args.form.html {
        let file = file.unwrap_or_else(|| run.file(run::REPORT));
        write(&file, html::render(&report, html::Options::default()).as_bytes())?;
    } else if let Some(file) = args.form.callgrind {
        write(&file, callgrind::render(&report).as_bytes())?;
    } else if let Some(file) = args.form.pprof {
        write(&file, &pprof::render(&report)?)?;
    } else {
        print(&text::render(&report, text::Options { width: terminal_width(), top: args.top.into() }))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A run of `observe` in the form asked for.
fn observed_run(run: &RunDir, args: &Args) -> anyhow::Result<ExitCode> {
    use nearmiss_report::observe;
    let observed: observed::Observed = run.read_json(observed::FILE)?;
    let form = &args.form;
    if form.json {
        print(&format!("{}\n", serde_json::to_string(&observed)?))?;
    } else if let Some(file) = &form.html {
        let file = file.clone().unwrap_or_else(|| run.file(run::REPORT));
        write(&file, observe::html(&observed).as_bytes())?;
    } else if let Some(file) = &form.pprof {
        write(file, &observe::to_pprof(&observed)?)?;
    } else if let Some(file) = &form.firefox {
        write(file, &observe::firefox(&observed)?)?;
    } else if let Some(file) = &form.perfetto {
        write(file, &observe::perfetto(&observed)?)?;
    } else if let Some(file) = &form.folded {
        let profile = observed.profile.as_ref().context("this run has no samples: observe with --clock")?;
        let event = observe::event_of(profile, "clock").unwrap_or(0);
        write(file, observe::folded(profile, event).as_bytes())?;
    } else if form.callgrind.is_some() {
        anyhow::bail!("{}: the callgrind format is for traced runs; use --pprof or --folded", run.path().display());
    } else {
        print(&observe::text(&observed, terminal_width(), args.top.into()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a file whole or not at all, and says where it is.
fn write(file: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    run::write_whole(file, bytes)?;
    print(&format!("{}\n", file.display()))
}

/// Columns of the terminal, 80 where there is none.
fn terminal_width() -> usize {
    width_of(std::io::stdout())
}

/// As [`terminal_width`], for wrappers, whose own text goes to stderr.
pub fn terminal_width_of_stderr() -> usize {
    width_of(std::io::stderr())
}

fn width_of(stream: impl std::os::fd::AsFd) -> usize {
    let columns = rustix::termios::tcgetwinsize(stream).ok().map(|size| usize::from(size.ws_col));
    columns.filter(|c| *c > 0).unwrap_or(80)
}

/// Prints, without styles where no terminal reads. A reader that has seen enough is no error.
fn print(text: &str) -> anyhow::Result<()> {
    match anstream::stdout().lock().write_all(text.as_bytes()) {
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}
