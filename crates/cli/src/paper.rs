//! The verb `paper`: a paper's figures and ours side by side.

use crate::table::{lines, print_line, table, width};
use anyhow::{Context, bail};
use nearmiss_papers::record::PaperRecord;
use nearmiss_papers::{PAPERS, text};
use nearmiss_record::run::write_whole;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `nearmiss paper`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  nearmiss paper list
  nearmiss paper run coloring
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
    Run {
        /// Which one: `nearmiss paper list` has the names
        name: String,
        /// Print the record (nearmiss/paper/1) instead of the tables
        #[arg(long)]
        json: bool,
        /// Where the pictures go [default: nearmiss-papers/NAME]
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
}

/// Runs the verb.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.what {
        What::List => {
            let mut table = table(&["name", "paper", "what is computed"], width());
            for paper in PAPERS {
                table.add_row([paper.name, paper.title, paper.what]);
            }
            print_line(&lines(&table))?;
        }
        What::Run { name, json, out } => {
            let Some(paper) = nearmiss_papers::paper(&name) else {
                let names: Vec<_> = PAPERS.iter().map(|p| p.name).collect();
                bail!("{name}: no such paper; there are: {}", names.join(", "));
            };
            let out = out.unwrap_or_else(|| Path::new("nearmiss-papers").join(paper.name));
            std::fs::create_dir_all(&out).with_context(|| format!("{}: cannot be created", out.display()))?;
            let watched = std::io::stderr().is_terminal();
            let record = (paper.run)(&|done, parts| {
                if watched {
                    let end = if done == parts { '\n' } else { '\r' };
                    // Nobody needs progress more than the figures.
                    let _ = write!(std::io::stderr().lock(), "nearmiss: {done} of {parts} simulations{end}");
                }
            })?;
            write_pictures(&record, &out)?;
            if json {
                print_line(&serde_json::to_string_pretty(&record)?)?;
            } else {
                print_line(&text::render(&record))?;
                print_line(&format!("pictures: {}", out.display()))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn write_pictures(record: &PaperRecord, out: &Path) -> anyhow::Result<()> {
    for picture in &record.pictures {
        write_whole(&out.join(&picture.file), picture.svg.as_bytes())?;
    }
    Ok(())
}
