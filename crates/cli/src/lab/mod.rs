//! The verb `lab`: experiments as matrices.

mod guest;
mod pictures;
mod shown;

use crate::exit::{self, CannotHere, print_message};
use crate::output::{flat, print, write};
use crate::progress;
use anyhow::Context;
use guest::Here;
use nearmiss_lab::{About, Changes, Ended, Ending, Error, Event, Executor, Lab, Local, SCHEMA, Selection, Show, Slurm};
use nearmiss_record::run::write_whole;
use nearmiss_usage::Progress;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Directory of labs, unless `--out` names another place.
const LABS: &str = "nearmiss-labs";

/// Arguments of `nearmiss lab`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  nearmiss lab run experiment.toml                       every cell once a round, in shuffled rounds
  nearmiss lab run research/papers/pollution/lab.toml --scale small
  nearmiss lab resume                                    go on after any interruption
  nearmiss lab show --rows workload --columns cpus       figures, and ratios with intervals")]
pub struct Args {
    #[command(subcommand)]
    what: LabCommand,
}

#[derive(clap::Subcommand)]
enum LabCommand {
    /// Begin an experiment, and run it to its end
    #[command(after_help = "Examples:
  nearmiss lab run experiment.toml
  nearmiss lab run experiment.toml --set size=64M --repetitions 3
  nearmiss lab run experiment.toml --seed 7 --out labs/second
  nearmiss lab run experiment.toml --on slurm --sbatch=--partition=quiet

docs/reference/lab.md lists all that a specification may have.")]
    Run(RunArgs),
    /// Go on with an experiment that was interrupted
    #[command(after_help = "Examples:
  nearmiss lab resume                                    the newest below ./nearmiss-labs
  nearmiss lab resume labs/second --retry                failed cells once more")]
    Resume {
        /// The lab [default: the newest below ./nearmiss-labs]
        lab: Option<PathBuf>,
        /// Run cells again that failed or ran out of time
        #[arg(long)]
        retry: bool,
        /// Print the record (nearmiss/lab/1) instead of the tables
        #[arg(long)]
        json: bool,
    },
    /// Print an experiment's figures, also while it runs
    #[command(after_help = "Examples:
  nearmiss lab show --rows workload --columns cpus
  nearmiss lab show --columns remedy --only cpus=2 --figure wall_s
  nearmiss lab show labs/second --json
  nearmiss lab show --html=sorting.html --parquet sorting.parquet")]
    Show(ShowArgs),
    /// Run cells for another process that works on the lab
    #[command(hide = true)]
    Cells(CellsArgs),
}

#[derive(clap::Args)]
struct RunArgs {
    /// The specification, a TOML file
    spec: PathBuf,
    /// The lab's directory, which must not be there yet [default: nearmiss-labs/NAME, or NAME-2, NAME-3 where that is there]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// A size that the specification has under [scale]
    #[arg(long, value_name = "NAME")]
    scale: Option<String>,
    /// Another value of a key of [set]
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    set: Vec<(String, String)>,
    /// How often each case runs
    #[arg(long, value_name = "N")]
    repetitions: Option<u32>,
    /// Shuffles the rounds
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Take the CPUs that a cell does not name off line while it runs, instead of leaving them to others. The whole
    /// machine is without them meanwhile
    #[arg(long, conflicts_with = "on")]
    hotplug: bool,
    /// Place where cells run, if not here
    #[arg(long, value_name = "PLACE", value_enum)]
    on: Option<Backend>,
    /// Cells of one task of the cluster
    #[arg(long, value_name = "N", default_value_t = 8, requires = "on", value_parser = clap::value_parser!(u32).range(1..))]
    cells_a_task: u32,
    /// A further word for sbatch, such as --sbatch=--partition=quiet; again for another one
    #[arg(long, value_name = "WORD", requires = "on")]
    sbatch: Vec<String>,
    /// Print the record (nearmiss/lab/1) instead of the tables
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct ShowArgs {
    /// The lab [default: the newest below ./nearmiss-labs]
    lab: Option<PathBuf>,
    /// Axes that are rows; `workload` is one
    #[arg(long, value_name = "AXIS,…", value_delimiter = ',')]
    rows: Vec<String>,
    /// The axis that is the columns
    #[arg(long, value_name = "AXIS")]
    columns: Option<String>,
    /// Only cells of this level of an axis; again: of this one too
    #[arg(long, value_name = "AXIS=LEVEL", value_parser = pair)]
    only: Vec<(String, String)>,
    /// Only these figures
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    figure: Vec<String>,
    /// Write one self-contained HTML page with pictures [default: lab.html in the lab's directory]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    html: Option<Option<PathBuf>>,
    /// Write all cells as a table: a row a cell, a column for each axis and figure
    #[arg(long, value_name = "FILE")]
    parquet: Option<PathBuf>,
    /// Print the record (nearmiss/lab/1) instead of the tables
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct CellsArgs {
    lab: PathBuf,
    /// Identifiers of the cells
    cells: Vec<String>,
    /// A file with an identifier a line
    #[arg(long)]
    of: Option<PathBuf>,
    /// The job that this is a task of: cells run as long as the lab waits for it
    #[arg(long)]
    job: Option<String>,
    /// This machine is the guest that the cells require
    #[arg(long)]
    inside: bool,
}

/// Place in which cells may run.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Backend {
    /// A cluster, by `sbatch`
    Slurm,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let both = text.split_once('=').filter(|(name, _)| !name.is_empty());
    both.map(|(name, value)| (name.to_owned(), value.to_owned())).ok_or_else(|| "write NAME=VALUE".to_owned())
}

/// Runs the verb.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.what {
        LabCommand::Run(args) => {
            let json = args.json;
            go_on(begin(args)?, json)
        }
        LabCommand::Resume { lab, retry, json } => {
            let mut lab = Lab::open(&place(lab)?).map_err(in_words)?;
            if retry {
                lab.retry();
            }
            go_on(lab, json)
        }
        LabCommand::Show(args) => shown(args),
        LabCommand::Cells(args) => cells(args),
    }
}

fn shown(args: ShowArgs) -> anyhow::Result<ExitCode> {
    let lab = Lab::read(&place(args.lab)?).map_err(in_words)?;
    let wanted = Selection { rows: args.rows, columns: args.columns, only: args.only, metrics: args.figure };
    let show_it = Show::of(&lab, &wanted).map_err(in_words)?;
    // With --json the record is all that standard output has.
    let keep = if args.json { |file: &Path, bytes: &[u8]| write_whole(file, bytes).map_err(flat) } else { write };
    let has_files = args.parquet.is_some() || args.html.is_some();
    if let Some(file) = &args.parquet {
        keep(file, &lab.parquet(file).map_err(in_words)?)?;
    }
    if let Some(file) = args.html {
        let file = file.unwrap_or_else(|| lab.path().join("lab.html"));
        keep(&file, shown::html(&lab, &show_it).as_bytes())?;
    }
    if args.json || !has_files {
        show(&lab, &show_it, args.json)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A task of a cluster, or a guest. It ends between two cells when nobody waits for them any more.
fn cells(args: CellsArgs) -> anyhow::Result<ExitCode> {
    let mut names = args.cells;
    if let Some(file) = &args.of {
        let text = std::fs::read_to_string(file).with_context(|| format!("{}: cannot be read", file.display()))?;
        names.extend(text.lines().map(str::to_owned));
    }
    let executor: &mut dyn Executor = if args.inside { &mut Local } else { &mut Here };
    let wanted = || args.job.as_ref().is_none_or(|job| Lab::waits_for(&args.lab, job));
    Lab::run_cells(&args.lab, &names, &std::env::current_exe()?, executor, &wanted).map_err(in_words)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the executor of a lab's cells. Errors: the cluster does not answer.
fn executor(on: Option<&Slurm>) -> anyhow::Result<Box<dyn Executor>> {
    match on {
        Some(slurm) => {
            slurm.answers().map_err(in_words)?;
            Ok(Box::new(slurm.clone()))
        }
        None => Ok(Box::new(Here)),
    }
}

fn in_words(error: Error) -> anyhow::Error {
    match error {
        Error::CannotHere(text) => CannotHere(text).into(),
        error => flat(error),
    }
}

fn place(given: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    given.map_or_else(|| Lab::newest(Path::new(LABS)).map_err(in_words), Ok)
}

/// Begins a lab. One that cannot run here leaves nothing on the disk.
fn begin(args: RunArgs) -> anyhow::Result<Lab> {
    let file = &args.spec;
    let text = std::fs::read_to_string(file).with_context(|| format!("{}: cannot be read", file.display()))?;
    let set = args.set.into_iter().collect();
    let (scale, repetitions, seed, hotplug) = (args.scale, args.repetitions, args.seed, args.hotplug);
    let changes = Changes { scale, set, repetitions, seed, hotplug };
    let on = args.on.map(|_| Slurm { cells_a_task: args.cells_a_task as usize, options: args.sbatch });
    let about = About { on, ..about(file, changes)? };
    let executor = executor(about.on.as_ref())?;
    let name = Lab::check(&text, &about, &std::env::current_exe()?, executor.as_ref()).map_err(in_words)?;
    let out = match args.out {
        Some(out) => not_taken(out)?,
        None => free(&name)?,
    };
    Lab::create(&out, &text, &about).map_err(in_words)
}

fn about(file: &Path, changes: Changes) -> anyhow::Result<About> {
    Ok(About {
        schema: SCHEMA.to_owned(),
        nearmiss: env!("CARGO_PKG_VERSION").to_owned(),
        started: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
        file: file.to_owned(),
        directory: std::env::current_dir().context("the current directory")?,
        changes,
        on: None,
    })
}

/// A place for a lab that the user named.
fn not_taken(out: PathBuf) -> anyhow::Result<PathBuf> {
    let place = out.display();
    anyhow::ensure!(
        out.file_name().is_some(),
        "--out {place}: is no name for a directory; name one that is not there yet"
    );
    anyhow::ensure!(
        !Lab::is_at(&out),
        "--out {place}: a lab is there already; `nearmiss lab resume {place}` goes on with it, and --out of another name \
         begins another"
    );
    anyhow::ensure!(
        std::fs::symlink_metadata(&out).is_err(),
        "--out {place}: is there already, and is no lab; name a directory that is not there yet"
    );
    Ok(out)
}

/// Hints at `lab resume`: a second `lab run` may have been meant so.
fn hint_at(before: &Path) {
    let Ok(lab) = Lab::read(before) else { return };
    let (ended, left) = (lab.ended().len(), lab.left());
    if left > 0 && !lab.is_busy() {
        let (before, all) = (before.display(), ended + left);
        print_message(&format!(
            "{before} has ended {ended} of {all} cells; `nearmiss lab resume {before}` goes on with it, and this is a new lab"
        ));
    }
}

/// `nearmiss-labs/NAME`, or the first of NAME-2, NAME-3, … that is free.
fn free(name: &str) -> anyhow::Result<PathBuf> {
    let labs = Path::new(LABS);
    std::fs::create_dir_all(labs).with_context(|| format!("{}: cannot be created", labs.display()))?;
    let names = (2..u64::MAX).map(|number| labs.join(format!("{name}-{number}")));
    let mut before = None;
    for path in [labs.join(name)].into_iter().chain(names) {
        if !path.exists() {
            before.as_deref().into_iter().for_each(hint_at);
            return Ok(path);
        }
        before = Some(path);
    }
    anyhow::bail!("names do not run out")
}

fn go_on(mut lab: Lab, json: bool) -> anyhow::Result<ExitCode> {
    let path = lab.path().display().to_string();
    print_message(&format!("lab {path}, seed {}; after an interruption: nearmiss lab resume {path}", lab.spec.seed));
    let progress = progress::of("cells");
    let nearmiss = std::env::current_exe()?;
    let mut executor = executor(lab.about.on.as_ref())?;
    lab.run(&nearmiss, executor.as_mut(), &mut |event| on_event(&progress, event)).map_err(in_words)?;
    drop(progress);
    show(&lab, &Show::of(&lab, &Selection::default()).map_err(in_words)?, json)?;
    let cells = lab.ended().len();
    let not_done = lab.ended().values().filter(|ended| ended.how != Ending::Done).count();
    if not_done > 0 {
        print_message(&format!(
            "{not_done} of {cells} cells failed or lack figures; `nearmiss lab resume {path} --retry` runs them again"
        ));
        return Ok(ExitCode::from(exit::CONDITION_FAILED));
    }
    Ok(ExitCode::SUCCESS)
}

fn on_event(progress: &Progress, event: &Event<'_>) {
    if let Some(Ended { cell, why: Some(why), .. }) = event.ended {
        print_message(&format!("{cell}: {why}"));
    }
    if let Some(left) = event.left {
        let milliseconds = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let spent = milliseconds(event.spent);
        progress.at(spent, spent.saturating_add(milliseconds(left)));
    }
}

fn show(lab: &Lab, show: &Show, json: bool) -> anyhow::Result<()> {
    match json {
        true => print(&format!("{}\n", serde_json::to_string(show).context("record")?)),
        false => print(&shown::text(lab, show)),
    }
}
