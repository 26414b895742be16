//! The verb `generate`: man pages and shell completions, from the definitions that the parser reads.

use crate::{Remedies, verbs};
use anyhow::Context;
use clap_complete::Shell;
use nearmiss_record::run::write_whole;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `nearmiss generate`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  nearmiss generate completions bash > /etc/bash_completion.d/nearmiss
  nearmiss generate man apply | man -l -            the page of a verb
  nearmiss generate man --all /usr/share/man/man1   all pages")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Print a shell's completions
    Completions {
        /// Which shell
        shell: Shell,
    },
    /// Print a man page, or write all of them
    Man {
        /// The verb, and below it the remedy or the like [default: nearmiss itself]
        #[arg(conflicts_with = "all")]
        path: Vec<String>,
        /// Write every page into this directory
        #[arg(long, value_name = "DIR")]
        all: Option<PathBuf>,
    },
}

/// Runs the verb.
pub fn run(args: Args, remedies: Remedies) -> anyhow::Result<ExitCode> {
    let mut command = verbs::command(remedies);
    command.build();
    match args.what {
        What::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut command, "nearmiss", &mut script);
            crate::output::print(&String::from_utf8_lossy(&script))?;
        }
        What::Man { all: Some(directory), .. } => write_all(&command, &directory)?,
        What::Man { path, all: None } => crate::output::print(&page(below(&command, &path)?)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn below<'a>(command: &'a clap::Command, path: &[String]) -> anyhow::Result<&'a clap::Command> {
    path.iter().try_fold(command, |command, name| {
        let found = command.find_subcommand(name);
        let above = command.get_display_name().unwrap_or(command.get_name()).replace('-', " ");
        found.with_context(|| format!("no page of `{name}`: `{above} --help` lists what there is"))
    })
}

fn page(command: &clap::Command) -> anyhow::Result<String> {
    let mut page = Vec::new();
    let source = concat!("nearmiss ", env!("CARGO_PKG_VERSION"));
    clap_mangen::Man::new(command.clone()).source(source).render(&mut page).context("man page")?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

/// `nearmiss.1`, `nearmiss-apply.1`, …: one page a command.
fn write_all(command: &clap::Command, directory: &Path) -> anyhow::Result<()> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    write_whole(&directory.join(format!("{name}.1")), page(command)?.as_bytes())?;
    let subcommands = command.get_subcommands().filter(|below| below.get_name() != "help");
    for below in subcommands {
        write_all(below, directory)?;
    }
    Ok(())
}
