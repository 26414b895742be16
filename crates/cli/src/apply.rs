//! The verb `apply`: a command under a remedy.

use nearmiss_record::run::write_whole;
use nearmiss_remedy::color::apply::{self as color, Options};
use nearmiss_remedy::wrap;
use nearmiss_workload::Workload;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `nearmiss apply`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  nearmiss apply color -- ./server     its stacks and large blocks, in 32 colors")]
pub struct Args {
    #[command(subcommand)]
    remedy: Remedy,
}

#[derive(clap::Subcommand)]
enum Remedy {
    /// Shift thread stacks and large blocks by cache lines, so that they stop sharing cache sets
    #[command(after_help = "Examples:
  nearmiss apply color -- ./server            32 colors, stacks and blocks of 128 KiB and more
  nearmiss apply color --stacks -- ./server   thread stacks only
  nearmiss apply color --colors 8 --blocks 16k --json done.json -- ./server

Nothing persists: the next run without it is as before.")]
    Color {
        #[command(flatten)]
        color: color::Args,
        /// Write what was done here, as JSON
        #[arg(long, value_name = "FILE", value_parser = crate::json_file::json_file)]
        json: Option<PathBuf>,
        /// The command and its arguments
        #[arg(last = true, required = true, value_name = "CMD")]
        command: Vec<OsString>,
    },
}

/// Runs the verb. The command's exit status is ours.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Remedy::Color { color, json, command } = args.remedy;
    let failed = |code: u8, what: &dyn std::fmt::Display| {
        eprintln!("nearmiss: {what}");
        Ok(ExitCode::from(code))
    };
    let (workload, coloring) = match color::apply(Workload::new(command), &Options::from(&color)) {
        Ok(applied) => applied,
        Err(error) => return failed(error.exit_code(), &error),
    };
    match wrap(workload, &coloring) {
        Ok(wrapped) => match &wrapped.engaged {
            Ok(engaged) => {
                if let Some(file) = json {
                    write_whole(&file, engaged.record.to_string().as_bytes())?;
                }
                failed(wrapped.exit_code(), &engaged.text)
            }
            Err(error) => failed(wrapped.exit_code(), error),
        },
        Err(error) => failed(error.exit_code(), &error),
    }
}
