//! The verb `paper`: where the papers' program is.

use std::ffi::OsString;
use std::process::ExitCode;

/// Arguments of `nearmiss paper`.
#[derive(clap::Args)]
#[command(hide = true, disable_help_flag = true)]
pub struct Args {
    /// The words for the other program
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

/// Errors: always, with the command that computes a paper's figures.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let words: Vec<_> = args.words.iter().map(|word| word.to_string_lossy()).collect();
    let words = if words.is_empty() { "list".to_owned() } else { words.join(" ") };
    anyhow::bail!(
        "the papers have a program of their own; in a clone of nearmiss: `make papers`, then \
         `target/release/nearmiss-papers {words}`"
    )
}
