//! The verb `paper`: a paper's figures and ours side by side.

use crate::Remedies;
use crate::destination;
use crate::progress::Progress;
use crate::table::{lines, print_line, table, width};
use anyhow::{Context, bail};
use nearmiss_papers::pacing::plan::Scale;
use nearmiss_papers::record::{Here, PaperRecord};
use nearmiss_papers::{PAPERS, Paper, text};
use nearmiss_record::run::write_whole;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `nearmiss paper`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  nearmiss paper list
  nearmiss paper run coloring
  nearmiss paper run coloring --table a
  nearmiss paper run coloring --here       and the same on this machine, measured
  nearmiss paper run pacing                measured here, some ten minutes
  nearmiss paper run pollution             modelled, and writes measured here: under a minute
  nearmiss paper run numa                  modelled, half of it from servers recorded in guests: some minutes
  nearmiss paper run pairing               modelled: two minutes of simulated schedulers
  nearmiss paper run coloring --out pictures --json > coloring.json")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// The papers that can be run
    List,
    /// Compute a paper's figures on the machine model and print them beside the paper's own
    #[command(after_help = "Examples:
  nearmiss paper run coloring              all its tables, a minute or two
  nearmiss paper run coloring --table a    one of them
  nearmiss paper run coloring --here       and the same on this machine, measured
  nearmiss paper run pacing                some ten minutes of servers and loads on loopback
  nearmiss paper run pollution --table b   misses of copies into the page cache, and around the caches
  nearmiss paper run pairing --table c     who runs beside whom, under four schedulers")]
    Run {
        /// Which one: `nearmiss paper list` has the names
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
        /// Where the pictures go [default: nearmiss-papers/NAME]
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
}

/// Runs the verb.
pub fn run(args: Args, remedies: Remedies) -> anyhow::Result<ExitCode> {
    match args.what {
        What::List => {
            let mut table = table(&["name", "paper", "what is computed"], width());
            for paper in PAPERS {
                table.add_row([paper.name, paper.title, paper.what]);
            }
            print_line(&lines(&table))?;
        }
        What::Run { name, table, here, scale, json, out } => {
            let Some(paper) = nearmiss_papers::paper(&name) else {
                let names: Vec<_> = PAPERS.iter().map(|p| p.name).collect();
                bail!("{name}: no such paper; there are: {}", names.join(", "));
            };
            let here = if here { Some(there(paper)?) } else { None };
            let out = out.unwrap_or_else(|| Path::new("nearmiss-papers").join(paper.name));
            destination::runs_can_be_kept(&out)?;
            let progress = Progress::of(paper.doing);
            let nearmiss = std::env::current_exe()?;
            let heard = |done, of| progress.at(done as u64, of as u64);
            let record = paper.run(table.as_deref(), scale.into(), &nearmiss, &heard)?;
            drop(progress);
            write_pictures(&record, &out)?;
            if json {
                print_line(&serde_json::to_string_pretty(&record)?)?;
            } else {
                print_line(&text::render(&record))?;
                print_line(&format!("pictures: {}", out.display()))?;
            }
            if let Some(here) = here {
                print_line("")?;
                return verify(&here, remedies);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the program that shows the paper's effect on this machine. Errors: nothing does, or it was not built.
fn there(paper: &Paper) -> anyhow::Result<Here> {
    let Some(here) = paper.here else {
        bail!("{}: what it measures here needs no --here; leave it away", paper.name);
    };
    if !Path::new(here.program).is_file() {
        bail!("{}: not there; build it in a clone of nearmiss: {}", here.program, here.build);
    }
    Ok(here)
}

/// How much is measured.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
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

fn verify(here: &Here, remedies: Remedies) -> anyhow::Result<ExitCode> {
    let program = ["--", here.program];
    let words = ["verify"].iter().chain(here.verify).chain(&program).chain(here.arguments);
    let given = crate::verify::arguments(clap::Command::new("verify"), remedies).try_get_matches_from(words)?;
    crate::verify::run(&given, remedies)
}

fn write_pictures(record: &PaperRecord, out: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(out).with_context(|| format!("{}: cannot be created", out.display()))?;
    for picture in &record.pictures {
        write_whole(&out.join(&picture.file), picture.svg.as_bytes())?;
    }
    Ok(())
}
