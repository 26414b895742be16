//! `verify` of two commands, environments or builds, each given as one string.

use super::how::ComparisonArgs;
use super::sides::{Title, compare_sides};
use crate::command_line::{direct, shell};
use nearmiss_verify::SideCommand;
use std::process::ExitCode;

/// Arguments of `nearmiss verify commands`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  nearmiss verify commands 'sort words.txt' 'sort --parallel=1 words.txt'
  nearmiss verify commands './old --check' './new --check'         two builds
  nearmiss verify commands './program' 'LD_BIND_NOW=1 ./program'   two environments
  nearmiss verify commands --metric 'rate ([0-9.]+)' --higher './bench a' './bench b'
  nearmiss verify commands --require-gain 5% './old' './new'       exit code 1 unless 5% are sure

A command's words are split as a shell splits them, variables set before it are set, and the \
program runs without a shell. Where either command needs one (pipes, $variables, patterns), both \
run through `/bin/sh -c`.")]
pub struct Args {
    /// The command to compare with
    #[arg(value_name = "CMD1", value_parser = command)]
    first: String,
    /// The command to judge: a gain is a gain of this one
    #[arg(value_name = "CMD2", value_parser = command)]
    second: String,
    #[command(flatten)]
    how: ComparisonArgs,
}

/// Runs the verb.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (first, second) = (&args.first, &args.second);
    let mut notes = Vec::new();
    let (without, with) = match direct(first).zip(direct(second)) {
        Some(both) => both,
        None => {
            notes.push("Both commands ran through /bin/sh: its start is part of every time.".to_owned());
            (shell(first), shell(second))
        }
    };
    for workload in [&without, &with] {
        workload.program()?;
    }
    let side = |name: &String, workload| SideCommand { name: name.clone(), workload, engagement: None };
    let stem = second.split_whitespace().next().unwrap_or_default().to_owned();
    let command = vec![first.clone(), second.clone()];
    let title = Title { stem, command, remedy: None, predicted: None, notes };
    compare_sides(&args.how, title, side(first, without), side(second, with), None)
}

/// A command that is there.
fn command(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("no command; write for example './program --option'".to_owned());
    }
    Ok(text.to_owned())
}
